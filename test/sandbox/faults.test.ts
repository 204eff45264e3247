import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fault, FaultRuleInput, LoggedRequest, Sandbox } from "../../src/sandbox/index.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, CREATE, created, type ErrorBody, send, stripeFor } from "./support.js";

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

const logged = async (call = CONFIRM): Promise<LoggedRequest> => {
  const [entry] = await sandbox.control.listRequests({ call });
  if (entry === undefined) throw new Error(`no ${call} in the log`);
  return entry;
};

describe("an answer that is lost or damaged", () => {
  const DAMAGED: [Fault["type"], (answer: Awaited<ReturnType<typeof confirm>>) => void][] = [
    ["reset", (answer) => expect(answer).toMatchObject({ status: 0, broken: "ECONNRESET" })],
    ["empty", (answer) => expect(answer).toMatchObject({ status: 200, text: "", broken: null })],
    [
      "html",
      (answer) => expect(answer).toMatchObject({ status: 502, headers: { "content-type": "text/html" } }),
    ],
    ["cut_off", (answer) => expect(answer).toMatchObject({ status: 200, broken: "ECONNRESET" })],
    ["garbage", (answer) => expect(() => bodyOf(answer)).toThrow(SyntaxError)],
  ];

  it.each(DAMAGED)("%s before the effect: nothing happened, and the key is free", async (type, check) => {
    const made = await created(sandbox);
    await add({ type, effect: "none" });
    check(await confirm(made.id));
    expect(await statusOf(made.id)).toBe("requires_confirmation");
    expect(await logged()).toMatchObject({
      effect: "none",
      arrival: null,
      result_status: null,
      abandoned: false,
    });
    const again = await confirm(made.id);
    expect(bodyOf(again).status).toBe("succeeded");
    expect(again.headers["idempotent-replayed"]).toBeUndefined();
  });

  it.each(DAMAGED)("%s after the effect: it happened, and the key replays it", async (type, check) => {
    const made = await created(sandbox);
    await add({ type });
    check(await confirm(made.id));
    expect(await statusOf(made.id)).toBe("succeeded");
    expect(await logged()).toMatchObject({
      effect: "applied",
      result_status: 200,
      fault: { type, effect: "applied" },
    });
    const again = await confirm(made.id);
    expect(bodyOf(again).status).toBe("succeeded");
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect((await sandbox.control.counts()).successful_charges).toBe(1);
  });

  it("drips byte by byte and still arrives whole", async () => {
    await add({ type: "drip", interval_ms: 1 }, { match: { call: "account.retrieve" } });
    const answer = await send(sandbox, { method: "GET", path: "/v1/account" });
    expect(bodyOf<{ object: string }>(answer).object).toBe("account");
  });

  it("hangs with the effect applied until it is released, then answers", async () => {
    const made = await created(sandbox);
    await add({ type: "hang" });
    const waiting = confirm(made.id);
    const [held] = await sandbox.control.waitForHeld();
    expect(held).toMatchObject({ stage: "answer", object_id: made.id, idempotency_key: "c" });
    expect(await statusOf(made.id)).toBe("succeeded");
    await sandbox.control.release({ object_id: made.id });
    expect(bodyOf(await waiting).status).toBe("succeeded");
  });

  it("hangs for a time of its own", async () => {
    await add({ type: "hang", hang_ms: 20 }, { match: { call: "account.retrieve" } });
    expect((await send(sandbox, { method: "GET", path: "/v1/account" })).status).toBe(200);
  });

  it("hangs and is cut without any effect", async () => {
    const made = await created(sandbox);
    await add({ type: "hang", effect: "none", hang_ms: 20 });
    expect(await confirm(made.id)).toMatchObject({ status: 0, broken: "ECONNRESET" });
    expect(await statusOf(made.id)).toBe("requires_confirmation");
  });

  it("notes a caller that went away, whose request goes on all the same", async () => {
    const made = await created(sandbox);
    await add({ type: "hang", effect: "later" });
    const leaving = new AbortController();
    const waiting = send(sandbox, { path: `${PATH}/${made.id}/confirm`, key: "c", signal: leaving.signal });
    await sandbox.control.waitForHeld();
    leaving.abort();
    expect((await waiting).broken).not.toBeNull();
    await sandbox.control.waitForRequests({ filter: { call: CONFIRM, abandoned: true } });
    await sandbox.control.release();
    expect(await statusOf(made.id)).toBe("succeeded");
    expect(await logged()).toMatchObject({ effect: "applied", status: null });
  });
});

describe("an answer lost now, an effect that comes later", () => {
  it("executing: its key is in use and its object locked until it is released", async () => {
    const made = await created(sandbox);
    await add({ type: "reset", effect: "later", arrival: "executing" });
    expect((await confirm(made.id)).broken).toBe("ECONNRESET");
    expect(await statusOf(made.id)).toBe("requires_confirmation");
    expect(await logged()).toMatchObject({ effect: "pending", result_status: null });
    expect(bodyOf<ErrorBody>(await confirm(made.id)).error.code).toBe("idempotency_key_in_use");
    expect(bodyOf<ErrorBody>(await confirm(made.id, "other")).error.code).toBe("lock_timeout");
    expect(await sandbox.control.release()).toHaveLength(1);
    expect(await statusOf(made.id)).toBe("succeeded");
    expect(await logged()).toMatchObject({ effect: "applied", result_status: 200, status: null });
    const replay = await confirm(made.id);
    expect(replay.headers["idempotent-replayed"]).toBe("true");
    expect((await sandbox.control.counts()).successful_charges).toBe(1);
  });

  it("in the network: a second send of the key runs, and the late one is a replay without effect", async () => {
    const made = await created(sandbox);
    await add({ type: "reset", effect: "later", arrival: "in_network" });
    expect((await confirm(made.id)).broken).toBe("ECONNRESET");
    expect((await logged()).arrival).toBeNull();
    expect(bodyOf(await confirm(made.id)).status).toBe("succeeded");
    await sandbox.control.release();
    expect(await logged()).toMatchObject({ effect: "none", replayed: true, result_status: 200 });
    expect((await sandbox.control.counts()).successful_charges).toBe(1);
  });

  it("in the network: it charges long after a look-up said that it had not", async () => {
    const made = await created(sandbox);
    await add({ type: "reset", effect: "later", arrival: "in_network" });
    await confirm(made.id);
    expect((await stripeFor(sandbox).paymentIntents.retrieve(made.id)).status).toBe("requires_confirmation");
    await sandbox.control.release();
    expect(await statusOf(made.id)).toBe("succeeded");
  });

  it("in the network: after a cancel it meets the state guard and charges nothing", async () => {
    const made = await created(sandbox);
    await add({ type: "reset", effect: "later", arrival: "in_network" });
    await confirm(made.id);
    await stripeFor(sandbox).paymentIntents.cancel(made.id);
    await sandbox.control.release();
    expect(await statusOf(made.id)).toBe("canceled");
    expect(await logged()).toMatchObject({
      result_status: 400,
      error_code: "payment_intent_unexpected_state",
      effect: "none",
    });
    expect((await sandbox.control.counts()).charges).toBe(0);
  });

  it("in the network: with its key pruned meanwhile it is a new request", async () => {
    await add(
      { type: "reset", effect: "later", arrival: "in_network" },
      { match: { call: "payment_intents.create" } },
    );
    await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    await sandbox.control.pruneIdempotencyKeys();
    await sandbox.control.release();
    expect((await sandbox.control.counts("payment_attempt_id")).by_metadata["1"]?.payment_intents).toBe(2);
  });

  it.each(["in_network", "executing"] as const)(
    "%s, hanging: the answer comes with the effect",
    async (arrival) => {
      const made = await created(sandbox);
      await add({ type: "hang", effect: "later", arrival });
      const waiting = confirm(made.id);
      expect(await sandbox.control.waitForHeld()).toMatchObject([{ stage: arrival }]);
      expect(await statusOf(made.id)).toBe("requires_confirmation");
      await sandbox.control.release();
      expect(bodyOf(await waiting).status).toBe("succeeded");
    },
  );

  it.each(["in_network", "executing"] as const)(
    "%s: it comes by itself after the time given",
    async (arrival) => {
      const made = await created(sandbox);
      await add({ type: "reset", effect: "later", arrival, effect_after_ms: 30 });
      await confirm(made.id);
      const [entry] = await sandbox.control.waitForRequests({ filter: { call: CONFIRM }, until: "settled" });
      expect(entry).toMatchObject({ effect: "applied" });
      expect(await statusOf(made.id)).toBe("succeeded");
    },
  );

  it.each(["in_network", "executing"] as const)(
    "%s: dropped, it never happens and the key is free",
    async (arrival) => {
      const made = await created(sandbox);
      await add({ type: "reset", effect: "later", arrival });
      await confirm(made.id);
      await sandbox.control.release({ outcome: "drop" });
      expect(await statusOf(made.id)).toBe("requires_confirmation");
      expect((await logged()).effect).toBe("none");
      expect(bodyOf(await confirm(made.id)).status).toBe("succeeded");
    },
  );

  it("a decline that comes later is a decline", async () => {
    const made = await created(sandbox, "pm_card_visa_chargeDeclined");
    await add({ type: "empty", effect: "later" });
    expect((await confirm(made.id)).status).toBe(200);
    await sandbox.control.release();
    expect((await confirm(made.id)).status).toBe(402);
    expect((await sandbox.control.getPaymentIntent(made.id)).charges).toHaveLength(1);
  });
});

describe("a stored 500", () => {
  it.each([
    ["none", "requires_confirmation", 0],
    ["applied", "succeeded", 1],
  ] as const)(
    "with effect %s: the key replays the 500 for ever, the object is %s",
    async (effect, status, charges) => {
      const made = await created(sandbox);
      await add({ type: "stored_error", effect });
      const first = await confirm(made.id);
      expect(first.status).toBe(500);
      expect(bodyOf<ErrorBody>(first).error.type).toBe("api_error");
      const again = await confirm(made.id);
      expect(again).toMatchObject({
        status: 500,
        text: first.text,
        headers: { "idempotent-replayed": "true" },
      });
      expect(await statusOf(made.id)).toBe(status);
      expect((await sandbox.control.counts()).successful_charges).toBe(charges);
    },
  );

  it("may be followed by the effect, and the key still replays the 500", async () => {
    const made = await created(sandbox);
    await add({ type: "stored_error", effect: "later" });
    expect((await confirm(made.id)).status).toBe(500);
    expect(await statusOf(made.id)).toBe("requires_confirmation");
    await sandbox.control.release();
    expect(await statusOf(made.id)).toBe("succeeded");
    expect((await confirm(made.id)).status).toBe(500);
  });

  it("stays a 500 when the object was canceled before the effect came", async () => {
    const made = await created(sandbox);
    await add({ type: "stored_error", effect: "later" });
    await confirm(made.id);
    await stripeFor(sandbox).paymentIntents.cancel(made.id);
    await sandbox.control.release();
    expect(await statusOf(made.id)).toBe("canceled");
    expect((await sandbox.control.counts()).charges).toBe(0);
  });
});

describe("an error before execution", () => {
  it.each([
    [400, undefined, "idempotency_error", undefined],
    [401, undefined, "invalid_request_error", undefined],
    [403, undefined, "invalid_request_error", undefined],
    [404, undefined, "invalid_request_error", "resource_missing"],
    [409, undefined, "idempotency_error", "idempotency_key_in_use"],
    [409, "resource_conflict", "invalid_request_error", "resource_conflict"],
    [424, undefined, "api_error", undefined],
    [429, undefined, "invalid_request_error", "rate_limit"],
    [429, "lock_timeout", "invalid_request_error", "lock_timeout"],
    [500, undefined, "api_error", undefined],
    [502, undefined, "api_error", undefined],
    [503, undefined, "api_error", undefined],
    [504, undefined, "api_error", undefined],
  ])("%i %s: type %s, code %s, no effect, the key free", async (status, given, type, code) => {
    const made = await created(sandbox);
    await add({ type: "error", status, ...(given === undefined ? {} : { code: given }), retry_after: 2 });
    const answer = await confirm(made.id);
    expect(answer.status).toBe(status);
    expect(answer.headers["retry-after"]).toBe("2");
    expect(answer.headers["idempotent-replayed"]).toBeUndefined();
    const { error } = bodyOf<ErrorBody>(answer);
    expect([error.type, error.code]).toEqual([type, code]);
    expect(await statusOf(made.id)).toBe("requires_confirmation");
    expect(bodyOf(await confirm(made.id)).status).toBe("succeeded");
  });

  it("may also hide an effect, which the key then tells of", async () => {
    const made = await created(sandbox);
    await add({ type: "error", status: 504, effect: "applied" });
    expect((await confirm(made.id)).status).toBe(504);
    expect(await statusOf(made.id)).toBe("succeeded");
    expect(await logged()).toMatchObject({ status: 504, result_status: 200, effect: "applied" });
    expect(bodyOf(await confirm(made.id)).status).toBe("succeeded");
  });
});

describe("latency", () => {
  it("keeps a slow call at work: its key is in use meanwhile", async () => {
    const made = await created(sandbox);
    await add({ type: "slow" }, { match: { call: CONFIRM }, latency_ms: 400 });
    const slow = confirm(made.id);
    await sandbox.control.waitForRequests({ filter: { call: CONFIRM, effect: "pending" } });
    expect(bodyOf<ErrorBody>(await confirm(made.id)).error.code).toBe("idempotency_key_in_use");
    expect(bodyOf(await slow).status).toBe("succeeded");
  });

  it("of the whole sandbox applies to every call", async () => {
    await sandbox.control.changeSettings({ latency_ms: 50 });
    const start = performance.now();
    expect((await created(sandbox)).status).toBe("requires_confirmation");
    expect(performance.now() - start).toBeGreaterThanOrEqual(45);
  });
});
