import { expect, test } from "vitest";
import { getIdempotencyKey } from "../../src/operations/read-idempotency-key.js";
import { documentOf, type Harness, newKey, pay } from "../support/harness.js";
import { HASTY, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const REUSED = { code: "idempotency_key_reused" };

/** The same key with another amount is refused, leaves every row as it was, and sends nothing. */
async function expectRefusedUntouched(harness: Harness, key: string): Promise<void> {
  const before = await rowsOf(harness);
  const wire = await wireOf(harness);
  for (const explicit of [false, true]) {
    await expect(pay(harness, { key, explicit, waitMs: 50, input: { amount: 4300 } })).rejects.toMatchObject(
      REUSED,
    );
  }
  expect(await rowsOf(harness)).toEqual(before);
  expect(await wireOf(harness)).toEqual(wire);
}

async function rowsOf({ deps: { db } }: Harness) {
  return {
    keys: await db.sql`select * from idempotency_keys order by key`,
    payments: await db.sql`select id from payments order by id`,
    outbox: await db.sql`select id from outbox order by id`,
  };
}

test("a key of a payment that succeeded is not good for another request", async () => {
  const harness = await stage.start();
  const key = newKey();
  await pay(harness, { key });
  await expectRefusedUntouched(harness, key);
});

test("a key of a payment that was declined is not good for another request", async () => {
  const harness = await stage.start();
  const key = newKey();
  await pay(harness, { key, input: { payment_method: "pm_card_visa_chargeDeclined" } });
  await harness.sandbox.control.waitForRequests({
    filter: { call: "payment_intents.retrieve" },
    until: "settled",
  });
  await expectRefusedUntouched(harness, key);
});

test("a key whose payment is still running is not good for another request", async () => {
  const harness = await stage.start();
  const key = newKey();
  await harness.sandbox.control.addFault({
    match: { call: "payment_intents.create" },
    fault: { type: "hang" },
  });
  const first = pay(harness, { key });
  await harness.sandbox.control.waitForHeld();
  await expectRefusedUntouched(harness, key);
  await harness.sandbox.control.release();
  expect(documentOf(await first)).toMatchObject({ status: "succeeded", amount: 4200 });
});

test("a key whose payment failed without effect runs again for the same request only", async () => {
  const harness = await stage.start({ env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" } });
  const key = newKey();
  await harness.sandbox.control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await expectRefusedUntouched(harness, key);
  await harness.sandbox.control.openListener();
  expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
});

test("what a key remembers can be asked for", async () => {
  const harness = await stage.start();
  const key = newKey();
  const answer = await pay(harness, { key });
  const view = await getIdempotencyKey(harness.deps, harness.caller, "payments.create", key);
  expect(view).toMatchObject({
    state: "completed",
    run: 1,
    responseStatus: 201,
    resourceId: documentOf(answer).id,
  });
  const foreign = { ...harness.caller, tenantId: "ten_other" };
  await expect(getIdempotencyKey(harness.deps, foreign, "payments.create", key)).rejects.toMatchObject({
    code: "not_found",
  });
  await expect(
    getIdempotencyKey(harness.deps, harness.caller, "payments.capture", key),
  ).rejects.toMatchObject({
    code: "not_found",
  });
});
