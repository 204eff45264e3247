import { expect, test } from "vitest";
import { documentOf, newKey, pay, until, untilStatus } from "../support/harness.js";
import { HASTY, useStage } from "../support/stage.js";

const stage = useStage();
const ORDER = { merchant_order_id: "order-1" };
const TAKEN = "merchant_order_id_taken";

test("an order id is held from the accept on, while the payment runs and once it succeeded", async () => {
  const harness = await stage.start();
  await harness.sandbox.control.addFault({
    match: { call: "payment_intents.create" },
    fault: { type: "hang" },
  });
  const key = newKey();
  const first = pay(harness, { key, input: ORDER });
  await harness.sandbox.control.waitForHeld();
  const refused = { code: TAKEN, extra: { payment: { status: "processing" } } };
  await expect(pay(harness, { input: ORDER })).rejects.toMatchObject(refused);
  await harness.sandbox.control.release();
  const { id } = documentOf(await first);
  await expect(pay(harness, { input: ORDER })).rejects.toMatchObject({
    code: TAKEN,
    extra: { payment: { id } },
  });
  expect(await pay(harness, { key, input: ORDER })).toMatchObject({ type: "final", replayed: true });
});

test("an order id that is taken is not stored: the key stays free, for another request, too", async () => {
  const harness = await stage.start();
  await pay(harness, { input: ORDER });
  const key = newKey();
  await expect(pay(harness, { key, input: ORDER })).rejects.toMatchObject({ code: TAKEN });
  const other = await pay(harness, { key, input: { merchant_order_id: "order-2" } });
  expect(documentOf(other).status).toBe("succeeded");
});

test("the same order id of two tenants is two order ids", async () => {
  const harness = await stage.start();
  const key = newKey();
  const foreign = { ...harness, caller: { ...harness.caller, tenantId: "ten_other" } };
  const both = await Promise.all([pay(harness, { key, input: ORDER }), pay(foreign, { key, input: ORDER })]);
  expect(both.map((answer) => documentOf(answer).status)).toEqual(["succeeded", "succeeded"]);
  expect(new Set(both.map((answer) => documentOf(answer).id)).size).toBe(2);
});

test("a declined payment holds its order id until its object is canceled at the provider", async () => {
  const harness = await stage.start({ env: HASTY });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.cancel" },
    times: null,
    fault: { type: "error", status: 500 },
  });
  const declined = await pay(harness, { input: { ...ORDER, payment_method: "pm_card_visa_chargeDeclined" } });
  expect(documentOf(declined).status).toBe("failed");
  await control.waitForRequests({ filter: { call: "payment_intents.cancel" }, count: 3 });
  await expect(pay(harness, { input: ORDER })).rejects.toMatchObject({
    code: TAKEN,
    extra: { payment: { id: documentOf(declined).id, status: "failed" } },
  });
  await control.clearFaults();
  await until(
    "a free order id",
    () => harness.deps.db.sql`select 1 from payments where holds_order_id`,
    (rows) => rows.length === 0,
  );
  expect(documentOf(await pay(harness, { input: ORDER })).status).toBe("succeeded");
});

test("a payment that failed without effect gives its order id back, and its key takes it again", async () => {
  const harness = await stage.start({ env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" } });
  const { control } = harness.sandbox;
  const key = newKey();
  await control.closeListener();
  await expect(pay(harness, { key, input: ORDER })).rejects.toMatchObject({ code: "provider_unavailable" });
  await control.openListener();
  expect(documentOf(await pay(harness, { key, input: ORDER })).status).toBe("succeeded");
  await expect(pay(harness, { input: ORDER })).rejects.toMatchObject({ code: TAKEN });
});

test("a key that may run again is told when its order id went to another payment meanwhile, and stays as it was", async () => {
  const harness = await stage.start({ env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" } });
  const { control } = harness.sandbox;
  const key = newKey();
  await control.closeListener();
  await expect(pay(harness, { key, input: ORDER })).rejects.toMatchObject({ code: "provider_unavailable" });
  await control.openListener();
  const { id } = documentOf(await pay(harness, { input: ORDER }));
  await untilStatus(harness, id, "succeeded");
  const before = await harness.deps.db.sql`select * from idempotency_keys where key = ${key}`;
  await expect(pay(harness, { key, input: ORDER })).rejects.toMatchObject({
    code: TAKEN,
    extra: { payment: { id } },
  });
  expect(await harness.deps.db.sql`select * from idempotency_keys where key = ${key}`).toEqual(before);
});
