import { describe, expect, test } from "vitest";
import { documentOf, newKey, pay } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const CREATE = { call: "payment_intents.create" };
const CONFIRM = { call: "payment_intents.confirm" };
const CANCEL = { call: "payment_intents.cancel" };

describe("a 500 that the provider stored for a confirm", () => {
  test("whose effect was applied is settled by a look: paid, and not sent again", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match: CONFIRM,
      fault: { type: "stored_error", effect: "applied" },
    });
    expect(documentOf(await pay(harness)).status).toBe("succeeded");
    expect(await wireOf(harness)).toEqual(["create 200", "confirm 500", "retrieve 200"]);
  });

  test("whose effect was not applied ends in the fence, and the same key then pays afresh", async () => {
    const harness = await stage.start({ env: HASTY });
    const key = newKey();
    await harness.sandbox.control.addFault({
      match: CONFIRM,
      fault: { type: "stored_error", effect: "none" },
    });
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await wireOf(harness)).toEqual([
      "create 200",
      "confirm 500",
      "retrieve 200",
      "confirm 500 replayed",
      "retrieve 200",
      "fence 200",
      "retrieve 200",
    ]);
    expect((await onlyObject(harness)).successful_charges).toBe(0);
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });

  test("whose effect comes later, before the fence, is adopted", async () => {
    const gate = stage.gate("before_fence");
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    await harness.sandbox.control.addFault({
      match: CONFIRM,
      fault: { type: "stored_error", effect: "later" },
    });
    const answer = pay(harness);
    await gate.reached();
    await harness.sandbox.control.release();
    gate.open();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("whose effect comes later, after the fence, has none any more", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match: CONFIRM,
      fault: { type: "stored_error", effect: "later" },
    });
    await expect(pay(harness)).rejects.toMatchObject({ code: "provider_unavailable" });
    await harness.sandbox.control.release();
    expect((await onlyObject(harness)).successful_charges).toBe(0);
  });
});

describe("a 500 that the provider stored for a create", () => {
  test("whose object exists is settled by finding it", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match: CREATE,
      fault: { type: "stored_error", effect: "applied" },
    });
    expect(documentOf(await pay(harness)).status).toBe("succeeded");
    expect(await wireOf(harness)).toEqual(["create 500", "list 200", "confirm 200"]);
  });

  test("that made no object ends without effect, and the same key then pays afresh", async () => {
    const harness = await stage.start({ env: HASTY });
    const key = newKey();
    await harness.sandbox.control.addFault({
      match: CREATE,
      fault: { type: "stored_error", effect: "none" },
    });
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await wireOf(harness)).toEqual(["create 500", "list 200", "create 500 replayed", "list 200"]);
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("whose object comes after its attempt ended leaves that object unpaid", async () => {
    const harness = await stage.start({ env: HASTY });
    const key = newKey();
    await harness.sandbox.control.addFault({
      match: CREATE,
      fault: { type: "stored_error", effect: "later" },
    });
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
    await harness.sandbox.control.release();
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
    expect(await harness.sandbox.control.counts()).toMatchObject({
      payment_intents: 2,
      successful_charges: 1,
    });
  });
});

test("a 500 that the provider stored for a fence is answered by a fence under a new key", async () => {
  const harness = await stage.start({ env: HASTY });
  const { control } = harness.sandbox;
  await control.addFault({ match: CANCEL, fault: { type: "stored_error", effect: "none" } });
  await pay(harness, { input: { payment_method: "pm_card_visa_chargeDeclined" } });
  await control.waitForRequests({ filter: { ...CANCEL, status: 200 } });
  const fences = await control.listRequests(CANCEL);
  expect(fences.map((entry) => entry.idempotency_key?.replace(/^.*:fence/, "fence"))).toEqual([
    "fence",
    "fence",
    "fence-2",
  ]);
});
