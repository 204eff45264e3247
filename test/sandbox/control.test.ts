import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { runSandboxCommand, SandboxProcess } from "./sandbox-process.js";
import { bodyOf, CREATE, created, send, stripeFor, TEST_KEY } from "./support.js";

const PATH = "/v1/payment_intents";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox.stop());

describe("the request log", () => {
  it("refuses to look for a call that there is none of, rather than find nothing", async () => {
    const call = "payment_intents.pay";
    const reason = "there is no call payment_intents.pay";
    await expect(sandbox.control.listRequests({ call })).rejects.toThrow(reason);
    await expect(sandbox.control.release({ call })).rejects.toThrow(reason);
  });

  it("tells in order what came, what it came to, and what was sent", async () => {
    const made = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}7`, key: "create" }));
    await send(sandbox, { path: PATH, body: `${CREATE}7`, key: "create" });
    await send(sandbox, { method: "GET", path: `${PATH}/${made.id}?expand[]=latest_charge` });
    await send(sandbox, {
      path: PATH,
      body: "amount=1",
      key: "bad",
      headers: { "stripe-version": "2024-06-20" },
    });
    const [first, replay, read, bad] = await sandbox.control.listRequests();
    const account = (await stripeFor(sandbox).accounts.retrieveCurrent()).id;
    expect(first).toMatchObject({
      sequence: 1,
      arrival: 1,
      method: "POST",
      path: PATH,
      call: "payment_intents.create",
      object_id: made.id,
      idempotency_key: "create",
      account,
      livemode: false,
      status: 200,
      result_status: 200,
      replayed: false,
      effect: "applied",
      fault: null,
    });
    expect(first?.parameters).toMatchObject({ amount: "4200", metadata: { payment_attempt_id: "7" } });
    expect(replay).toMatchObject({ sequence: 2, replayed: true, effect: "none", object_id: made.id });
    expect(read).toMatchObject({
      call: "payment_intents.retrieve",
      path: `${PATH}/${made.id}`,
      effect: "none",
    });
    expect(read?.parameters).toEqual({ expand: { "0": "latest_charge" } });
    expect(bad).toMatchObject({ status: 400, error_code: "parameter_missing", stripe_version: "2024-06-20" });
    expect(new Set([first, replay, read, bad].map((each) => each?.request_id)).size).toBe(4);
  });

  it("is filtered, cleared, and waited on", async () => {
    const late = sandbox.control.waitForRequests({
      filter: { call: "payment_intents.create", effect: "applied" },
      count: 2,
    });
    const made = await created(sandbox);
    await created(sandbox);
    expect(await late).toHaveLength(2);
    await send(sandbox, { method: "GET", path: `${PATH}/${made.id}` });
    expect(await sandbox.control.listRequests({ object_id: made.id })).toHaveLength(2);
    expect(await sandbox.control.listRequests({ method: "GET", status: 200 })).toHaveLength(1);
    expect(await sandbox.control.listRequests({ after_sequence: 2 })).toHaveLength(1);
    await sandbox.control.clearRequests();
    expect(await sandbox.control.listRequests()).toEqual([]);
    const never = sandbox.control.waitForRequests({
      filter: { call: "payment_intents.cancel" },
      timeout_ms: 10,
    });
    await expect(never).rejects.toThrow("0 of 1 requests");
  });

  it("keeps only so many", async () => {
    const small = await startSandbox({ requestLogLimit: 4 });
    for (let at = 0; at < 20; at += 1) await send(small, { method: "GET", path: "/v1/account" });
    const kept = await small.control.listRequests();
    expect(kept.length).toBeLessThanOrEqual(5);
    expect(kept.at(-1)?.sequence).toBe(20);
    await small.stop();
  });
});

describe("objects and clock", () => {
  it("counts charges by object and by metadata, over all accounts", async () => {
    const paid = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}a&confirm=true` }));
    await send(sandbox, { path: PATH, body: `${CREATE}a` });
    await send(sandbox, { path: PATH, body: `${CREATE}b&confirm=true`, apiKey: "sk_test_other" });
    expect(await sandbox.control.counts("payment_attempt_id")).toMatchObject({
      payment_intents: 3,
      successful_charges: 2,
      by_metadata: {
        a: { payment_intents: 2, successful_charges: 1 },
        b: { payment_intents: 1, successful_charges: 1 },
      },
    });
    const found = await sandbox.control.listPaymentIntents({
      metadata: { payment_attempt_id: "a" },
      status: "succeeded",
    });
    expect(found.map((each) => each.payment_intent.id)).toEqual([paid.id]);
    expect(found[0]).toMatchObject({ successful_charges: 1, livemode: false });
  });

  it("moves the clock that `created` follows, to and fro", async () => {
    await sandbox.control.setClock(new Date("2030-01-01T00:00:00Z"));
    const first = await created(sandbox);
    await sandbox.control.advanceClock(3_600_000);
    const second = await created(sandbox);
    expect(new Date(first.created * 1000).toISOString()).toMatch(/^2030-01-01T00:00:0/);
    expect(second.created - first.created).toBeGreaterThanOrEqual(3600);
    await sandbox.control.advanceClock(-3_600_000);
    expect((await sandbox.control.clock()).now).toMatch(/^2030-01-01T00:00:/);
  });

  it("makes an object vanish, whose id is then a 404", async () => {
    const made = await created(sandbox);
    await sandbox.control.removePaymentIntent(made.id);
    expect((await send(sandbox, { method: "GET", path: `${PATH}/${made.id}` })).status).toBe(404);
    expect((await stripeFor(sandbox).paymentIntents.list()).data).toEqual([]);
  });
});

describe("the control API", () => {
  const raw = async (method: string, path: string, body?: string) => {
    const response = await fetch(`${sandbox.controlUrl}/_sandbox${path}`, {
      method,
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, body: (await response.json()) as { error?: string } };
  };

  it.each([
    ["POST", "/faults", "{", 400, "no JSON"],
    ["POST", "/faults", "[]", 400, "JSON object"],
    ["DELETE", "/faults/rule_none", undefined, 404, "no such rule"],
    ["POST", "/clock/advance", "{}", 400, "by_ms"],
    ["POST", "/clock/set", '{"now":"tomorrow"}', 400, "RFC 3339"],
    ["POST", "/release", '{"object":"pi_1"}', 400, "object is not known"],
    ["GET", "/requests?colour=red", undefined, 400, "colour"],
    ["GET", "/payment_intents/pi_none", undefined, 404, "pi_none"],
    ["POST", "/webhook_endpoints", '{"url":"nowhere","secret":"s"}', 400, "url"],
    ["POST", "/webhook_endpoints", '{"url":"http://127.0.0.1:1/"}', 400, "secret"],
    ["GET", "/nothing", undefined, 404, "there is no GET"],
  ] as const)("answers %s %s %s with %i", async (method, path, body, status, reason) => {
    const answer = await raw(method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toContain(reason);
  });

  it("resets everything", async () => {
    await created(sandbox);
    await sandbox.control.addFault({ fault: { type: "reset" } });
    await sandbox.control.advanceClock(1_000_000);
    await sandbox.control.reset();
    expect(await sandbox.control.listFaults()).toEqual([]);
    expect(await sandbox.control.counts()).toMatchObject({ payment_intents: 0 });
    expect(Math.abs((await sandbox.control.clock()).offset_ms)).toBe(0);
    expect((await created(sandbox)).status).toBe("requires_confirmation");
  });
});

describe("the command line", () => {
  it("starts with one line of JSON, applies --fault, and answers its subcommands", async () => {
    const rule = JSON.stringify({
      match: { call: "account.retrieve" },
      fault: { type: "error", status: 503 },
    });
    const running = await SandboxProcess.start("--fault", rule);
    try {
      expect(Object.keys(JSON.parse(running.line) as object)).toEqual(["url", "control_url", "pid"]);
      const account = { method: "GET", path: "/v1/account" } as const;
      expect((await running.send(account)).status).toBe(503);
      expect((await running.send(account)).status).toBe(200);
      const at = ["--control-url", running.control.url, "--json"];
      const [log, clock, added, released] = await Promise.all([
        runSandboxCommand("log", ...at),
        runSandboxCommand("clock", "advance", "25h", ...at),
        runSandboxCommand("faults", "add", rule, ...at),
        runSandboxCommand("release", ...at),
      ]);
      expect((JSON.parse(log.stdout) as { status: number }[]).map((each) => each.status)).toEqual([503, 200]);
      expect(JSON.parse(clock.stdout)).toMatchObject({ offset_ms: 25 * 3_600_000 });
      expect(JSON.parse(added.stdout)).toMatchObject({ times: 1, applied: 0 });
      expect(JSON.parse(released.stdout)).toEqual([]);
      expect((await running.send({ ...account, apiKey: TEST_KEY })).status).toBe(503);
    } finally {
      expect(await running.end("SIGTERM")).toBe(0);
    }
  });

  it("fails with one line on stderr where no sandbox runs", async () => {
    const run = await runSandboxCommand("clock", "show", "--control-url", "http://127.0.0.1:1", "--json");
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(/^pawl sandbox: .*\n$/);
  });

  it.each([
    [["--fault", '{"fault":{"type":"explode"}}'], "fault.type"],
    [["--port", "high"], "whole number"],
    [["clock", "advance", "soon"], "number and a unit"],
    [["--webhook-url", "http://127.0.0.1:1/"], "--webhook-secret"],
  ])("refuses %j before it does anything", async (argumentList, reason) => {
    const run = await runSandboxCommand(...argumentList);
    expect(run.code).not.toBe(0);
    expect(run.stdout).toBe("");
    expect(run.stderr).toContain(reason);
  });
});
