import type { AttemptKind } from "../domain/attempt.js";
import type { KeptDispute } from "../domain/dispute.js";
import type { LedgerEntry } from "../domain/ledger.js";
import type { PaymentStatus } from "../domain/payment.js";
import type { OurCharge } from "../domain/reconcile.js";
import type { OurRefund } from "../domain/reconcile-after-charge.js";
import type { RefundStatus } from "../domain/refund.js";
import type { Queryable } from "./db.js";
import { rowOf } from "./look-ups.js";
import { jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

/**
 * What we have of objects that the provider shows: read by primary keys and by the index on the object's id. Each
 * look-up stands behind an `offset 0`, in the order in which it is written: a plan that was made while the tables were
 * empty, or by a server that cannot skip in an index, would begin with a whole table.
 */

/** An object of the provider's, and whom its marks name. */
export interface WantedObject {
  readonly objectId: string;
  readonly attemptId: string | null;
  readonly tenantId: string | null;
}

/** A charge of ours, with what its payment shows of disputes. */
export interface ReadCharge extends OurCharge {
  readonly disputes: readonly KeptDispute[];
}

/** Of a charge attempt `a` and its payment `p`. */
function chargeColumns(db: Queryable) {
  return db`a.tenant_id, a.id, a.payment_id, a.kind, a.livemode, a.provider_payment_id, a.state,
      coalesce(a.lease_expires_at > now(), false) as leased,
      a.nudged or coalesce(a.due_at <= now(), false) as due,
      p.status, p.amount, p.currency, p.amount_captured, p.amount_capturable, p.open_effect, p.updated_at, p.disputes`;
}

function wantedRows(db: Queryable, wanted: readonly WantedObject[]) {
  const rows = wanted.map(({ objectId, attemptId, tenantId }) => ({
    object_id: objectId,
    attempt_id: attemptId,
    tenant_id: tenantId,
  }));
  return db`json_to_recordset(${JSON.stringify(rows)}::text::json) as w(object_id text, attempt_id text,
      tenant_id text)`;
}

/** Of the rows of `w`, by the primary key. */
function markedAttempt(db: Queryable) {
  return rowOf(db, "attempts", "a", db`w.tenant_id`, db`w.attempt_id`);
}

function paymentOfAttempt(db: Queryable) {
  return rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`);
}

function attemptOfRefund(db: Queryable) {
  return rowOf(db, "attempts", "a", db`r.tenant_id`, db`r.attempt_id`);
}

/** Whose objects these are, by the object's id. */
export async function readOwners(
  db: Queryable,
  provider: string,
  wanted: readonly WantedObject[],
): Promise<Map<string, ReadCharge>> {
  const rows = await db<Row[]>`
    select w.object_id as wanted, ${chargeColumns(db)}
      from ${wantedRows(db, wanted)}
      cross join lateral (select * from attempts a where a.kind = 'charge' and a.provider_payment_id = w.object_id
                             and a.provider = ${provider} offset 0) a
      ${paymentOfAttempt(db)}`;
  return byWanted(rows, chargeOf);
}

/** The attempts that the objects' marks name, of whatever kind, with their payments. */
export async function readMarked(
  db: Queryable,
  wanted: readonly WantedObject[],
): Promise<Map<string, ReadCharge>> {
  const rows = await db<Row[]>`
    select w.object_id as wanted, ${chargeColumns(db)}
      from ${wantedRows(db, wanted)} ${markedAttempt(db)} ${paymentOfAttempt(db)}`;
  return byWanted(rows, chargeOf);
}

/** Which of these tenants exist here. */
export async function readTenants(db: Queryable, tenantIds: readonly string[]): Promise<Set<string>> {
  const rows = await db<Row[]>`
    select t.id from json_array_elements_text(${JSON.stringify(tenantIds)}::text::json) as w(id)
      join tenants t on t.id = w.id`;
  return new Set(rows.map((row) => row["id"] as string));
}

/** The refunds with these ids at the provider, of these charge objects' payments; `objectId` is the refund's. */
export async function readRefundsOf(
  db: Queryable,
  provider: string,
  wanted: readonly { readonly refundId: string; readonly chargeId: string }[],
): Promise<Map<string, OurRefund>> {
  const asked = wanted.map(({ refundId, chargeId }) => ({ refund_id: refundId, charge_id: chargeId }));
  const rows = await db<Row[]>`
    select w.refund_id as wanted, ${refundColumns(db)}
      from json_to_recordset(${JSON.stringify(asked)}::text::json) as w(refund_id text, charge_id text)
      cross join lateral (select * from attempts c where c.kind = 'charge' and c.provider_payment_id = w.charge_id
                             and c.provider = ${provider} offset 0) c
      cross join lateral (select * from refunds r where r.payment_id = c.payment_id and r.tenant_id = c.tenant_id
                             and r.provider_refund_id = w.refund_id offset 0) r
      ${attemptOfRefund(db)}`;
  return byWanted(rows, refundOf);
}

/** The refunds that the marks of these objects name. */
export async function readMarkedRefunds(
  db: Queryable,
  wanted: readonly WantedObject[],
): Promise<Map<string, OurRefund>> {
  const rows = await db<Row[]>`
    select w.object_id as wanted, ${refundColumns(db)}
      from ${wantedRows(db, wanted)} ${markedAttempt(db)}
      ${rowOf(db, "refunds", "r", db`a.tenant_id`, db`a.refund_id`)}`;
  return byWanted(rows, refundOf);
}

function refundColumns(db: Queryable) {
  return db`a.tenant_id, a.id, a.payment_id, a.kind, a.livemode, a.provider_payment_id,
      coalesce(a.lease_expires_at > now(), false) as leased,
      a.nudged or coalesce(a.due_at <= now(), false) as due, r.id as refund_id, r.provider_refund_id, r.status,
      r.amount, r.currency, r.updated_at`;
}

/** Between two ids of a kind, which tell when they were made: from `from` on, before `before`, newest first. */
export interface IdBand {
  readonly from: string;
  readonly before: string;
  readonly limit: number;
}

export interface AccountFilter {
  readonly provider: string;
  readonly account: string;
  readonly livemode: boolean;
}

/** A row of a band, and its object at this account of the provider; null: it has none there. */
export interface BandRow<Ours> {
  readonly ours: Ours;
  readonly objectId: string | null;
}

/** `isAll`: there are no others in the band; otherwise they are older than the last of these, and there is one. */
export interface BandRows<Row> {
  readonly rows: readonly Row[];
  readonly isAll: boolean;
}

/**
 * The newest charges of ours in a band of their payments' ids, without a gap; across tenants, one range each. Those without
 * an object at this account are among them: however many there are, few rows are read of each tenant.
 */
export async function readChargesInBand(
  db: Queryable,
  filter: AccountFilter,
  band: IdBand,
): Promise<BandRows<BandRow<ReadCharge>>> {
  const rows = await db<Row[]>`
    with ${newestOf(db, "payments", band)}
    select ${chargeColumns(db)}, case when ${isAtAccount(db, filter)} then a.provider_payment_id end as object_id, n.is_all
      from newest n
      ${rowOf(db, "payments", "p", db`n.tenant_id`, db`n.id`)}
      ${rowOf(db, "attempts", "a", db`p.tenant_id`, db`p.attempt_id`)}
     order by n.id desc`;
  return bandOf(rows, band, chargeOf);
}

/** The same of refunds, with the provider's names of them. */
export async function readRefundsInBand(
  db: Queryable,
  filter: AccountFilter,
  band: IdBand,
): Promise<BandRows<BandRow<OurRefund>>> {
  const rows = await db<Row[]>`
    with ${newestOf(db, "refunds", band)}
    select ${refundColumns(db)}, case when ${isAtAccount(db, filter)} then r.provider_refund_id end as object_id, n.is_all
      from newest n
      ${rowOf(db, "refunds", "r", db`n.tenant_id`, db`n.id`)}
      ${attemptOfRefund(db)}
     order by n.id desc`;
  return bandOf(rows, band, refundOf);
}

/** Ids that are read of all tenants together, where there are not too many tenants. */
const MOST_IDS = 50_000;
/** Ids that are read of each tenant at least. */
const FEWEST_IDS = 50;

/**
 * CTEs up to `newest (tenant_id, id, is_all)`. Of each tenant's range only the first ids are read: all of them together
 * have no gap down to the newest id that any tenant's reading was cut at, and what is older is left for the next statement.
 */
function newestOf(db: Queryable, table: "payments" | "refunds", { from, before, limit }: IdBand) {
  return db`most as materialized (
      select greatest(${FEWEST_IDS}::int, least(${limit}::int, ${MOST_IDS}::int / greatest(count(*), 1)))::int as ids from tenants
    ), heads as materialized (
      select h.tenant_id, h.id from tenants t
       cross join lateral (select x.tenant_id, x.id from ${db(table)} x where x.tenant_id = t.id and x.id >= ${from}
                              and x.id < ${before} order by x.id desc limit (select ids from most)) h
    ), cut as materialized (
      select max(last) as id from (select min(id) as last from heads group by tenant_id
                                    having count(*) = (select ids from most)) full_ones
    ), newest as materialized (
      select h.tenant_id, h.id, cut.id is null as is_all from heads h cross join cut
       where cut.id is null or h.id >= cut.id order by h.id desc limit ${limit}::int
    )`;
}

function bandOf<Ours>(
  rows: readonly Row[],
  { limit }: IdBand,
  read: (row: Row) => Ours,
): BandRows<BandRow<Ours>> {
  const isAll = rows.length < limit && (rows[0]?.["is_all"] ?? true) === true;
  return {
    rows: rows.map((row) => ({ ours: read(row), objectId: textOrNull(row["object_id"]) })),
    isAll,
  };
}

function isAtAccount(db: Queryable, { provider, account, livemode }: AccountFilter) {
  return db`a.provider = ${provider} and a.livemode = ${livemode} and a.provider_account = ${account}`;
}

/** The first entries of these facts, each of its own payment. */
export async function readFacts(
  db: Queryable,
  facts: readonly { readonly tenantId: string; readonly paymentId: string; readonly fact: string }[],
): Promise<Map<string, Pick<LedgerEntry, "currency" | "debitAccount" | "amount">>> {
  const wanted = facts.map(({ tenantId, paymentId, fact }) => ({
    tenant_id: tenantId,
    payment_id: paymentId,
    fact,
  }));
  const rows = await db<Row[]>`
    select e.fact as wanted, e.currency, e.debit_account, e.amount
      from json_to_recordset(${JSON.stringify(wanted)}::text::json) as w(tenant_id text, payment_id text, fact text)
      cross join lateral (select * from ledger_entries e where e.tenant_id = w.tenant_id
                             and e.payment_id = w.payment_id and e.fact = w.fact and e.leg = 1 offset 0) e`;
  return byWanted(rows, (row) => ({
    currency: row["currency"] as string,
    debitAccount: row["debit_account"] as LedgerEntry["debitAccount"],
    amount: Number(row["amount"]),
  }));
}

function byWanted<T>(rows: readonly Row[], read: (row: Row) => T): Map<string, T> {
  return new Map(rows.map((row) => [row["wanted"] as string, read(row)]));
}

function chargeOf(row: Row): ReadCharge {
  return {
    ...referenceOf(row),
    ended: row["state"] === "completed",
    inWork: row["leased"] as boolean,
    isDue: row["due"] as boolean,
    status: row["status"] as PaymentStatus,
    amount: Number(row["amount"]),
    currency: row["currency"] as string,
    amountCaptured: Number(row["amount_captured"]),
    amountCapturable: Number(row["amount_capturable"]),
    hasOpenEffect: textOrNull(row["open_effect"]) !== null,
    changedAt: requiredDate(row["updated_at"]),
    disputes: jsonOrNull<KeptDispute[]>(row["disputes"]) ?? [],
  };
}

function refundOf(row: Row): OurRefund {
  return {
    attempt: referenceOf(row),
    refundId: row["refund_id"] as string,
    providerRefundId: textOrNull(row["provider_refund_id"]),
    status: row["status"] as RefundStatus,
    amount: Number(row["amount"]),
    currency: row["currency"] as string,
    inWork: row["leased"] as boolean,
    isDue: row["due"] as boolean,
    changedAt: requiredDate(row["updated_at"]),
  };
}

function referenceOf(row: Row) {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    paymentId: row["payment_id"] as string,
    kind: row["kind"] as AttemptKind,
    livemode: row["livemode"] as boolean,
    objectId: textOrNull(row["provider_payment_id"]),
  };
}
