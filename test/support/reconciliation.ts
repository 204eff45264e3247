import type { TransactionSql } from "postgres";
import type { ListedCharge, PageOutcome, PageRequest } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import { Comparison } from "../../src/operations/reconcile.js";
import type { PaymentIntentRecord } from "../../src/sandbox/index.js";
import { documentOf, type Harness, type PayOptions, pay } from "./harness.js";
import { withProvider } from "./provider-events.js";
import { until } from "./until.js";

/** What is younger is not compared, in these tests: objects at the provider are counted in whole seconds. */
export const LAG_MS = 200;
export const COMPARING: Readonly<Record<string, string>> = {
  RECONCILE_LAG_MS: String(LAG_MS),
  RECONCILE_INTERVAL_MS: "50",
  PROVIDER_TIMEOUT_MS: "5000",
  ATTEMPT_LEASE_MS: "15000",
};

export interface PaidObject {
  readonly paymentId: string;
  readonly objectId: string;
}

export async function payOne(harness: Harness, options: PayOptions = {}): Promise<PaidObject> {
  const [paid] = await payMany(harness, 1, options);
  if (paid === undefined) throw new Error("nothing was paid");
  return paid;
}

/** Pays so many times, some at once, and yields payments and objects in the order of the objects' making. */
export async function payMany(
  harness: Harness,
  count: number,
  options: PayOptions = {},
): Promise<PaidObject[]> {
  const paid: PaidObject[] = [];
  const AT_ONCE = 10;
  for (let made = 0; made < count; made += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - made) }, () => pay(harness, options));
    for (const document of (await Promise.all(batch)).map(documentOf)) {
      paid.push({ paymentId: document.id, objectId: String(document["provider_payment_id"]) });
    }
  }
  return paid;
}

/** Waits until everything made so far is older than the lag, here and by the provider's whole seconds. */
export async function untilSettled(harness: Harness, lagMs = LAG_MS): Promise<void> {
  await until(
    "everything older than the lag",
    async () => {
      const [row] = await harness.deps.db.sql<{ age_ms: number }[]>`
        select coalesce(extract(epoch from now() - max(updated_at)) * 1000, 1e9)::float8 as age_ms from payments`;
      return row?.age_ms ?? 0;
    },
    (ageMs) => ageMs > lagMs + 1_000,
  );
}

export interface FindingRow {
  readonly kind: string;
  readonly object_id: string;
  readonly state: string;
  readonly payment_id: string | null;
  readonly detail: string;
  readonly ours: unknown;
  readonly theirs: unknown;
}

export async function findingsOf(harness: Harness): Promise<FindingRow[]> {
  return harness.deps.db.sql<FindingRow[]>`
    select * from reconciliation_findings order by kind, object_id`;
}

/** As short words, in order: `amount_differs pi_… open`. */
export async function findingWords(harness: Harness): Promise<string[]> {
  return (await findingsOf(harness)).map((row) => `${row.kind} ${row.object_id} ${row.state}`).toSorted();
}

/** Every row of these payments is lost, as with a backup from before them. */
export async function loseRows(harness: Harness, paymentIds: readonly string[]): Promise<void> {
  await harness.deps.db.sql.begin(async (tx) => {
    for (const id of paymentIds) {
      await tx`delete from ledger_uncounted where payment_id = ${id}`;
      await tx`delete from ledger_entries where payment_id = ${id}`;
      await tx`delete from idempotency_keys where resource_id = ${id}`;
      for (const table of ["timeline", "outbox", "reviews", "refunds", "attempts", "order_ids"]) {
        await tx`delete from ${tx(table)} where payment_id = ${id}`;
      }
      await tx`delete from payments where id = ${id}`;
    }
    await countAnew(tx);
  });
}

/** What was counted of rows that are lost is in no backup's sums: those that are left are counted once more. */
export async function countAnew(tx: TransactionSql): Promise<void> {
  await tx`lock table ledger_balances, ledger_uncounted`;
  await tx`delete from ledger_balances`;
  await tx`delete from ledger_uncounted`;
  await tx`
    insert into ledger_uncounted
    select tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount from ledger_entries`;
}

export async function objectsById(harness: Harness): Promise<Map<string, PaymentIntentRecord>> {
  const objects = await harness.sandbox.control.listPaymentIntents();
  return new Map(objects.map((object) => [object.payment_intent.id, object]));
}

/** Of one account, which every harness has. */
export async function runsOf(harness: Harness) {
  return harness.deps.db.sql<
    { id: string; state: string; trigger: string; pages: number; objects: number; error: string | null }[]
  >`select * from reconciliation_runs order by started_at`;
}

/** One comparison of the last hour, to its end, as `pawl reconcile` makes it. */
export async function compareNow(deps: Deps): Promise<string> {
  const comparison = new Comparison(deps);
  const now = Date.now();
  const id = await comparison.begin({ from: new Date(now - 3_600_000), to: new Date(now - LAG_MS) });
  await comparison.drive(id);
  return id;
}

/** Nothing of any payment is left, here or at the provider; the account and the tenant stay. */
export async function emptyRows(harness: Harness): Promise<void> {
  const { sql } = harness.deps.db;
  // Attempts first: a worker that has one in hand then writes nothing any more.
  const TABLES = [
    ...["refunds", "attempts", "order_ids", "payments", "reviews", "timeline", "outbox", "idempotency_keys"],
    ...[
      "ledger_uncounted",
      "ledger_entries",
      "provider_events",
      "reconciliation_findings",
      "reconciliation_runs",
    ],
  ];
  for (const table of TABLES) await sql`delete from ${sql(table)}`;
  await harness.sandbox.control.reset();
}

/** The provider with so few charges on a page; there must be no more than a real page of them. */
export function inSmallPages(deps: Deps, size: number): Deps {
  const listCharges = async (page: PageRequest): Promise<PageOutcome<ListedCharge>> => {
    const all = await deps.provider.listCharges({ ...page, cursor: null });
    if (all.type !== "page") return all;
    const start = page.cursor === null ? 0 : all.items.findIndex(({ id }) => id === page.cursor) + 1;
    const items = all.items.slice(start, start + size);
    const last = items.at(-1) ?? null;
    const next = start + size < all.items.length && last !== null ? last.id : null;
    return { ...all, items, next, oldest: last?.createdAt ?? null };
  };
  return withProvider(deps, { listCharges });
}

/** A second object of a payment's attempt, as a create makes it whose key the provider has forgotten. */
export async function strayOf(
  { deps }: Harness,
  { paymentId }: PaidObject,
  confirmed = false,
): Promise<string> {
  const [row] = await deps.db.sql<{ parameters: string }[]>`
    select parameters from attempts where payment_id = ${paymentId} and kind = 'charge'`;
  const parameters = row?.parameters ?? "";
  const key = (call: string) => ({ idempotencyKey: `stray-${paymentId}-${call}`, resend: false });
  const made = await deps.provider.createCharge(parameters, key("create"));
  if (made.type !== "object") throw new Error(made.type);
  if (confirmed) await deps.provider.confirmCharge(made.charge.id, parameters, key("confirm"));
  return made.charge.id;
}
