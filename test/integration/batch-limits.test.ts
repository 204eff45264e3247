import postgres from "postgres";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { purgeEndedDeliveries } from "../../src/store/deliveries.js";
import { purgeExpiredKeys } from "../../src/store/idempotency-keys.js";
import { countEntries } from "../../src/store/ledger.js";
import { purgeAppliedEvents } from "../../src/store/provider-events.js";
import { purgeReconciliation } from "../../src/store/reconciliation.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const ROWS = 400;
const LIMIT = 50;

/**
 * What a planner may be told or believe; `DATABASE_URL` of a pooler has none of Pawl's own session settings. Each way
 * to join is forced once: a batch that is a subquery of a join may be taken anew for each row of the other side.
 */
const PLANNERS: Readonly<Record<string, readonly string[]>> = {
  "as it comes": [],
  "nested loops over whole tables": [
    "hashjoin",
    "mergejoin",
    "material",
    "indexscan",
    "bitmapscan",
    "memoize",
  ],
  "hash joins": ["nestloop", "mergejoin", "indexscan", "bitmapscan"],
  "merge joins": ["nestloop", "hashjoin"],
};

let database: TestDatabase;
let sql: postgres.Sql;
beforeEach(async () => {
  database = await createTestDatabase();
  sql = postgres(database.adminUrl, { max: 1, fetch_types: false, onnotice: () => undefined });
});
afterEach(async () => {
  await sql.end();
  await database.drop();
});

interface Batch {
  readonly of: string;
  readonly table: string;
  readonly fill: () => Promise<unknown>;
  readonly take: () => Promise<number>;
}

const BATCHES: readonly Batch[] = [
  {
    of: "ledger entries to count",
    table: "ledger_uncounted",
    fill: () => sql`
      insert into ledger_uncounted (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
      select 'ten_1', 'pay_' || n, 'captured', 1, 'usd', 'receivable', 'sales', 1
        from generate_series(1, ${ROWS}::int) n`,
    take: () => countEntries(sql, LIMIT),
  },
  {
    of: "expired keys",
    table: "idempotency_keys",
    fill: () => sql`
      insert into idempotency_keys (tenant_id, operation, key, fingerprint, state, resource_id, request_id,
                                    response_status, response_body, completed_at, expires_at)
      select 'ten_1', 'payments.create', 'k' || n, 'v1:0', 'completed', 'pay_1', 'req_1', 201, '{}', now(), now()
        from generate_series(1, ${ROWS}::int) n`,
    take: () => purgeExpiredKeys(sql, LIMIT),
  },
  {
    of: "provider events that were applied",
    table: "provider_events",
    fill: () => sql`
      insert into provider_events (provider, event_id, type, livemode, object_id, payload, state, due_at, applied_at)
      select 'stripe', 'evt_' || n, 'refund.updated', false, 're_1', '{}', 'applied', null, now() - interval '1 hour'
        from generate_series(1, ${ROWS}::int) n`,
    take: () => purgeAppliedEvents(sql, 1, LIMIT),
  },
  {
    of: "deliveries that have ended",
    table: "deliveries",
    fill: () => sql`
      insert into deliveries (tenant_id, endpoint_id, event_id, sequence, ordinal, state, due_at, created_at)
      select 'ten_1', 'we_1', 'evt_' || n, 1, 0, 'delivered', null, now() - interval '1 hour'
        from generate_series(1, ${ROWS}::int) n`,
    take: () => purgeEndedDeliveries(sql, LIMIT, 1),
  },
  {
    of: "comparisons that have ended",
    table: "reconciliation_runs",
    fill: () => sql`
      insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, state, phase,
                                       finished_at)
      select 'stripe', 'rec_' || n, 'acct_1', 'worker', now(), now(), 'completed', 'done', now() - interval '1 hour'
        from generate_series(1, ${ROWS}::int) n`,
    take: () => purgeReconciliation(sql, 1, LIMIT),
  },
  {
    of: "findings that are closed",
    table: "reconciliation_findings",
    fill: () => sql`
      insert into reconciliation_findings (provider, kind, object_id, state, detail, first_run, last_run, closed_at)
      select 'stripe', 'missing_here', 'pi_' || n, 'repaired', '', 'rec_1', 'rec_1', now() - interval '1 hour'
        from generate_series(1, ${ROWS}::int) n`,
    take: () => purgeReconciliation(sql, 1, LIMIT),
  },
];

describe.each(Object.entries(PLANNERS))("planned with %s, a batch is as large as its limit", (_name, off) => {
  test.each(BATCHES)("of $of", async ({ table, fill, take }) => {
    for (const way of off) await sql.unsafe(`set enable_${way} = off`);
    await fill();
    expect(await take()).toBe(LIMIT);
    const [left] = await sql`select count(*)::int as rows from ${sql(table)}`;
    expect(left?.["rows"]).toBe(ROWS - LIMIT);
  });
});
