import type { StoredResponse } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import { isInPlace, type Tells } from "./in-place.js";
import { rowOf } from "./look-ups.js";
import { hasRecovered } from "./recovery.js";
import { PAYMENT_COLUMNS, paymentOf, type Row, requiredDate, textOrNull } from "./rows.js";

/** A payment as an effect is admitted on it: what is decided from it holds while its version is the same. */
export interface ReadPayment {
  readonly payment: Payment;
  /** Of the charge: what the effect is made for, too. */
  readonly providerAccount: string | null;
  /** The database's time of the reading. */
  readonly now: Date;
}

export async function readForEffect(
  db: Queryable,
  tenantId: string,
  paymentId: string,
): Promise<ReadPayment | null> {
  const [row] = await db<Row[]>`
    select ${db.unsafe(PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", "))},
           a.provider_payment_id, a.provider_account, now() as at
      from payments p ${rowOf(db, "attempts", "a", db`p.tenant_id`, db`p.attempt_id`)}
     where p.tenant_id = ${tenantId} and p.id = ${paymentId}`;
  if (row === undefined) return null;
  return {
    payment: paymentOf(row),
    providerAccount: textOrNull(row["provider_account"]),
    now: requiredDate(row["at"]),
  };
}

/** The key that is claimed, and the payment's version that the request was judged by. */
export interface KeyClaim {
  readonly tenant_id: string;
  readonly payment_id: string;
  readonly from_version: number;
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly run: number;
  readonly resource_id: string;
  readonly request_id: string;
}

export interface EffectRow extends KeyClaim {
  readonly attempt_id: string;
  readonly kind: "capture" | "cancel" | "refund";
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
  /** The attempts of all runs of a key without a record have been looked for, and there is none. */
  readonly searched: boolean;
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

/**
 * `moved`: the payment is no longer what the request was judged by; `key_stands`: the key is there, or no longer in the
 * state in which it was read. Neither writes anything.
 */
export type Claimed = "claimed" | "moved" | "key_stands";

/**
 * Records key, attempt, refund, reservation, timeline and event in one statement, under the payment's row lock and only
 * if its version is still the one that was judged: so requests that race are judged one after the other.
 * 23505: the attempt derived from the key stands already. `unsearched`: rows were lost here once, and the key's record
 * may be among them; `out_of_place`: the data stands elsewhere than it was recorded to, or is being recovered.
 */
export async function acceptEffect(
  db: Queryable,
  row: EffectRow,
  tells: Tells,
): Promise<Claimed | "unsearched" | "out_of_place"> {
  const isNew = row.run === 1 && !row.searched;
  const [written] = await db<Row[]>`
    with place as materialized (
      select ${isInPlace(db, tells)} as in_place, ${isNew}::boolean and ${hasRecovered(db)} as unsearched
    ), input as materialized (
      select x.* from place cross join json_to_record(${JSON.stringify(row)}::text::json) as x(
        tenant_id text, payment_id text, from_version int, operation text, key text, fingerprint text, run int,
        resource_id text, request_id text, attempt_id text, kind attempt_kind, amount bigint, provider text,
        provider_account text, provider_payment_id text, livemode boolean, parameters text, timeline_id text,
        reason text, opens boolean, refund json)
       where place.in_place and not place.unsearched
    ), ${claimKey(db, row.run)}, fresh as materialized (
      select i.* from input i join claimed c on c.tenant_id = i.tenant_id
    ), refund as materialized (
      select i.tenant_id, i.payment_id, i.attempt_id, i.provider, r.*
        from fresh i, json_to_record(i.refund) as r(id text, amount bigint, currency text, reason text,
             metadata json, event_id text, document text)
       where r.id is not null
    ), attempted as (
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, provider, provider_account, provider_payment_id, livemode, parameters)
      select tenant_id, attempt_id, payment_id, kind, operation, key, run, request_id, amount,
        (select id from refund), provider, provider_account, provider_payment_id, livemode, parameters
        from fresh
    ), refunded as (
      insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, reason, metadata, provider)
      select tenant_id, id, payment_id, attempt_id, amount, currency, reason, metadata, provider from refund
    ), paid as (
      update payments p
         set version = p.version + 1, updated_at = now(),
             open_effect = case when i.opens then i.attempt_id else p.open_effect end,
             refund_reserved = p.refund_reserved + coalesce((select amount from refund), 0)
        from fresh i
       where p.tenant_id = i.tenant_id and p.id = i.payment_id
    ), told as (
      insert into timeline (tenant_id, payment_id, id, refund_id, kind, to_status, reason, attempt_id)
      select tenant_id, payment_id, timeline_id, (select id from refund),
             case when opens then 'request' else 'transition' end,
             case when opens then null else 'processing' end, reason, attempt_id
        from fresh
    ), announced as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, data)
      select r.tenant_id, r.event_id, 'refund.created', r.payment_id, i.from_version + 1, r.document::json
        from refund r join fresh i on i.tenant_id = r.tenant_id
    )
    select exists (select from held) as held, exists (select from claimed) as claimed, place.in_place, place.unsearched
      from place`;
  if (written?.["in_place"] !== true) return "out_of_place";
  return written["unsearched"] === true ? "unsearched" : claimedOf(written);
}

/**
 * Stores a refusal as the key's answer, under the same conditions, and yields when the key expires. The caller has looked
 * for the attempts of a key without a record.
 */
export async function storeRefusal(
  db: Queryable,
  claim: KeyClaim,
  response: StoredResponse,
  retentionMs: number,
  tells: Tells,
): Promise<{ readonly claimed: Claimed | "out_of_place"; readonly keyExpiresAt: Date | null }> {
  const row = { ...claim, ...response, retention_ms: retentionMs };
  const [written] = await db<Row[]>`
    with place as materialized (select ${isInPlace(db, tells)} as in_place
    ), input as materialized (
      select x.* from place cross join json_to_record(${JSON.stringify(row)}::text::json) as x(
        tenant_id text, payment_id text, from_version int, operation text, key text, fingerprint text, run int,
        resource_id text, request_id text, status int, headers json, body text, retention_ms float8)
       where place.in_place
    ), ${claimKey(db, claim.run, "completed")}
    select exists (select from held) as held, exists (select from claimed) as claimed, place.in_place,
           (select expires_at from claimed) as expires_at
      from place`;
  if (written?.["in_place"] !== true) return { claimed: "out_of_place", keyExpiresAt: null };
  const expiresAt = written["expires_at"];
  return {
    claimed: claimedOf(written),
    keyExpiresAt: expiresAt === undefined || expiresAt === null ? null : requiredDate(expiresAt),
  };
}

/**
 * The payment's lock, and under it the key: run 1 inserts it, a later run takes over one whose last run is proven to be
 * without effect. `completed`: its answer stands in the input.
 */
function claimKey(db: Queryable, run: number, state: "in_progress" | "completed" = "in_progress") {
  const ends = state === "completed";
  const held = db`held as materialized (
      select p.tenant_id from input i cross join lateral (
        select p.tenant_id from payments p
         where p.tenant_id = i.tenant_id and p.id = i.payment_id and p.version = i.from_version for update) p
    )`;
  if (run > 1) {
    return db`${held}, claimed as (
      update idempotency_keys k
         set state = ${state}, run = i.run, resource_id = i.resource_id, request_id = i.request_id,
             ${
               ends
                 ? db`response_status = i.status, response_headers = i.headers, response_body = i.body,
                      completed_at = now(), expires_at = now() + i.retention_ms * interval '1 millisecond'`
                 : db`completed_at = null, expires_at = null`
             }
        from input i, held h
       where k.tenant_id = i.tenant_id and k.operation = i.operation and k.key = i.key and h.tenant_id = i.tenant_id
         and k.state = 'failed_retryable' and k.run = i.run - 1 and k.fingerprint = i.fingerprint
         and k.expires_at > now()
      returning k.tenant_id, k.expires_at
    )`;
  }
  return db`${held}, claimed as (
      insert into idempotency_keys (tenant_id, operation, key, fingerprint, run, resource_id, request_id, state
        ${ends ? db`, response_status, response_headers, response_body, completed_at, expires_at` : db``})
      select i.tenant_id, i.operation, i.key, i.fingerprint, i.run, i.resource_id, i.request_id,
             ${state}::idempotency_key_state
             ${
               ends
                 ? db`, i.status, i.headers, i.body, now(), now() + i.retention_ms * interval '1 millisecond'`
                 : db``
             }
        from input i join held h on h.tenant_id = i.tenant_id
      on conflict do nothing
      returning tenant_id, expires_at
    )`;
}

function claimedOf(row: Row | undefined): Claimed {
  if (row?.["claimed"] === true) return "claimed";
  return row?.["held"] === true ? "key_stands" : "moved";
}
