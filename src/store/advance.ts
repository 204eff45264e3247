import type { ProviderCall } from "../domain/provider.js";
import type { Queryable } from "./db.js";
import { isInPlace, TELLS_NO_MORE, type Tells } from "./in-place.js";
import { postEntries } from "./ledger.js";
import { openReviewOf, type ReviewWrite, revisedReviews } from "./open-reviews.js";
import { type Row, requiredDate } from "./rows.js";

/** One commit of an attempt's progress. Names are those of the columns; `from_*` are what the writer read. */
export interface AdvanceRow {
  readonly tenant_id: string;
  readonly attempt_id: string;
  readonly payment_id: string;
  readonly fence: number;
  readonly from_state: string;
  readonly to_state: string;
  /** Null: whatever the payment is by now, as when only the lease is renewed. */
  readonly from_version: number | null;
  readonly provider_payment_id: string | null;
  readonly unresolved: boolean;
  readonly key_spent: boolean;
  readonly fence_round: number;
  readonly waits: number;
  readonly wait_reason: string | null;
  readonly unknown_since: string | null;
  /** Which call is about to be sent, whose first time is then kept. */
  readonly sending: ProviderCall | null;
  /** A send follows, and may go out only where the data still is what the writer takes it for. */
  readonly in_place_only: boolean;
  /** Renews the lease (the work goes on), or null: the lease is given back. */
  readonly lease_ms: number | null;
  /** With no lease: due again in so long, or null: nothing is left to do. */
  readonly due_in_ms: number | null;
  readonly payment: PaymentWrite | null;
  readonly refund: RefundWrite | null;
  readonly ledger: readonly LedgerRow[];
  readonly merchant_order_id: string | null;
  readonly operation: string;
  readonly idempotency_key: string;
  readonly run: number;
  readonly key: KeyWrite | null;
  readonly timeline: readonly TimelineRow[];
  readonly event: EventRow | null;
  readonly review: ReviewWrite | null;
  /** A fact, or what a person decided, ends the attempt's open review. */
  readonly close_review: boolean;
  /** What became of the person's instruction that this write takes off the attempt; null: it takes none. */
  readonly instruction: "carried_out" | "returned" | null;
}

export interface PaymentWrite {
  readonly from_status: string;
  readonly to_status: string;
  readonly next_action: object | null;
  readonly failure: object | null;
  readonly amount_capturable: number;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  readonly refund_reserved: number;
  readonly open_effect: string | null;
  readonly authorized_until: string | null;
  readonly cancellation_reason: string | null;
  readonly holds_order_id: boolean;
  readonly updated_at: string;
}

export interface RefundWrite {
  readonly id: string;
  readonly from_version: number;
  readonly to_status: string;
  readonly provider_refund_id: string | null;
  readonly failure: object | null;
  readonly updated_at: string;
}

export interface EventRow {
  readonly id: string;
  readonly type: string;
  /** The payment's version that the fact made: what orders the payment's events. */
  readonly sequence: number;
  readonly data: string;
}

export interface LedgerRow {
  readonly fact: string;
  readonly leg: number;
  readonly currency: string;
  readonly debit_account: string;
  readonly credit_account: string;
  readonly amount: number;
}

/** How the key of the attempt's run ends. */
export interface KeyWrite {
  readonly state: "completed" | "failed_retryable";
  readonly status: number | null;
  readonly headers: object | null;
  readonly body: string | null;
  readonly retention_ms: number;
}

export interface TimelineRow {
  readonly id: string;
  readonly refund_id: string | null;
  readonly kind: string;
  readonly from_status: string | null;
  readonly to_status: string | null;
  readonly reason: string;
  readonly call: string | null;
  readonly provider_key: string | null;
  readonly outcome: string | null;
  readonly provider_request_id: string | null;
  readonly sent_at: string | null;
}

export interface Advanced {
  readonly dueAt: Date | null;
  /** Set where this write finished the key. */
  readonly keyExpiresAt: Date | null;
}

/**
 * Writes the progress of many attempts in one statement and one commit: the attempt, and with it the payment's
 * status, timeline, outbox, review and the stored response. All or nothing for each row: a row whose fence, state or
 * payment version is not what the writer read, or that is `in_place_only` in a database that is not, changes nothing
 * and yields null; that worker makes no further call before it has read why. The only function that writes a
 * payment's status.
 */
export async function advanceAttempts(
  db: Queryable,
  rows: readonly AdvanceRow[],
  tells: Tells = TELLS_NO_MORE,
): Promise<(Advanced | null)[]> {
  const advanced = await db<Row[]>`
    with input as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as x(
        tenant_id text, attempt_id text, payment_id text, fence bigint, from_state attempt_state,
        to_state attempt_state, from_version int, provider_payment_id text, unresolved boolean, key_spent boolean,
        fence_round int, waits int, wait_reason text, unknown_since timestamptz, sending text, in_place_only boolean, lease_ms float8,
        due_in_ms float8, payment json, refund json, ledger json, merchant_order_id text, operation text, idempotency_key text,
        run int, key json, timeline json, event json, review json, close_review boolean, instruction text)
    ), owned as materialized (
      select i.* from (select * from input order by tenant_id, payment_id, attempt_id) i
        cross join lateral (select from attempts a where a.tenant_id = i.tenant_id and a.id = i.attempt_id
                               and a.fence = i.fence and a.state = i.from_state for update) a
        cross join lateral (select from payments p where p.tenant_id = i.tenant_id and p.id = i.payment_id
                               and (i.from_version is null or p.version = i.from_version) for update) p
       where (i.refund is null or (i.refund ->> 'from_version')::int = (
         select r.version from refunds r where r.tenant_id = i.tenant_id and r.id = i.refund ->> 'id'))
         and (not i.in_place_only or ${isInPlace(db, tells)})
    ), moved as (
      update attempts a
         set state = i.to_state,
             provider_payment_id = coalesce(a.provider_payment_id, i.provider_payment_id),
             unresolved = i.unresolved, key_spent = i.key_spent, fence_round = i.fence_round, waits = i.waits,
             wait_reason = i.wait_reason, unknown_since = i.unknown_since,
             instruction = case when i.close_review or i.instruction is not null then null else a.instruction end,
             create_first_sent_at = coalesce(a.create_first_sent_at, case when i.sending = 'create' then now() end),
             confirm_first_sent_at = coalesce(a.confirm_first_sent_at, case when i.sending = 'confirm' then now() end),
             fence_first_sent_at = coalesce(a.fence_first_sent_at, case when i.sending = 'fence' then now() end),
             effect_first_sent_at = coalesce(a.effect_first_sent_at,
               case when i.sending in ('capture', 'cancel', 'refund') then now() end),
             lease_owner = case when i.lease_ms is null then null else a.lease_owner end,
             lease_expires_at = now() + i.lease_ms * interval '1 millisecond',
             due_at = case when i.lease_ms is null and a.nudged then now()
                           else now() + coalesce(i.lease_ms, i.due_in_ms) * interval '1 millisecond' end
        from owned i
       where a.tenant_id = i.tenant_id and a.id = i.attempt_id and a.fence = i.fence
      returning a.tenant_id, a.id, a.due_at
    ), paid as (
      update payments p
         set status = w.to_status, version = p.version + 1, next_action = w.next_action,
             failure = w.failure, amount_capturable = w.amount_capturable,
             amount_captured = w.amount_captured, amount_refunded = w.amount_refunded,
             refund_reserved = w.refund_reserved, open_effect = w.open_effect,
             authorized_until = w.authorized_until, cancellation_reason = w.cancellation_reason,
             holds_order_id = w.holds_order_id, updated_at = w.updated_at
        from owned i, json_to_record(i.payment) as w(from_status payment_status, to_status payment_status,
             next_action json, failure json, amount_capturable bigint, amount_captured bigint,
             amount_refunded bigint, refund_reserved bigint, open_effect text, authorized_until timestamptz,
             cancellation_reason text, holds_order_id boolean, updated_at timestamptz)
       where p.tenant_id = i.tenant_id and p.id = i.payment_id and p.version = i.from_version
         and p.status = w.from_status
    ), ${refundAndPostings(db)}, ${postEntries(db)}, ${consequences(db)}
    select m.id, m.due_at, f.expires_at
      from moved m join owned i on i.tenant_id = m.tenant_id and i.attempt_id = m.id
      left join finished f on f.tenant_id = i.tenant_id and f.operation = i.operation and f.key = i.idempotency_key`;
  const byId = new Map(advanced.map((row) => [row["id"], row]));
  return rows.map((row) => {
    const written = byId.get(row.attempt_id);
    if (written === undefined) return null;
    return {
      dueAt: written["due_at"] === null ? null : requiredDate(written["due_at"]),
      keyExpiresAt: written["expires_at"] === null ? null : requiredDate(written["expires_at"]),
    };
  });
}

/** The refund as it is from here on, and the ledger's entries of the commit, for the rows of `owned`. */
function refundAndPostings(db: Queryable) {
  return db`refunded as (
      update refunds r
         set status = w.to_status, version = r.version + 1, provider_refund_id = w.provider_refund_id,
             failure = w.failure, updated_at = w.updated_at
        from (select i.tenant_id, w.*
                from owned i, json_to_record(i.refund) as w(id text, from_version int, to_status refund_status,
                     provider_refund_id text, failure json, updated_at timestamptz)
               where i.refund is not null offset 0) w
       where r.tenant_id = w.tenant_id and r.id = w.id and r.version = w.from_version
    ), posted_input as (
      select i.tenant_id, i.payment_id, l.*
        from owned i, json_to_recordset(i.ledger) as l(fact text, leg int, currency text, debit_account text,
             credit_account text, amount bigint)
    )`;
}

/** What a commit writes beside attempt and payment, for the rows of `owned`. */
function consequences(db: Queryable) {
  return db`released as (
      delete from order_ids o
       using owned i, json_to_record(i.payment) as w(holds_order_id boolean)
       where not w.holds_order_id and o.tenant_id = i.tenant_id and o.merchant_order_id = i.merchant_order_id
         and o.payment_id = i.payment_id
    ), finished as (
      update idempotency_keys k
         set state = w.state, response_status = w.status, response_headers = w.headers, response_body = w.body,
             completed_at = now(), expires_at = now() + w.retention_ms * interval '1 millisecond'
        from owned i, json_to_record(i.key) as w(state idempotency_key_state, status int, headers json, body text,
             retention_ms float8)
       where k.tenant_id = i.tenant_id and k.operation = i.operation and k.key = i.idempotency_key
         and k.run = i.run and w.state is not null
         and (k.state = 'in_progress' or (k.state = 'failed_retryable' and w.state = 'completed'))
      returning k.tenant_id, k.operation, k.key, k.expires_at
    ), told as (
      insert into timeline (tenant_id, payment_id, id, refund_id, kind, from_status, to_status, reason, attempt_id, call,
        provider_key, fence, outcome, provider_request_id, sent_at)
      select i.tenant_id, i.payment_id, t.id, t.refund_id, t.kind, t.from_status, t.to_status, t.reason, i.attempt_id, t.call,
        t.provider_key, i.fence, t.outcome, t.provider_request_id, t.sent_at
        from owned i, json_to_recordset(i.timeline) as t(id text, refund_id text, kind text, from_status text, to_status text,
             reason text, call text, provider_key text, outcome text, provider_request_id text, sent_at timestamptz)
    ), announced as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, data)
      select i.tenant_id, e.id, e.type, i.payment_id, e.sequence, e.data::json
        from owned i, json_to_record(i.event) as e(id text, type text, sequence int, data text)
       where e.id is not null
    ), closed as (
      update reviews r
         set closed_at = now(), closed_by = case when i.instruction = 'carried_out' then 'person' else 'fact' end
        from owned i
       where i.close_review and ${openReviewOf(db, db`i.tenant_id`, db`i.attempt_id`)}
    ), ${revisedReviews(db)}`;
}
