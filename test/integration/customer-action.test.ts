import { describe, expect, test } from "vitest";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { documentOf, newKey, pay, until, untilStatus } from "../support/harness.js";
import { onlyObject, useStage } from "../support/stage.js";

const stage = useStage();

function storedOf(answer: KeyedAnswer) {
  if (answer.type !== "final") throw new Error("no final answer");
  return answer.response;
}

async function payWithAuthentication(payment_method = "pm_card_threeDSecure2Required") {
  const harness = await stage.start();
  const key = newKey();
  const input = { payment_method, return_url: "https://merchant.example/back", merchant_order_id: "order-1" };
  const answer = await pay(harness, { key, input });
  expect(storedOf(answer).status).toBe(201);
  expect(documentOf(answer)).toMatchObject({
    status: "requires_action",
    next_action: { type: "redirect_to_url" },
  });
  const object = await onlyObject(harness);
  return {
    harness,
    key,
    input,
    answer,
    objectId: object.payment_intent.id,
    paymentId: documentOf(answer).id,
  };
}

describe("a payment for which the customer must act", () => {
  test("succeeds when the customer has acted, and its key replays the answer of that day", async () => {
    const { harness, key, input, answer, objectId, paymentId } = await payWithAuthentication();
    await harness.sandbox.control.authenticate(objectId, "complete");
    expect(await untilStatus(harness, paymentId, "succeeded")).toMatchObject({
      nextAction: null,
      amountCaptured: 4200,
    });
    const replay = await pay(harness, { key, input });
    expect(storedOf(replay)).toEqual(storedOf(answer));
  });

  test("fails when the customer fails, its object is canceled, and its order id is free again", async () => {
    const { harness, key, input, answer, objectId, paymentId } = await payWithAuthentication();
    await harness.sandbox.control.authenticate(objectId, "fail");
    expect(await untilStatus(harness, paymentId, "failed")).toMatchObject({
      failure: { code: "payment_intent_authentication_failure", retry: "new_key" },
    });
    await until(
      "a canceled object",
      () => harness.sandbox.control.getPaymentIntent(objectId),
      (record) => record.payment_intent.status === "canceled",
    );
    expect(storedOf(await pay(harness, { key, input }))).toEqual(storedOf(answer));
    await expect
      .poll(async () => (await harness.deps.db.sql`select 1 from payments where holds_order_id`).length)
      .toBe(0);
    expect(documentOf(await pay(harness, { input: { merchant_order_id: "order-1" } })).status).toBe(
      "succeeded",
    );
  });

  test("fails when the bank declines after the customer has acted", async () => {
    const { harness, objectId, paymentId } = await payWithAuthentication(
      "pm_card_threeDSecureRequiredChargeDeclined",
    );
    await harness.sandbox.control.authenticate(objectId, "complete");
    expect(await untilStatus(harness, paymentId, "failed")).toMatchObject({
      failure: { code: "card_declined" },
    });
  });

  test("is canceled when the provider cancels its object, and nothing of it can be paid any more", async () => {
    const { harness, objectId, paymentId } = await payWithAuthentication();
    await harness.sandbox.control.patchPaymentIntent(objectId, { status: "canceled", next_action: null });
    expect(await untilStatus(harness, paymentId, "canceled")).toMatchObject({ holdsOrderId: false });
  });

  test("is authorized, not captured, where it is captured by hand", async () => {
    const harness = await stage.start();
    const input = { payment_method: "pm_card_threeDSecure2Required", capture_method: "manual" } as const;
    const answer = await pay(harness, { input });
    await harness.sandbox.control.authenticate((await onlyObject(harness)).payment_intent.id, "complete");
    const payment = await untilStatus(harness, documentOf(answer).id, "authorized");
    expect(payment).toMatchObject({ amountCapturable: 4200, amountCaptured: 0 });
  });

  test("that the provider still works on is processing until the provider says the end", async () => {
    const { harness, objectId, paymentId } = await payWithAuthentication();
    await harness.sandbox.control.patchPaymentIntent(objectId, { status: "processing", next_action: null });
    await untilStatus(harness, paymentId, "processing");
    await harness.sandbox.control.patchPaymentIntent(objectId, {
      status: "succeeded",
      amount_received: 4200,
    });
    await untilStatus(harness, paymentId, "succeeded");
  });
});
