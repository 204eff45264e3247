import { describe, expect, it } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { capture, outcomeOf, paid, refusalOf } from "../support/effects.js";
import { untilStatus } from "../support/harness.js";
import { useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const EXPIRY = { CUSTOMER_ACTION_EXPIRY_MS: "1500" };
const NEEDS_CUSTOMER = { payment_method: "pm_card_threeDSecure2Required" };

describe("a payment whose customer never acts", () => {
  it("is canceled at the provider first and then here, once, with its order id free again", async () => {
    const harness = await stage.start({ env: EXPIRY });
    const id = await paid(harness, { input: { ...NEEDS_CUSTOMER, merchant_order_id: "order-1" } });
    expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("requires_action");
    // Another payment goes its way meanwhile.
    await paid(harness);
    const ended = await untilStatus(harness, id, "canceled");
    expect(ended).toMatchObject({ cancellationReason: "customer_action_expired", holdsOrderId: false });
    expect((await wireOf(harness)).filter((line) => line.startsWith("fence"))).toHaveLength(1);
    await paid(harness, { input: { merchant_order_id: "order-1" } });
  });

  it("is not forgotten when the worker that waited for it is gone", async () => {
    const harness = await stage.start({ env: EXPIRY, workers: [] });
    const first = await harness.another({ workers: ["attempts"] });
    const id = await paid(harness, { input: NEEDS_CUSTOMER });
    await first.drain(0);
    await harness.another({ workers: ["attempts"] });
    await untilStatus(harness, id, "canceled");
  });

  it("is paid where the provider says so when it is asked to cancel", async () => {
    const harness = await stage.start({ env: EXPIRY });
    const id = await paid(harness, { input: NEEDS_CUSTOMER });
    const { providerPaymentId } = await getPayment(harness.deps, harness.caller, id);
    // The customer acts while the fence is on its way.
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { type: "slow" },
      latency_ms: 300,
    });
    await harness.sandbox.control
      .waitForRequests({ filter: { call: "payment_intents.cancel" } })
      .catch(() => []);
    await harness.sandbox.control.authenticate(providerPaymentId ?? "", "complete").catch(() => undefined);
    const ended = await untilStatus(harness, id, "canceled", "succeeded");
    const { payment_intent: object } = await harness.sandbox.control.getPaymentIntent(
      providerPaymentId ?? "",
    );
    expect(object.status).toBe(ended.status);
  });

  it("is paid when the customer has acted and nobody noticed before the expiry", async () => {
    const harness = await stage.start({
      env: { ...EXPIRY, FOLLOW_FIRST_MS: "60000", FOLLOW_MOST_MS: "60000" },
    });
    const id = await paid(harness, { input: NEEDS_CUSTOMER });
    const { providerPaymentId } = await getPayment(harness.deps, harness.caller, id);
    await harness.sandbox.control.authenticate(providerPaymentId ?? "", "complete");
    await untilStatus(harness, id, "succeeded");
    expect((await wireOf(harness)).filter((line) => line.startsWith("fence"))).toHaveLength(0);
  });
});

describe("an authorization that lapses", () => {
  it("is known before it does, and the payment ends as canceled by itself, its hold released", async () => {
    const harness = await stage.start();
    await harness.sandbox.control.changeSettings({ authorization_lifetime_ms: 3_000 });
    const id = await paid(harness, { input: { capture_method: "manual" } });
    const held = await getPayment(harness.deps, harness.caller, id);
    expect(held.authorizedUntil?.getTime()).toBeGreaterThan(Date.now());
    await harness.sandbox.control.advanceClock(10_000);
    const ended = await untilStatus(harness, id, "canceled");
    expect(ended).toMatchObject({ cancellationReason: "authorization_expired", amountCapturable: 0 });
    expect(outcomeOf(await capture(harness, id))).toBe("409 authorization_expired");
  });

  it("is told by the capture that comes too late, where nobody has noticed", async () => {
    const harness = await stage.start();
    const id = await paid(harness, { input: { capture_method: "manual" } });
    await harness.sandbox.control.advanceClock(8 * 86_400_000);
    expect(await refusalOf(capture(harness, id))).toBe("409 authorization_expired");
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({
      status: "canceled",
      cancellationReason: "authorization_expired",
    });
  });
});
