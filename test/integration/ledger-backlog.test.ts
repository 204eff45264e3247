import { expect, it } from "vitest";
import { openDatabase } from "../../src/store/db.js";
import { countEntries } from "../../src/store/ledger.js";
import { connectAdmin, rowsRead } from "../support/doctor-crowd.js";
import { createTestDatabase } from "../support/test-database.js";

const BACKLOG = 5_000;
const BATCH = 100;

it("reads of a backlog of entries only the batch, by a plan that was made while nothing waited", async () => {
  const database = await createTestDatabase();
  const admin = connectAdmin(database.adminUrl);
  const name = new URL(database.url).pathname.slice(1);
  await admin`alter database ${admin(name)} set plan_cache_mode = 'force_generic_plan'`;
  await admin`vacuum analyze ledger_uncounted`;
  const db = await openDatabase({ url: database.url, poolMax: 1, prepare: true });
  try {
    expect(await countEntries(db.sql, BATCH)).toBe(0);
    await admin`
      insert into ledger_uncounted (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
      select 'ten_1', 'pay_' || n, 'captured', 1, 'usd', 'provider_balance', 'sales', 100
        from generate_series(1, ${BACKLOG}::int) n`;
    const before = (await rowsRead(db.sql)).get("ledger_uncounted") ?? 0;
    expect(await countEntries(db.sql, BATCH)).toBe(BATCH);
    const read = ((await rowsRead(db.sql)).get("ledger_uncounted") ?? 0) - before;
    expect(read).toBeGreaterThanOrEqual(BATCH);
    expect(read).toBeLessThanOrEqual(3 * BATCH);
  } finally {
    await db.close();
    await admin.end();
    await database.drop();
  }
});
