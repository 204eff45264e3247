import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FaultRuleInput, type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, CREATE, created, send, stripeFor } from "./support.js";

const PATH = "/v1/payment_intents";
const CONFIRM = "payment_intents.confirm";

let sandbox: Sandbox;

beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox.stop());

type GivenFault = FaultRuleInput["fault"];

const add = (fault: GivenFault, rest: Omit<FaultRuleInput, "fault"> = { match: { call: CONFIRM } }) =>
  sandbox.control.addFault({ ...rest, fault });

const confirm = (id: string, key = "c") => send(sandbox, { path: `${PATH}/${id}/confirm`, key });

const statusOf = async (id: string) => (await sandbox.control.getPaymentIntent(id)).payment_intent.status;

describe("which requests a rule is applied to", () => {
  const refused = async (id: string, key: string) => (await confirm(id, key)).status === 503;
  const ERROR: GivenFault = { type: "error", status: 503 };

  it("skips the first, counts the times, and is then used up", async () => {
    const made = await created(sandbox);
    await add(ERROR, { match: { call: CONFIRM }, skip: 1, times: 2 });
    const outcomes = [];
    for (const key of ["a", "b", "c", "d"]) outcomes.push(await refused(made.id, key));
    expect(outcomes).toEqual([false, true, true, false]);
    expect((await sandbox.control.listFaults())[0]).toMatchObject({ seen: 3, applied: 2 });
  });

  it("goes on for ever with times null, until it is removed", async () => {
    const made = await created(sandbox);
    const rule = await add(ERROR, { match: { call: "payment_intents.*" }, times: null });
    for (const key of ["a", "b", "c"]) expect(await refused(made.id, key)).toBe(true);
    await sandbox.control.removeFault(rule.id);
    expect(await refused(made.id, "d")).toBe(false);
  });

  it("matches key, key pattern, object, account and metadata of the request or of the object", async () => {
    const made = await created(sandbox, "pm_card_visa", "&metadata[payment_attempt_id]=7");
    const other = await created(sandbox);
    const account = (await stripeFor(sandbox).accounts.retrieveCurrent()).id;
    for (const match of [
      { idempotency_key: "attempt:7:confirm" },
      { idempotency_key_pattern: "^attempt:.*:confirm$" },
      { object_id: made.id },
      { metadata: { payment_attempt_id: "7" } },
    ]) {
      await sandbox.control.clearFaults();
      await add(ERROR, { match: { ...match, account }, times: null });
      expect(await refused(other.id, "else")).toBe(false);
      expect(await refused(made.id, "attempt:7:confirm")).toBe(true);
    }
    await sandbox.control.clearFaults();
    await add(ERROR, { match: { account: "acct_other" } });
    expect(await refused(made.id, "attempt:7:confirm")).toBe(false);
    await add(ERROR, { match: { call: "payment_intents.create", metadata: { payment_attempt_id: "8" } } });
    expect((await send(sandbox, { path: PATH, body: `${CREATE}7` })).status).toBe(200);
    expect((await send(sandbox, { path: PATH, body: `${CREATE}8` })).status).toBe(503);
  });

  it("takes the first rule that matches, in the order they were added", async () => {
    const made = await created(sandbox);
    await add({ type: "error", status: 500 });
    await add({ type: "error", status: 503 });
    expect([(await confirm(made.id)).status, (await confirm(made.id)).status]).toEqual([500, 503]);
  });

  it("with probability 0 never happens", async () => {
    const made = await created(sandbox);
    await add(ERROR, { match: { call: CONFIRM }, probability: 0, times: null });
    expect(await refused(made.id, "a")).toBe(false);
  });
});

describe("a rule that means nothing is refused", () => {
  it.each([
    [{ fault: { type: "explode" } }, "fault.type"],
    [{ fault: { type: "reset", effect: "perhaps" } }, "fault.effect"],
    [{ fault: { type: "reset", effect_after_ms: 5 } }, "later only"],
    [{ fault: { type: "drip", effect: "none" } }, "drip"],
    [{ fault: { type: "error", status: 200 } }, "fault.status"],
    [{ fault: { type: "stored_error", effect: "later", arrival: "in_network" } }, "arrived"],
    [{ fault: { type: "reset", hang_ms: 5 } }, "hang_ms"],
    [{ fault: { type: "hang", effect: "later", hang_ms: 5 } }, "effect_after_ms"],
    [{ match: { call: "payment_intents.pay" }, fault: { type: "reset" } }, "no call payment_intents.pay"],
    [{ match: { idempotency_key_pattern: "(" }, fault: { type: "reset" } }, "regular expression"],
    [{ match: { colour: "red" }, fault: { type: "reset" } }, "match.colour"],
    [{ times: 0, fault: { type: "reset" } }, "times"],
    [{ probability: 2, fault: { type: "reset" } }, "probability"],
    [{ latency: 5, fault: { type: "reset" } }, "latency"],
    [{}, "fault is missing"],
  ])("%j: %s", async (rule, reason) => {
    await expect(sandbox.control.addFault(rule as FaultRuleInput)).rejects.toThrow(reason);
    expect(await sandbox.control.listFaults()).toEqual([]);
  });
});

describe("a stopped provider", () => {
  it("refuses connections while its listener is closed, keeps its state, and comes back on its port", async () => {
    const made = await created(sandbox);
    await sandbox.control.closeListener();
    expect(await confirm(made.id)).toMatchObject({ status: 0, broken: "ECONNREFUSED" });
    expect(await statusOf(made.id)).toBe("requires_confirmation");
    await sandbox.control.openListener();
    expect(bodyOf(await confirm(made.id)).status).toBe("succeeded");
  });
});
