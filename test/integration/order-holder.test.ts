import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/store/db.js";
import { readOrderHolder } from "../../src/store/payments.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

/** So many that a plan which goes through all pairs of them ends at the statement's own time-out. */
const PAYMENTS = 8_000;

let fresh: TestDatabase;
let db: Database;

beforeAll(async () => {
  fresh = await createTestDatabase();
  db = await openDatabase({ url: fresh.url, poolMax: 1, prepare: true });
  const admin = postgres(fresh.adminUrl, { max: 1, onnotice: () => undefined });
  // What the planner knows is of empty tables, as after a crash of the server, which forgets how much was written since.
  await admin`analyze payments, attempts, order_ids`;
  await admin`
    with made as (select i, md5(i::text) as id from generate_series(1, ${PAYMENTS}::int) as i),
    paid as (
      insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id, merchant_order_id,
        holds_order_id, metadata, provider, livemode)
      select 'ten_1', 'pay_' || id, 100, 'usd', 'automatic', 'pm_card_visa', 'att_' || id, 'order ' || i, true, '{}',
             'stripe', false from made),
    attempted as (
      insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, provider, livemode,
        parameters, state, due_at)
      select 'ten_1', 'att_' || id, 'pay_' || id, 'payments.create', id, 1, 'req_1', 'stripe', false, '{}', 'completed',
             null from made)
    insert into order_ids (tenant_id, merchant_order_id, payment_id) select 'ten_1', 'order ' || i, 'pay_' || id from made`;
  await admin.end();
});
afterAll(async () => {
  await db.close();
  await fresh.drop();
});

it("who holds an order id is found by its keys, also where statistics are of empty tables", async () => {
  const holder = await readOrderHolder(db.sql, "ten_1", "order 17");
  expect(holder?.merchantOrderId).toBe("order 17");
  expect(await readOrderHolder(db.sql, "ten_1", "order of nobody")).toBeNull();
});
