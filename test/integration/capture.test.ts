import { describe, expect, it } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import {
  authorized,
  bodyOf,
  cancel,
  capture,
  outcomeOf,
  paid,
  refund,
  refusalOf,
} from "../support/effects.js";
import { newKey, untilStatus } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

describe("a capture", () => {
  it("takes the whole authorization where it says no amount, and the payment has succeeded", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    const answer = await capture(harness, id);
    expect(outcomeOf(answer)).toBe("200");
    expect(bodyOf(answer)).toMatchObject({
      id,
      status: "succeeded",
      amount_captured: 10_000,
      amount_capturable: 0,
      amount_refundable: 10_000,
    });
  });

  it("takes exactly the part it asks for; the rest is released, and no later capture or cancel does anything", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    expect(bodyOf(await capture(harness, id, 6_000))).toMatchObject({
      amount: 10_000,
      amount_captured: 6_000,
    });
    const sent = (await wireOf(harness)).length;
    expect(outcomeOf(await capture(harness, id, 1_000))).toBe("409 invalid_state");
    expect(outcomeOf(await cancel(harness, id))).toBe("409 invalid_state");
    expect(await wireOf(harness)).toHaveLength(sent);
    const { payment_intent: object } = await onlyObject(harness);
    expect(object.amount_received).toBe(6_000);
    expect(bodyOf(await refund(harness, id))).toMatchObject({ amount: 6_000, status: "succeeded" });
  });

  it("above the authorization is refused without a call, and the refusal is the key's answer", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    const sent = (await wireOf(harness)).length;
    const key = newKey();
    const refused = await capture(harness, id, 10_001, { key });
    expect(outcomeOf(refused)).toBe("422 amount_too_large");
    const again = await capture(harness, id, 10_001, { key });
    expect(again).toMatchObject({
      replayed: true,
      response: refused.type === "final" ? refused.response : {},
    });
    expect(await wireOf(harness)).toHaveLength(sent);
    expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("authorized");
  });

  it("whose answer is lost is asked about, found done, and sent once", async () => {
    const harness = await stage.start({ env: HASTY });
    const id = await authorized(harness);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "reset", effect: "applied" },
      times: 1,
    });
    expect(outcomeOf(await capture(harness, id))).toBe("200");
    expect((await wireOf(harness)).filter((line) => line.startsWith("capture"))).toHaveLength(1);
  });

  it("whose request is lost is asked about and sent again under the same key with the same parameters", async () => {
    const harness = await stage.start({ env: HASTY });
    const id = await authorized(harness);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "reset", effect: "none" },
      times: 2,
    });
    expect(outcomeOf(await capture(harness, id, 7_000))).toBe("200");
    const log = await harness.sandbox.control.listRequests({});
    const sends = log.filter((entry) => entry.call === "payment_intents.capture");
    expect(sends).toHaveLength(3);
    expect(new Set(sends.map((entry) => entry.idempotency_key)).size).toBe(1);
  });

  it("that finds it captured elsewhere is done where the amounts agree, and tells the truth where they do not", async () => {
    const harness = await stage.start();
    for (const [elsewhere, outcome] of [
      [10_000, "200"],
      [4_000, "409 invalid_state"],
    ] as const) {
      const id = await authorized(harness);
      const { providerPaymentId } = await getPayment(harness.deps, harness.caller, id);
      await harness.sandbox.control.dashboard.capture(providerPaymentId ?? "", elsewhere);
      expect(outcomeOf(await capture(harness, id))).toBe(outcome);
      expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({
        status: "succeeded",
        amountCaptured: elsewhere,
      });
    }
  });

  it("of a payment that is not authorized is refused, naming its state", async () => {
    const harness = await stage.start();
    const id = await paid(harness);
    const answer = await capture(harness, id);
    expect(outcomeOf(answer)).toBe("409 invalid_state");
    expect(bodyOf(answer)["detail"]).toContain("succeeded");
  });

  it("while another is in flight is told so, and its key stays as it was", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "slow" },
      latency_ms: 1_500,
      times: 1,
    });
    const first = capture(harness, id);
    await harness.sandbox.control.waitForRequests({ filter: { call: "payment_intents.capture" } });
    const key = newKey();
    expect(await refusalOf(cancel(harness, id, { key }))).toBe("operation_in_progress");
    expect(outcomeOf(await first)).toBe("200");
    expect(outcomeOf(await cancel(harness, id, { key }))).toBe("409 invalid_state");
  });

  it("replays its answer byte for byte, also when the payment has moved on", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    const key = newKey();
    const first = await capture(harness, id, undefined, { key });
    await refund(harness, id, 1_000);
    const again = await capture(harness, id, 10_000, { key });
    if (first.type !== "final" || again.type !== "final") throw new Error("no final answer");
    expect(again.replayed).toBe(true);
    expect(again.response).toEqual(first.response);
  });
});

describe("a cancel", () => {
  it("releases an authorization, once, and frees the order id", async () => {
    const harness = await stage.start();
    const id = await authorized(harness, { input: { merchant_order_id: "order-1" } });
    const answer = await cancel(harness, id);
    expect(outcomeOf(answer)).toBe("200");
    expect(bodyOf(answer)).toMatchObject({
      status: "canceled",
      cancellation_reason: "requested",
      amount_capturable: 0,
    });
    expect(outcomeOf(await cancel(harness, id))).toBe("409 invalid_state");
    expect(outcomeOf(await capture(harness, id))).toBe("409 invalid_state");
    expect((await wireOf(harness)).filter((line) => line.startsWith("fence"))).toHaveLength(1);
    await paid(harness, { input: { merchant_order_id: "order-1" } });
  });

  it("ends a payment that waits for its customer", async () => {
    const harness = await stage.start();
    const id = await paid(harness, { input: { payment_method: "pm_card_threeDSecure2Required" } });
    expect(outcomeOf(await cancel(harness, id))).toBe("200");
    await untilStatus(harness, id, "canceled");
  });

  it("that finds the payment paid is refused, and the payment is adopted as paid", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    const { providerPaymentId } = await getPayment(harness.deps, harness.caller, id);
    await harness.sandbox.control.dashboard.capture(providerPaymentId ?? "");
    expect(outcomeOf(await cancel(harness, id))).toBe("409 invalid_state");
    expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("succeeded");
  });

  it("answered with 500 is not shown as canceled until the provider says so", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { type: "error", status: 500 },
      times: 3,
    });
    const answer = await cancel(harness, id, { waitMs: 0 });
    expect(outcomeOf(answer)).toBe("202");
    expect(bodyOf(answer)["status"]).toBe("authorized");
    await untilStatus(harness, id, "canceled");
  });
});
