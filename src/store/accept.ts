import type { Queryable } from "./db.js";
import { isInPlace, type Tells } from "./in-place.js";
import { hasRecovered } from "./recovery.js";
import { type Row, requiredDate } from "./rows.js";

/** What one accept inserts: key, payment, first attempt, timeline row and event. Names are those of the columns. */
export interface AcceptRow {
  readonly tenant_id: string;
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly run: number;
  readonly request_id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly timeline_id: string;
  readonly event_id: string;
  readonly amount: number;
  readonly currency: string;
  readonly capture_method: string;
  readonly payment_method: string;
  readonly customer: string | null;
  readonly merchant_order_id: string | null;
  readonly description: string | null;
  readonly statement_descriptor: string | null;
  readonly return_url: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly provider: string;
  readonly provider_account: string | null;
  readonly livemode: boolean;
  readonly parameters: string;
  /** The payment as its first event shows it, as JSON text, without the two times, which are the database's. */
  readonly document: string;
  /** Ids of the attempts of the key's other runs, by commas; null: they have not been asked for. */
  readonly other_runs: string | null;
}

/** Everything but `accepted` has inserted nothing. */
export type Accepted =
  | { readonly type: "accepted"; readonly acceptedAt: Date }
  /** The key, an attempt derived from it, or the order id is there. */
  | { readonly type: "stands" }
  /** Rows were lost here once, the key's record may be among them, and the row does not name its other runs. */
  | { readonly type: "unsearched" }
  /** The data stands elsewhere than it was recorded to, or is being recovered. */
  | { readonly type: "out_of_place" };

/**
 * Accepts many requests in one statement and one commit. A row whose key, attempt or order id stands already inserts
 * nothing: who holds it is read afterwards. A row that loses a race on the attempt or the order id fails the whole
 * statement with 23505: the caller sends the rows again one by one.
 * Keys and order ids are inserted each in their own order, so that two batches cannot deadlock.
 */
export async function acceptPayments(
  db: Queryable,
  rows: readonly AcceptRow[],
  tells: Tells,
): Promise<Accepted[]> {
  const told = await db<Row[]>`
    with input as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as x(
        tenant_id text, operation text, key text, fingerprint text, run int, request_id text, payment_id text,
        attempt_id text, timeline_id text, event_id text, amount bigint, currency text, capture_method text,
        payment_method text, customer text, merchant_order_id text, description text, statement_descriptor text,
        return_url text, metadata json, provider text, provider_account text, livemode boolean, parameters text,
        document text, other_runs text)
    ), place as materialized (
      select ${isInPlace(db, tells)} as in_place, ${hasRecovered(db)} as has_recovered
    ), claimed as (
      insert into idempotency_keys (tenant_id, operation, key, fingerprint, run, resource_id, request_id)
      select i.tenant_id, i.operation, i.key, i.fingerprint, i.run, i.payment_id, i.request_id
        from input i cross join place
       where not exists (select from attempts a where a.tenant_id = i.tenant_id and a.id = i.attempt_id offset 0)
         and not exists (select from order_ids o where o.tenant_id = i.tenant_id
                          and o.merchant_order_id = i.merchant_order_id offset 0)
         and place.in_place and (i.other_runs is not null or not place.has_recovered)
         and not exists (select from unnest(string_to_array(i.other_runs, ',')) as other(id)
                          cross join lateral (select from attempts a where a.tenant_id = i.tenant_id
                                                 and a.id = other.id offset 0) a)
       order by i.tenant_id, i.operation, i.key
      on conflict do nothing
      returning tenant_id, operation, key
    ), fresh as (
      select i.* from input i join claimed using (tenant_id, operation, key)
    ), ${insertPayment(db)}
    select i.payment_id, f.payment_id is not null as accepted, place.in_place,
           place.has_recovered and i.other_runs is null as unsearched, now() as accepted_at
      from input i cross join place left join fresh f on f.tenant_id = i.tenant_id and f.payment_id = i.payment_id`;
  const outcomes = new Map(told.map((row) => [row["payment_id"], outcomeOf(row)]));
  return rows.map((row) => outcomes.get(row.payment_id) ?? { type: "stands" });
}

function outcomeOf(row: Row): Accepted {
  if (row["accepted"] === true) return { type: "accepted", acceptedAt: requiredDate(row["accepted_at"]) };
  if (row["in_place"] !== true) return { type: "out_of_place" };
  return { type: row["unsearched"] === true ? "unsearched" : "stands" };
}

/**
 * Runs a key afresh whose last run, `after`, was proven to be without effect. Null: the key is not (or no longer)
 * `failed_retryable` in that run, so another request was first. 23505: the order id or the attempt is taken.
 */
export async function acceptRetry(
  db: Queryable,
  row: AcceptRow,
  after: number = row.run - 1,
): Promise<Date | null> {
  const [accepted] = await db<Row[]>`
    with input as materialized (
      select * from json_to_recordset(${JSON.stringify([row])}::text::json) as x(
        tenant_id text, operation text, key text, fingerprint text, run int, request_id text, payment_id text,
        attempt_id text, timeline_id text, event_id text, amount bigint, currency text, capture_method text,
        payment_method text, customer text, merchant_order_id text, description text, statement_descriptor text,
        return_url text, metadata json, provider text, provider_account text, livemode boolean, parameters text,
        document text)
    ), claimed as (
      update idempotency_keys k
         set state = 'in_progress', run = i.run, resource_id = i.payment_id, request_id = i.request_id,
             completed_at = null, expires_at = null
        from input i
       where k.tenant_id = i.tenant_id and k.operation = i.operation and k.key = i.key
         and k.state = 'failed_retryable' and k.run = ${after} and k.fingerprint = i.fingerprint
         and k.expires_at > now()
      returning k.tenant_id, k.operation, k.key
    ), fresh as (
      select i.* from input i join claimed using (tenant_id, operation, key)
    ), ${insertPayment(db)}
    select payment_id, now() as accepted_at from fresh`;
  return accepted === undefined ? null : requiredDate(accepted["accepted_at"]);
}

/** What every accept inserts beside its key, for the rows of `fresh`. */
function insertPayment(db: Queryable) {
  return db`stamp as (
      select format(',"created_at":"%1$s","updated_at":"%1$s"}',
                    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as members
    ), paid as (
      insert into payments (tenant_id, id, amount, currency, capture_method, payment_method,
        attempt_id, customer, merchant_order_id, holds_order_id, description, statement_descriptor, return_url, metadata, provider, livemode)
      select tenant_id, payment_id, amount, currency, capture_method, payment_method,
        attempt_id, customer, merchant_order_id, merchant_order_id is not null, description, statement_descriptor, return_url, metadata,
        provider, livemode
        from fresh
    ), held as (
      insert into order_ids (tenant_id, merchant_order_id, payment_id)
      select tenant_id, merchant_order_id, payment_id from fresh where merchant_order_id is not null
       order by tenant_id, merchant_order_id
    ), attempted as (
      insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, provider,
        provider_account, livemode, parameters)
      select tenant_id, attempt_id, payment_id, operation, key, run, request_id, provider, provider_account, livemode, parameters
        from fresh
    ), told as (
      insert into timeline (tenant_id, payment_id, id, kind, to_status, reason, attempt_id)
      select tenant_id, payment_id, timeline_id, 'transition', 'processing', 'accepted', attempt_id from fresh
    ), announced as (
      insert into outbox (tenant_id, id, type, payment_id, sequence, data)
      select tenant_id, event_id, 'payment.created', payment_id, 1,
             (left(document, -1) || stamp.members)::json
        from fresh, stamp
    )`;
}
