import { afterAll, beforeAll, expect, test } from "vitest";
import { firstIdAt } from "../../src/lib/ids.js";
import { readChargesInBand, readRefundsInBand } from "../../src/store/counterparts.js";
import { type Database, openDatabase } from "../../src/store/db.js";
import { type Crowd, makeRows, tenantIdOf } from "../support/reconcile-crowd.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const CROWD: Crowd = {
  count: 2_000,
  tenants: 40,
  stepMs: 100,
  startMs: Date.UTC(2026, 10, 1),
  account: "acct_1",
};
const FILTER = { provider: "stripe", account: CROWD.account, livemode: false };
const LIMIT = 500;

let database: TestDatabase;
/** One connection: what its statements have read is told by itself. */
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = await openDatabase({ url: database.url, poolMax: 1, prepare: true });
  await makeRows(db.sql, CROWD);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

function wholeTime(prefix: "pay" | "re", limit: number) {
  return { from: firstIdAt(prefix, new Date(CROWD.startMs)), before: firstIdAt(prefix, new Date()), limit };
}

/** Every row of the crowd's time, as a comparison reads them: each statement goes on where the last one ended. */
async function readAll(prefix: "pay" | "re", limit: number): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const whole = wholeTime(prefix, limit);
    const band = { ...whole, before: ids.at(-1) ?? whole.before };
    const { rows, isAll } =
      prefix === "pay"
        ? await readChargesInBand(db.sql, FILTER, band)
        : await readRefundsInBand(db.sql, FILTER, band);
    for (const { ours } of rows) ids.push("refundId" in ours ? ours.refundId : ours.paymentId);
    if (isAll) return ids;
    expect(rows.length).toBeGreaterThan(0);
  }
}

async function idsOf(table: "payments" | "refunds"): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`select id from ${db.sql(table)} order by id desc`;
  return rows.map(({ id }) => id);
}

async function attemptsRead(): Promise<number> {
  await db.sql`select pg_stat_force_next_flush()`;
  const [row] = await db.sql<{ read: number }[]>`
    select (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_user_tables where relname = 'attempts'`;
  return row?.read ?? 0;
}

test("a statement reads as many attempts as it yields, however many tenants have older ones", async () => {
  const before = await attemptsRead();
  const { rows } = await readChargesInBand(db.sql, FILTER, wholeTime("pay", LIMIT));
  expect(rows).toHaveLength(LIMIT);
  expect((await attemptsRead()) - before).toBeLessThanOrEqual(LIMIT);
});

test("each row of a long time is read once, newest first, in statements that go on where the last one ended", async () => {
  expect(await readAll("pay", LIMIT)).toEqual(await idsOf("payments"));
  expect(await readAll("re", 7)).toEqual(await idsOf("refunds"));
});

test("none is passed over where few of a great many tenants have most of the rows", async () => {
  await db.sql`insert into tenants (id, name) select 'ten_idle_' || n, 'idle' from generate_series(1, 2000) n`;
  const busy = tenantIdOf(CROWD, 1);
  await db.sql`
    insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id, holds_order_id,
      metadata, provider, livemode)
    select ${busy}, id || 'z', amount, currency, capture_method, payment_method, attempt_id || 'z', false, '{}', 'stripe',
           false from payments where tenant_id <> ${busy}`;
  await db.sql`
    insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, provider, livemode,
      parameters)
    select tenant_id, attempt_id, id, 'payments.create', id, 1, 'req_1', 'stripe', false, '{}'
      from payments where id like '%z'`;
  expect(await readAll("pay", LIMIT)).toEqual(await idsOf("payments"));
});
