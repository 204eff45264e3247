import { describe, expect, test } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { documentOf, type Harness, pay, untilStatus } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** Every way to lose an answer; each leaves the outcome of the send unknown. */
const LOSSES: readonly { readonly name: string; readonly fault: FaultRuleInput["fault"] }[] = [
  { name: "silence past the timeout", fault: { type: "hang" } },
  { name: "a reset", fault: { type: "reset" } },
  { name: "a 500 in JSON", fault: { type: "error", status: 500 } },
  { name: "a 503 in JSON", fault: { type: "error", status: 503 } },
  { name: "a 502 in HTML", fault: { type: "html", status: 502 } },
  { name: "half a body", fault: { type: "cut_off" } },
  { name: "an empty 200", fault: { type: "empty" } },
  { name: "garbage", fault: { type: "garbage" } },
  { name: "a failed dependency (424)", fault: { type: "error", status: 424 } },
];

/** What goes over the wire with nothing injected. */
const UNDISTURBED = ["create 200", "confirm 200"];

async function payWith(call: string, fault: FaultRuleInput["fault"]): Promise<Harness> {
  const harness = await stage.start({ env: HASTY });
  await harness.sandbox.control.addFault({ match: { call: `payment_intents.${call}` }, fault });
  const answer = await pay(harness);
  expect(documentOf(answer).status).toBe("succeeded");
  return harness;
}

/** The log without how the first send was answered, which is the fault's affair. */
async function callsOf(harness: Harness): Promise<string[]> {
  return (await wireOf(harness)).map((words) => words.split(" ")[0] as string);
}

describe.each(LOSSES)("after $name", ({ fault }) => {
  test("a create that was performed is found, not sent again", async () => {
    const harness = await payWith("create", { ...fault, effect: "applied" });
    expect(await callsOf(harness)).toEqual(["create", "list", "confirm"]);
  });

  test("a create that was not performed is asked about, then sent again under its key", async () => {
    const harness = await payWith("create", { ...fault, effect: "none" });
    expect(await callsOf(harness)).toEqual(["create", "list", "create", "confirm"]);
    await onlyObject(harness);
  });

  test("a confirm that was performed is found, not sent again", async () => {
    const harness = await payWith("confirm", { ...fault, effect: "applied" });
    expect(await callsOf(harness)).toEqual(["create", "confirm", "retrieve"]);
  });

  test("a confirm that was not performed is asked about, then sent again under its key", async () => {
    const harness = await payWith("confirm", { ...fault, effect: "none" });
    expect(await callsOf(harness)).toEqual(["create", "confirm", "retrieve", "confirm"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("a create that is performed later leaves one object, paid once", async () => {
    const harness = await payWith("create", { ...fault, effect: "later", arrival: "in_network" });
    await harness.sandbox.control.release();
    expect((await onlyObject(harness)).successful_charges).toBe(1);
    expect(await callsOf(harness)).toEqual(["create", "list", "create", "confirm"]);
  });

  test("a fence that was performed is read back, not sent again", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { ...fault, effect: "applied" },
    });
    const answer = await pay(harness, { input: { payment_method: "pm_card_visa_chargeDeclined" } });
    expect(documentOf(answer)).toMatchObject({ status: "failed", failure: { code: "card_declined" } });
    await harness.sandbox.control.waitForRequests({
      filter: { call: "payment_intents.retrieve" },
      until: "settled",
    });
    expect(await callsOf(harness)).toEqual(["create", "confirm", "fence", "retrieve"]);
  });

  test("a fence that was not performed is asked about before it is sent again", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { ...fault, effect: "none" },
    });
    await pay(harness, { input: { payment_method: "pm_card_visa_chargeDeclined" } });
    await harness.sandbox.control.waitForRequests({
      filter: { call: "payment_intents.cancel" },
      count: 2,
    });
    const calls = await callsOf(harness);
    expect(calls.slice(0, 5)).toEqual(["create", "confirm", "fence", "retrieve", "fence"]);
  });
});

test("questions that are not answered either lead to no second send", async () => {
  const harness = await stage.start({ env: HASTY });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "reset", effect: "none" },
  });
  await control.addFault({
    match: { call: "payment_intents.retrieve" },
    times: 2,
    fault: { type: "error", status: 500 },
  });
  await control.addFault({ match: { call: "payment_intents.retrieve" }, fault: { type: "cut_off" } });
  expect(documentOf(await pay(harness)).status).toBe("succeeded");
  expect(await callsOf(harness)).toEqual([
    "create",
    "confirm",
    "retrieve",
    "retrieve",
    "retrieve",
    "retrieve",
    "confirm",
  ]);
});

test("while the outcome is unknown the payment says so, and is never failed", async () => {
  const harness = await stage.start({ env: HASTY });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "hang", effect: "applied" },
  });
  await control.addFault({
    match: { call: "payment_intents.retrieve" },
    times: null,
    fault: { type: "error", status: 500 },
  });
  const answer = await pay(harness, { waitMs: 0 });
  await control.waitForRequests({ filter: { call: "payment_intents.retrieve" }, count: 2 });
  const payment = await untilStatus(harness, documentOf(answer).id, "processing");
  expect(payment).toMatchObject({ failure: null, resolution: { state: "unknown" } });
  await control.clearFaults();
  expect(await untilStatus(harness, payment.id, "succeeded")).toMatchObject({ resolution: null });
});

test("with nothing injected there is no question at all", async () => {
  const harness = await stage.start();
  await pay(harness);
  expect(await wireOf(harness)).toEqual(UNDISTURBED);
});
