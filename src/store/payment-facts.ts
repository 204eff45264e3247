import type { KeptDispute } from "../domain/dispute.js";
import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import { jsonOrNull, PAYMENT_COLUMNS, paymentOf, type Row, requiredDate } from "./rows.js";

/** What facts that come from outside an attempt write on a payment. All of it under the payment row's lock. */

export interface LockedPayment {
  readonly payment: Payment;
  readonly disputes: readonly KeptDispute[];
  /** The database's time, in whole milliseconds as documents show it. */
  readonly now: Date;
}

/** Locks the payment's row until the transaction ends. Null: there is no such payment. */
export async function lockPayment(
  db: Queryable,
  tenantId: string,
  paymentId: string,
): Promise<LockedPayment | null> {
  const columns = PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", ");
  const [row] = await db<Row[]>`
    select ${db.unsafe(columns)}, a.provider_payment_id, a.wait_reason, a.unknown_since, a.due_at, now() as at
      from payments p join attempts a on a.tenant_id = p.tenant_id and a.id = p.attempt_id
     where p.tenant_id = ${tenantId} and p.id = ${paymentId}
       for update of p`;
  if (row === undefined) return null;
  return {
    payment: paymentOf(row),
    disputes: jsonOrNull<KeptDispute[]>(row["p_disputes"]) ?? [],
    now: requiredDate(row["at"]),
  };
}

/** A row of the payment's timeline. `fact`: something that neither is a transition nor comes from a call of ours. */
export interface FactRow {
  readonly id: string;
  readonly kind: "fact" | "transition";
  readonly refund_id: string | null;
  readonly to_status: string | null;
  readonly reason: string;
  readonly attempt_id: string | null;
  readonly outcome: string | null;
  readonly provider_request_id: string | null;
}

export async function noteFacts(
  db: Queryable,
  payment: Pick<Payment, "tenantId" | "id">,
  rows: readonly FactRow[],
): Promise<void> {
  await db`
    insert into timeline (tenant_id, payment_id, id, refund_id, kind, to_status, reason, attempt_id, outcome,
      provider_request_id)
    select ${payment.tenantId}, ${payment.id}, t.id, t.refund_id, t.kind, t.to_status, t.reason, t.attempt_id,
           t.outcome, t.provider_request_id
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as t(id text, refund_id text, kind text,
           to_status text, reason text, attempt_id text, outcome text, provider_request_id text)`;
}

/** One event of the payment; its place in the list is its ordinal among those of this write. */
export interface FactEvent {
  readonly id: string;
  readonly type: string;
  /** JSON text. */
  readonly data: string;
}

/** The outbox rows of one write. `payment`: as the write left it; its version is the events' sequence. */
export async function tellFacts(
  db: Queryable,
  payment: Pick<Payment, "tenantId" | "id" | "version">,
  events: readonly FactEvent[],
): Promise<void> {
  const told = events.map((event, ordinal) => ({ ...event, ordinal }));
  await db`
    insert into outbox (tenant_id, id, type, payment_id, sequence, ordinal, data)
    select ${payment.tenantId}, e.id, e.type, ${payment.id}, ${payment.version}::int, e.ordinal, e.data::json
      from json_to_recordset(${JSON.stringify(told)}::text::json) as e(id text, type text, ordinal int, data text)`;
}

/** False: a review of the payment is open already, and one is enough. */
export async function openReview(
  db: Queryable,
  review: {
    readonly id: string;
    readonly tenantId: string;
    readonly paymentId: string;
    readonly attemptId: string;
    readonly reason: string;
  },
): Promise<boolean> {
  const opened = await db<Row[]>`
    insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
    values (${review.tenantId}, ${review.id}, ${review.paymentId}, ${review.attemptId}, ${review.reason})
    on conflict (tenant_id, payment_id) where closed_at is null do nothing
    returning id`;
  return opened.length === 1;
}
