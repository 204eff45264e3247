import { describe, expect, test } from "vitest";
import { documentOf, newKey, pay } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const CONFIRM = { call: "payment_intents.confirm" };
const SHORT_BUDGET = { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1500" };

/** Every confirm is lost on its way until the budget is over; the worker is about to fence. */
async function aboutToFence(arrival: "in_network" | "executing", point = "before_fence") {
  const gate = stage.gate(point);
  const harness = await stage.start({ env: SHORT_BUDGET, probe: gate.probe });
  await harness.sandbox.control.addFault({
    match: CONFIRM,
    times: null,
    fault: { type: "reset", effect: "later", arrival },
  });
  const key = newKey();
  const answer = pay(harness, { key });
  answer.catch(() => undefined);
  await gate.reached();
  await harness.sandbox.control.clearFaults();
  return { gate, harness, answer, key };
}

describe("a confirm that lands", () => {
  test("after the fence charges nothing: the payment failed without effect, and its key may run again", async () => {
    const { gate, harness, answer, key } = await aboutToFence("in_network");
    gate.open();
    await expect(answer).rejects.toMatchObject({
      code: "provider_unavailable",
      extra: { payment: { status: "failed", failure: { retry: "same_key" } }, retryAfterSeconds: 1 },
    });
    await harness.sandbox.control.release();
    expect(await onlyObject(harness)).toMatchObject({
      successful_charges: 0,
      payment_intent: { status: "canceled" },
    });
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });

  test("before the fence is adopted: the fence is refused, the object read back, the payment succeeded", async () => {
    const { gate, harness, answer } = await aboutToFence("in_network");
    await harness.sandbox.control.release();
    gate.open();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
    expect((await wireOf(harness)).slice(-2)).toEqual(["fence 400", "retrieve 200"]);
  });

  test("between the fence and its reading back changes nothing any more", async () => {
    const { gate, harness, answer } = await aboutToFence("in_network", "after_fence");
    await harness.sandbox.control.release();
    gate.open();
    await expect(answer).rejects.toMatchObject({ code: "provider_unavailable" });
    expect((await onlyObject(harness)).successful_charges).toBe(0);
  });

  test("while it executes holds the fence off, and is adopted when it ends", async () => {
    const { gate, harness, answer } = await aboutToFence("executing");
    gate.open();
    const locked = { call: "payment_intents.cancel", status: 429 };
    await harness.sandbox.control.waitForRequests({ filter: locked, count: 2 });
    await harness.sandbox.control.release();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});

test("a confirm that was put off past the budget is never sent: the object is fenced instead", async () => {
  const harness = await stage.start({ env: SHORT_BUDGET });
  await harness.sandbox.control.addFault({
    match: CONFIRM,
    fault: { type: "error", status: 429, retry_after: 60 },
  });
  await expect(pay(harness)).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(await wireOf(harness)).toEqual([
    "create 200",
    "confirm 429",
    "retrieve 200",
    "fence 200",
    "retrieve 200",
  ]);
});

test("a fence that is limited after one whose outcome is unknown is asked about before the next", async () => {
  const { gate, harness, answer } = await aboutToFence("in_network");
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.cancel" },
    fault: { type: "reset", effect: "none" },
  });
  await control.addFault({
    match: { call: "payment_intents.cancel" },
    fault: { type: "error", status: 429 },
  });
  gate.open();
  await expect(answer).rejects.toMatchObject({ code: "provider_unavailable" });
  expect((await wireOf(harness)).slice(-6)).toEqual([
    "fence -",
    "retrieve 200",
    "fence 429",
    "retrieve 200",
    "fence 200",
    "retrieve 200",
  ]);
});
