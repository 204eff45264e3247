import { expect, test } from "vitest";
import { documentOf, newKey, pay, until, untilStatus } from "../support/harness.js";
import { onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const DECLINED = { payment_method: "pm_card_visa_chargeDeclined", merchant_order_id: "order-1" };
const BY_CUSTOMER = { payment_method: "pm_card_visa" };

test("a declined object that the customer pays before our cancel lands is adopted as paid", async () => {
  const gate = stage.gate("before_fence");
  const harness = await stage.start({ probe: gate.probe });
  const key = newKey();
  const declined = await pay(harness, { key, input: DECLINED });
  if (declined.type !== "final") throw new Error("not final");
  expect(declined.response.status).toBe(402);
  await gate.reached();
  const { payment_intent: object } = await onlyObject(harness);
  await harness.sandbox.control.confirmAsCustomer(object.id, BY_CUSTOMER);
  gate.open();
  const payment = await untilStatus(harness, documentOf(declined).id, "succeeded");
  expect(payment).toMatchObject({ failure: null, amountCaptured: 4200, holdsOrderId: true });
  expect((await wireOf(harness)).slice(-2)).toEqual(["fence 400", "retrieve 200"]);
  const replay = await pay(harness, { key, input: DECLINED });
  expect(replay).toMatchObject({ type: "final", replayed: true, response: declined.response });
});

test("a declined object cannot be paid by the customer once our cancel has landed", async () => {
  const harness = await stage.start();
  const declined = await pay(harness, { input: DECLINED });
  expect(documentOf(declined).status).toBe("failed");
  const { payment_intent: object } = await onlyObject(harness);
  await until(
    "a canceled object",
    () => harness.sandbox.control.getPaymentIntent(object.id),
    (record) => record.payment_intent.status === "canceled",
  );
  await expect(harness.sandbox.control.confirmAsCustomer(object.id, BY_CUSTOMER)).rejects.toThrow(
    /status of canceled/,
  );
  expect((await onlyObject(harness)).successful_charges).toBe(0);
});

test("a declined object that the customer pays after its order id went elsewhere is shown to a person", async () => {
  const harness = await stage.start();
  const declined = await pay(harness, { input: DECLINED });
  const { payment_intent: object } = await onlyObject(harness);
  await expect
    .poll(async () => (await harness.deps.db.sql`select 1 from payments where holds_order_id`).length)
    .toBe(0);
  const second = await pay(harness, { input: { merchant_order_id: "order-1" } });
  expect(documentOf(second).status).toBe("succeeded");
  // As no call could make it: a canceled object that was paid all the same, and an attempt that is asked about again.
  await harness.sandbox.control.patchPaymentIntent(object.id, { status: "succeeded", amount_received: 4200 });
  await harness.deps.db
    .sql`update attempts set state = 'fencing', due_at = now() where provider_payment_id = ${object.id}`;
  await untilStatus(harness, documentOf(declined).id, "needs_review");
  const [review] = await harness.deps.db.sql<{ reason: string }[]>`select reason from reviews`;
  expect(review?.reason).toBe("paid_after_end");
});
