import type { KeptDispute } from "../domain/dispute.js";
import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import { postEntries } from "./ledger.js";
import { rowOf } from "./look-ups.js";
import { tellsMore, withPresent } from "./open-reviews.js";
import { jsonOrNull, PAYMENT_COLUMNS, paymentOf, type Row, requiredDate } from "./rows.js";

/**
 * What the provider tells of a payment and no attempt of ours brought about: disputes, refunds made outside. Read,
 * decided upon, and written in one statement that names the version it was decided for.
 */
export interface PaymentReading {
  readonly payment: Payment;
  readonly disputes: readonly KeptDispute[];
  /** The database's time, in whole milliseconds as documents show it. */
  readonly now: Date;
}

export async function readPaymentForFacts(
  db: Queryable,
  tenantId: string,
  paymentId: string,
): Promise<PaymentReading> {
  const columns = PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", ");
  const [row] = await db<Row[]>`
    select ${db.unsafe(columns)}, a.provider_payment_id, a.wait_reason, a.unknown_since, a.due_at, now() as at
      from payments p ${rowOf(db, "attempts", "a", db`p.tenant_id`, db`p.attempt_id`)}
     where p.tenant_id = ${tenantId} and p.id = ${paymentId}`;
  if (row === undefined) throw new Error(`payment ${paymentId} is missing`);
  return {
    payment: paymentOf(row),
    disputes: jsonOrNull<KeptDispute[]>(row["p_disputes"]) ?? [],
    now: requiredDate(row["at"]),
  };
}

/** One write. Names are those of the columns. */
export interface OutsideFactRow {
  readonly provider: string;
  readonly event_id: string;
  readonly outcome: string;
  readonly tenant_id: string;
  readonly payment_id: string;
  readonly from_version: number;
  readonly updated_at: string;
  /** All disputes of the payment; null: they stay as they are. */
  readonly disputes: readonly KeptDispute[] | null;
  readonly refund: ExternalRefundRow | null;
  readonly ledger: readonly OutsideLedgerRow[];
  readonly timeline: readonly OutsideTimelineRow[];
  /** Their place in the list is their ordinal. */
  readonly events: readonly { readonly id: string; readonly type: string; readonly data: string }[];
}

export interface ExternalRefundRow {
  readonly id: string;
  readonly attempt_id: string;
  /** Of the payment: whose provider account and object the new attempt has. */
  readonly charge_attempt_id: string;
  readonly operation: string;
  readonly amount: number;
  readonly currency: string;
  readonly provider_refund_id: string;
}

export interface OutsideLedgerRow {
  readonly fact: string;
  readonly leg: number;
  readonly currency: string;
  readonly debit_account: string;
  readonly credit_account: string;
  readonly amount: number;
}

export interface OutsideTimelineRow {
  readonly id: string;
  /** `fact`: something that neither is a transition nor comes from a call of ours. */
  readonly kind: "fact" | "transition";
  readonly refund_id: string | null;
  readonly to_status: string | null;
  readonly reason: string;
  readonly attempt_id: string;
  readonly outcome: string | null;
  readonly provider_request_id: string | null;
}

/**
 * Writes a fact with all that follows from it, and the end of the event that told it, in one statement and one commit.
 * False: nothing is written, because the payment's version has moved on, its row is held by somebody (who is not
 * waited for: a held row must not take every connection), or the refund's attempt stands already.
 */
export async function writeOutsideFact(db: Queryable, row: OutsideFactRow): Promise<boolean> {
  const [written] = await db<Row[]>`
    with input as materialized (
      select * from json_to_record(${JSON.stringify(row)}::text::json) as x(
        provider text, event_id text, outcome text, tenant_id text, payment_id text, from_version int,
        updated_at timestamptz, disputes json, refund json, ledger json, timeline json, events json)
    ), owned as materialized (
      select i.* from input i
        cross join lateral (select from payments p where p.tenant_id = i.tenant_id and p.id = i.payment_id
                               and p.version = i.from_version for update skip locked) p
    ), ${externalRefund(db)}, made as (
      select i.* from owned i where i.refund is null or exists (select from attempted)
    ), paid as (
      update payments p
         set disputes = coalesce(i.disputes, p.disputes),
             refund_reserved = p.refund_reserved + coalesce((i.refund ->> 'amount')::bigint, 0),
             version = p.version + 1, updated_at = i.updated_at
        from made i
       where p.tenant_id = i.tenant_id and p.id = i.payment_id and p.version = i.from_version
    ), posted_input as (
      select i.tenant_id, i.payment_id, l.*
        from made i, json_to_recordset(i.ledger) as l(fact text, leg int, currency text, debit_account text,
             credit_account text, amount bigint)
    ), ${postEntries(db)}, noted as (
      insert into timeline (tenant_id, payment_id, id, refund_id, kind, to_status, reason, attempt_id, outcome,
        provider_request_id)
      select i.tenant_id, i.payment_id, t.id, t.refund_id, t.kind, t.to_status, t.reason, t.attempt_id, t.outcome,
             t.provider_request_id
        from made i, json_to_recordset(i.timeline) as t(id text, refund_id text, kind text, to_status text,
             reason text, attempt_id text, outcome text, provider_request_id text)
    ), told as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, ordinal, data)
      select i.tenant_id, e.member ->> 'id', e.member ->> 'type', i.payment_id, i.from_version + 1, e.place - 1,
             (e.member ->> 'data')::json
        from made i, json_array_elements(i.events) with ordinality as e(member, place)
    ), applied as (
      update provider_events e set state = 'applied', due_at = null, applied_at = now(), outcome = i.outcome
        from made i where e.provider = i.provider and e.event_id = i.event_id and e.state <> 'applied'
    )
    select count(*)::int as facts from made`;
  return Number(written?.["facts"]) === 1;
}

/** The refund and the attempt that follows it from now on, for the rows of `owned` that have one. */
function externalRefund(db: Queryable) {
  return db`refunds_told as (
      select i.tenant_id, i.event_id, i.updated_at, r.*
        from owned i, json_to_record(i.refund) as r(id text, attempt_id text, charge_attempt_id text, operation text,
             amount bigint, currency text, provider_refund_id text)
       where i.refund is not null
    ), attempted as (
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, state, provider, provider_account, livemode, parameters, provider_payment_id)
      select c.tenant_id, r.attempt_id, c.payment_id, 'refund', r.operation, r.provider_refund_id, 1, r.event_id,
             r.amount, r.id, 'following', c.provider, c.provider_account, c.livemode, '', c.provider_payment_id
        from refunds_told r ${rowOf(db, "attempts", "c", db`r.tenant_id`, db`r.charge_attempt_id`)}
      on conflict do nothing
      returning tenant_id, id, payment_id, provider
    ), refunded as (
      insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider,
        provider_refund_id, external, created_at, updated_at)
      select a.tenant_id, r.id, a.payment_id, a.id, r.amount, r.currency, '{}'::json, a.provider,
             r.provider_refund_id, true, r.updated_at, r.updated_at
        from attempted a join refunds_told r on r.tenant_id = a.tenant_id and r.attempt_id = a.id
    )`;
}

export interface FlagRow {
  readonly provider: string;
  readonly event_id: string;
  readonly tenant_id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly review_id: string;
  readonly timeline_id: string;
  readonly reason: string;
  /** As a review's write has it. */
  readonly yields_to: string | null;
  /** The provider's object that it is about, where that is not the attempt's own; empty: the attempt. */
  readonly object_id: string;
  /** What was told, for the timeline: the kind of news, a space, and the object. */
  readonly told: string;
  /** It is told again and again: once a person has dismissed it, it opens no further review. */
  readonly repeats: boolean;
}

/**
 * Opens a review of an attempt, or of another object than its own, with its line in the timeline, and ends the event. One
 * that is open gets the reason where that tells more than the one it has. False: it was opened, or closed, just then,
 * and nothing is written: told again, it finds what there is.
 */
export async function flagPayment(db: Queryable, row: FlagRow): Promise<boolean> {
  const ended = await db<Row[]>`
    with input as materialized (
      select * from json_to_record(${JSON.stringify(row)}::text::json) as x(
        provider text, event_id text, tenant_id text, payment_id text, attempt_id text, review_id text,
        timeline_id text, reason text, yields_to text, object_id text, told text, repeats boolean)
    ), heard as materialized (
      select i.*, exists (${dismissal(db)}) as is_dismissed from input i
    ), open as materialized (
      select r.* from reviews r join heard h on r.tenant_id = h.tenant_id and r.attempt_id = h.attempt_id
         and r.object_id = h.object_id
       where r.closed_at is null for update of r
    ), revised as (
      update reviews r set reason = w.reason, history = ${withPresent(db)}
        from heard w join open o using (tenant_id)
       where r.tenant_id = o.tenant_id and r.id = o.id and r.closed_at is null and ${tellsMore(db)}
      returning r.id
    ), opened as (
      insert into reviews (tenant_id, id, payment_id, attempt_id, object_id, reason)
      select tenant_id, review_id, payment_id, attempt_id, object_id, reason from heard h
       where not (h.repeats and h.is_dismissed) and not exists (select from open)
      on conflict (tenant_id, attempt_id, object_id) where closed_at is null do nothing
      returning id
    ), noted as (
      insert into timeline (tenant_id, payment_id, id, kind, reason, attempt_id, outcome)
      select tenant_id, payment_id, timeline_id, 'fact', reason, attempt_id, told from heard
       where exists (select from revised) or exists (select from opened)
    ), applied as (
      update provider_events e set state = 'applied', due_at = null, applied_at = now(), outcome = h.reason
        from heard h where e.provider = h.provider and e.event_id = h.event_id and e.state <> 'applied'
         and (exists (select from open) or exists (select from opened))
    )
    select exists (select from open) or exists (select from opened) or (h.repeats and h.is_dismissed) as is_told
      from heard h`;
  return ended[0]?.["is_told"] === true;
}

/** That a person has dismissed what `i` tells, since it was first told. */
function dismissal(db: Queryable) {
  return db`
    select from timeline t join timeline d on d.tenant_id = t.tenant_id and d.payment_id = t.payment_id
     where t.tenant_id = i.tenant_id and t.payment_id = i.payment_id and t.kind = 'fact' and t.reason = i.reason
       and split_part(t.outcome, ' ', 2) = split_part(i.told, ' ', 2)
       and d.kind = 'request' and d.attempt_id = i.attempt_id and d.at >= t.at
       and d.reason like 'dismiss requested: %'`;
}
