import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import { DATABASE_CHANGED } from "./recovery.js";
import type { Row } from "./rows.js";

/** In place of the client's key, which nobody knows: this, and behind it the object's id. */
export const REBUILT_KEY = "recovered:";

export interface RebuiltPayment {
  readonly payment: Payment;
  readonly attemptId: string;
  /** What the attempt does with its object: follow it, or close it where nobody has confirmed it. */
  readonly state: "following" | "fencing";
  readonly account: string;
  readonly requestId: string;
  readonly timelineId: string;
  readonly reason: string;
  readonly eventId: string;
  /** The payment as its first event shows it, as JSON text. */
  readonly document: string;
}

/**
 * Payment, charge attempt, timeline and event of a payment whose rows were lost, in one commit. The attempt has its
 * object and is due now. No key's record: which key it was cannot be told from the attempt's id. False: the attempt
 * stands already, and nothing is written.
 */
export async function insertRebuiltPayment(db: Queryable, rebuilt: RebuiltPayment): Promise<boolean> {
  const { payment, attemptId } = rebuilt;
  const row = {
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    attempt_id: attemptId,
    state: rebuilt.state,
    amount: payment.amount,
    currency: payment.currency,
    capture_method: payment.captureMethod,
    payment_method: payment.paymentMethod,
    customer: payment.customer,
    description: payment.description,
    provider: payment.provider,
    provider_account: rebuilt.account,
    provider_payment_id: payment.providerPaymentId,
    livemode: payment.livemode,
    created_at: payment.createdAt.toISOString(),
    updated_at: payment.updatedAt.toISOString(),
    request_id: rebuilt.requestId,
    timeline_id: rebuilt.timelineId,
    reason: rebuilt.reason,
    event_id: rebuilt.eventId,
    document: rebuilt.document,
  };
  const inserted = await db<Row[]>`
    with input as materialized (
      select * from json_to_record(${JSON.stringify(row)}::text::json) as x(
        tenant_id text, payment_id text, attempt_id text, state attempt_state, amount bigint, currency text,
        capture_method text, payment_method text, customer text, description text, provider text,
        provider_account text, provider_payment_id text, livemode boolean, created_at timestamptz, updated_at timestamptz, request_id text,
        timeline_id text, reason text, event_id text, document text)
    ), attempted as (
      insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, state, provider,
        provider_account, livemode, parameters, provider_payment_id, created_at, wait_reason)
      select tenant_id, attempt_id, payment_id, 'payments.create', ${REBUILT_KEY} || provider_payment_id, 1, request_id,
             state, provider, provider_account, livemode, '', provider_payment_id, created_at,
             ${DATABASE_CHANGED}
        from input
      on conflict do nothing
      returning tenant_id, id
    ), fresh as (
      select i.* from input i join attempted a on a.tenant_id = i.tenant_id and a.id = i.attempt_id
    ), paid as (
      insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id, customer,
        holds_order_id, description, metadata, provider, livemode, created_at, updated_at)
      select tenant_id, payment_id, amount, currency, capture_method, payment_method, attempt_id, customer, false,
             description, '{}'::json, provider, livemode, created_at, updated_at
        from fresh
    ), told as (
      insert into timeline (tenant_id, payment_id, id, kind, to_status, reason, attempt_id)
      select tenant_id, payment_id, timeline_id, 'transition', 'processing', reason, attempt_id from fresh
    ), announced as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, data)
      select tenant_id, event_id, 'payment.created', payment_id, 1, document::json from fresh
    )
    select count(*)::int as rows from fresh`;
  return Number(inserted[0]?.["rows"]) === 1;
}
