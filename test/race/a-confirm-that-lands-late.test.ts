import { describe, expect, test } from "vitest";
import { documentOf, type Harness, pay } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const CONFIRM = { call: "payment_intents.confirm" };

/** A confirm is lost on its way; a look-up says that it had no effect; the worker is about to send it again. */
async function aboutToSendAgain(arrival: "in_network" | "executing") {
  const gate = stage.gate("before_confirm", 1);
  const harness = await stage.start({ env: HASTY, probe: gate.probe });
  await harness.sandbox.control.addFault({
    match: CONFIRM,
    fault: { type: "reset", effect: "later", arrival },
  });
  const answer = pay(harness);
  await gate.reached();
  expect(await wireOf(harness)).toEqual(["create 200", "confirm -", "retrieve 200"]);
  return { gate, harness, answer };
}

async function expectOneCharge(harness: Harness, answer: ReturnType<typeof pay>): Promise<void> {
  expect(documentOf(await answer).status).toBe("succeeded");
  expect((await onlyObject(harness)).successful_charges).toBe(1);
}

describe("a confirm that lands after a look-up said it had not", () => {
  test("and before the next send is replayed to it, asked about, and charged once", async () => {
    const { gate, harness, answer } = await aboutToSendAgain("in_network");
    await harness.sandbox.control.release();
    gate.open();
    await expectOneCharge(harness, answer);
    expect((await wireOf(harness)).slice(3)).toEqual(["confirm 200 replayed", "retrieve 200"]);
  });

  test("and after the next send finds its key used, and charges nothing", async () => {
    const { gate, harness, answer } = await aboutToSendAgain("in_network");
    gate.open();
    await expectOneCharge(harness, answer);
    await harness.sandbox.control.release();
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("with its key pruned meanwhile meets the object's own guard, and charges nothing", async () => {
    const { gate, harness, answer } = await aboutToSendAgain("in_network");
    gate.open();
    await expectOneCharge(harness, answer);
    await harness.sandbox.control.pruneIdempotencyKeys();
    await harness.sandbox.control.release();
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("with its key pruned before the next send leaves that one refused, and the charge is adopted", async () => {
    const { gate, harness, answer } = await aboutToSendAgain("in_network");
    await harness.sandbox.control.release();
    await harness.sandbox.control.pruneIdempotencyKeys();
    gate.open();
    await expectOneCharge(harness, answer);
    expect((await wireOf(harness)).slice(3)).toEqual(["confirm 400", "retrieve 200"]);
  });

  test("while it still executes keeps its key in use, and is asked about until it ends", async () => {
    const { gate, harness, answer } = await aboutToSendAgain("executing");
    gate.open();
    await harness.sandbox.control.waitForRequests({ filter: { ...CONFIRM, status: 409 }, count: 2 });
    await harness.sandbox.control.release();
    await expectOneCharge(harness, answer);
  });
});
