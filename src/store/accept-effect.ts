import type { StoredResponse } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import { PAYMENT_COLUMNS, paymentOf, type Row, requiredDate, textOrNull } from "./rows.js";

/** The statements of one transaction that accepts a capture, cancel or refund, or stores its refusal. */

export interface LockedPayment {
  readonly payment: Payment;
  /** Of the charge: what the effect is made for, too. */
  readonly providerAccount: string | null;
  /** The database's time of the transaction. */
  readonly now: Date;
}

/** Holds the payment's row until the transaction ends: what is decided from it stays true. Null: there is none. */
export async function lockPayment(
  tx: Queryable,
  tenantId: string,
  paymentId: string,
): Promise<LockedPayment | null> {
  const [row] = await tx<Row[]>`
    select ${tx.unsafe(PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", "))},
           a.provider_payment_id, a.provider_account, now() as at
      from payments p join attempts a on a.tenant_id = p.tenant_id and a.id = p.attempt_id
     where p.tenant_id = ${tenantId} and p.id = ${paymentId}
       for update of p`;
  if (row === undefined) return null;
  return {
    payment: paymentOf(row),
    providerAccount: textOrNull(row["provider_account"]),
    now: requiredDate(row["at"]),
  };
}

export interface KeyClaim {
  readonly tenantId: string;
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly run: number;
  readonly resourceId: string;
  readonly requestId: string;
}

/**
 * Run 1 inserts the key; a later run takes over one whose last run is proven to be without effect. False: the key
 * stands, or is no longer in the state in which it was read; nothing is written.
 */
export async function claimKey(tx: Queryable, claim: KeyClaim): Promise<boolean> {
  const rows =
    claim.run === 1
      ? await tx`
          insert into idempotency_keys (tenant_id, operation, key, fingerprint, run, resource_id, request_id)
          values (${claim.tenantId}, ${claim.operation}, ${claim.key}, ${claim.fingerprint}, 1,
                  ${claim.resourceId}, ${claim.requestId})
          on conflict do nothing returning key`
      : await tx`
          update idempotency_keys
             set state = 'in_progress', run = ${claim.run}, resource_id = ${claim.resourceId},
                 request_id = ${claim.requestId}, completed_at = null, expires_at = null
           where tenant_id = ${claim.tenantId} and operation = ${claim.operation} and key = ${claim.key}
             and state = 'failed_retryable' and run = ${claim.run - 1} and fingerprint = ${claim.fingerprint}
             and expires_at > now()
          returning key`;
  return rows.length === 1;
}

/** Stores a refusal as the claimed key's answer, and yields when the key expires. */
export async function completeKey(
  tx: Queryable,
  claim: KeyClaim,
  response: StoredResponse,
  retentionMs: number,
): Promise<Date> {
  const [row] = await tx<Row[]>`
    update idempotency_keys
       set state = 'completed', resource_id = ${claim.resourceId}, response_status = ${response.status},
           response_headers = ${JSON.stringify(response.headers)}::text::json, response_body = ${response.body},
           completed_at = now(), expires_at = now() + ${retentionMs}::float8 * interval '1 millisecond'
     where tenant_id = ${claim.tenantId} and operation = ${claim.operation} and key = ${claim.key}
       and run = ${claim.run} and state = 'in_progress'
    returning expires_at`;
  if (row === undefined) throw new Error(`the key of ${claim.resourceId} is not the one just claimed`);
  return requiredDate(row["expires_at"]);
}

export interface EffectRow {
  readonly tenant_id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly kind: "capture" | "cancel" | "refund";
  readonly operation: string;
  readonly key: string;
  readonly run: number;
  readonly request_id: string;
  readonly amount: number | null;
  readonly provider: string;
  readonly provider_account: string | null;
  readonly provider_payment_id: string;
  readonly livemode: boolean;
  readonly parameters: string;
  readonly timeline_id: string;
  readonly reason: string;
  /** Of a capture or cancel: it is the one in flight from here on. */
  readonly opens: boolean;
  readonly refund: {
    readonly id: string;
    readonly amount: number;
    readonly currency: string;
    readonly reason: string | null;
    readonly metadata: Readonly<Record<string, string>>;
    readonly event_id: string;
    /** The refund as its first event shows it, as JSON text. */
    readonly document: string;
  } | null;
}

/** Attempt, refund, reservation, timeline and event, under the lock of `lockPayment`. 23505: the attempt stands already. */
export async function insertEffect(tx: Queryable, row: EffectRow): Promise<void> {
  const written = await tx`
    with input as materialized (
      select * from json_to_record(${JSON.stringify(row)}::text::json) as x(
        tenant_id text, payment_id text, attempt_id text, kind attempt_kind, operation text, key text, run int,
        request_id text, amount bigint, provider text, provider_account text, provider_payment_id text,
        livemode boolean, parameters text, timeline_id text, reason text, opens boolean, refund json)
    ), refund as materialized (
      select i.tenant_id, i.payment_id, i.attempt_id, i.provider, r.*
        from input i, json_to_record(i.refund) as r(id text, amount bigint, currency text, reason text,
             metadata json, event_id text, document text)
       where r.id is not null
    ), attempted as (
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, provider, provider_account, provider_payment_id, livemode, parameters)
      select tenant_id, attempt_id, payment_id, kind, operation, key, run, request_id, amount,
        (select id from refund), provider, provider_account, provider_payment_id, livemode, parameters
        from input
    ), refunded as (
      insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, reason, metadata, provider)
      select tenant_id, id, payment_id, attempt_id, amount, currency, reason, metadata, provider from refund
    ), paid as (
      update payments p
         set version = p.version + 1, updated_at = now(),
             open_effect = case when i.opens then i.attempt_id else p.open_effect end,
             refund_reserved = p.refund_reserved + coalesce((select amount from refund), 0)
        from input i
       where p.tenant_id = i.tenant_id and p.id = i.payment_id
      returning p.version
    ), told as (
      insert into timeline (tenant_id, payment_id, id, refund_id, kind, to_status, reason, attempt_id)
      select tenant_id, payment_id, timeline_id, (select id from refund),
             case when opens then 'request' else 'transition' end,
             case when opens then null else 'processing' end, reason, attempt_id
        from input
    ), announced as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, data)
      select r.tenant_id, r.event_id, 'refund.created', r.payment_id, p.version, r.document::json
        from refund r, paid p
    )
    select version from paid`;
  if (written.length !== 1) throw new Error(`the payment ${row.payment_id} is not there under its own lock`);
}
