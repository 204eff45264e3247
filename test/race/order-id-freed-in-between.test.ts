import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";
import { untilWaiting } from "../support/lock-waits.js";

let harness: Harness;
let holder: postgres.Sql;
let keeper: postgres.Sql;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
  const connect = () =>
    postgres(harness.database.url, { max: 1, fetch_types: false, onnotice: () => undefined });
  [holder, keeper] = [connect(), connect()];
});
afterAll(async () => {
  await holder.end();
  await keeper.end();
  await harness.stop();
});

/** A key whose first run was without effect, and gave its order id back. */
async function ranInVain(key: string, orderId: string): Promise<void> {
  const { sql } = harness.deps.db;
  await pay(harness, { key, input: { merchant_order_id: orderId }, waitMs: 0 });
  await sql`update attempts set state = 'completed', due_at = null where idempotency_key = ${key}`;
  await sql`update payments set status = 'failed', holds_order_id = false where merchant_order_id = ${orderId}`;
  await sql`delete from order_ids where merchant_order_id = ${orderId}`;
  await sql`update idempotency_keys set state = 'failed_retryable', expires_at = now() + interval '1 day'
             where key = ${key}`;
}

test("a key that runs again looks again where its order id was taken, and is free by the time it asks by whom", async () => {
  const { sql } = harness.deps.db;
  const [key, orderId] = [newKey(), "order-1"];
  await ranInVain(key, orderId);
  await holder`begin`;
  await holder`insert into order_ids (tenant_id, merchant_order_id, payment_id)
               values (${harness.caller.tenantId}, ${orderId}, 'pay_gone')`;
  const answered = pay(harness, { key, input: { merchant_order_id: orderId }, waitMs: 0 }).then(
    (answer) => documentOf(answer).status,
    (error: unknown) => `refused: ${String((error as { code?: string }).code)}`,
  );
  await untilWaiting(harness.deps.db);
  // Behind the first try, and before the second: that one stands at the key until the order id is free.
  await keeper`begin`;
  const kept = keeper`select from idempotency_keys where key = ${key} for update`.then(() => undefined);
  await untilWaiting(harness.deps.db, 2);
  await holder`commit`;
  await kept;
  await Promise.race([answered, untilWaiting(harness.deps.db)]);
  await sql`delete from order_ids where payment_id = 'pay_gone'`;
  await keeper`rollback`;
  expect(await answered).toBe("processing");
  expect(await sql`select run from attempts where idempotency_key = ${key} order by run`).toEqual([
    { run: 1 },
    { run: 2 },
  ]);
});
