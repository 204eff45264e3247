import { describe, expect, test } from "vitest";
import { checkReadiness } from "../../src/operations/check-health.js";
import { getPayment } from "../../src/operations/read-payments.js";
import type { LoggedRequest } from "../../src/sandbox/index.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const SHORT_BUDGET = { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1500" };
const CALLS = ["create", "confirm"] as const;

function sendsOf(harness: Harness, call: string): Promise<LoggedRequest[]> {
  return harness.sandbox.control.listRequests({ call: `payment_intents.${call}` });
}

describe.each(CALLS)("a %s", (call) => {
  const match = { call: `payment_intents.${call}` };

  test("that meets a rate limit twice goes out again, unasked, after Retry-After, as the same request", async () => {
    const harness = await stage.start();
    await harness.sandbox.control.addFault({
      match,
      times: 2,
      fault: { type: "error", status: 429, retry_after: 1 },
    });
    expect(documentOf(await pay(harness)).status).toBe("succeeded");
    const sends = await sendsOf(harness, call);
    expect(sends.map((entry) => entry.status)).toEqual([429, 429, 200]);
    expect(new Set(sends.map((entry) => entry.idempotency_key)).size).toBe(1);
    const at = sends.map((entry) => Date.parse(entry.received_at));
    const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    expect(gaps.every((gap) => gap >= 990)).toBe(true);
    expect(await wireOf(harness)).toHaveLength(4);
  });

  test.each([401, 403])(
    "that meets a %i holds, degrades readiness, and goes on when the credential works again",
    async (status) => {
      const harness = await stage.start({ env: { ATTEMPT_RETRY_BUDGET_MS: "20000" } });
      const { control } = harness.sandbox;
      await control.addFault({ match, times: null, fault: { type: "error", status } });
      const answer = await pay(harness, { waitMs: 0 });
      const { id } = documentOf(answer);
      await control.waitForRequests({ filter: { ...match, status }, count: 2 });
      const held = await until(
        "a payment that is held",
        () => getPayment(harness.deps, harness.caller, id),
        (payment) => payment.resolution !== null,
      );
      expect(held).toMatchObject({
        status: "processing",
        resolution: { state: "held", reason: status === 401 ? "unauthorized" : "forbidden" },
      });
      expect(await checkReadiness(harness.deps)).toMatchObject({ ready: false, checks: { database: "ok" } });
      await control.clearFaults();
      await untilStatus(harness, id, "succeeded");
      expect(await checkReadiness(harness.deps)).toEqual({
        ready: true,
        checks: { database: "ok", provider: "ok", recovery: "ok" },
      });
      expect((await wireOf(harness)).filter((words) => /list|retrieve/.test(words))).toEqual([]);
    },
  );

  test("that finds its key in use three times is asked about each time, and pays", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({ match, times: 3, fault: { type: "error", status: 409 } });
    expect(documentOf(await pay(harness)).status).toBe("succeeded");
    const question = call === "create" ? "list 200" : "retrieve 200";
    const inUse = [`${call} 409`, question];
    expect(
      (await wireOf(harness)).filter((words) => !words.startsWith(call === "create" ? "confirm" : "create")),
    ).toEqual([...inUse, ...inUse, ...inUse, `${call} 200`]);
  });

  const misused = { type: "error", status: 400, error_type: "idempotency_error" } as const;

  test("whose re-send is called a misuse of its key is looked up, and the first send's effect adopted", async () => {
    const gate = stage.gate(call === "create" ? "before_find" : "before_get", 1);
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    const { control } = harness.sandbox;
    await control.addFault({ match, fault: { type: "reset", effect: "later", arrival: "in_network" } });
    await control.addFault({ match, fault: misused });
    const answer = pay(harness);
    await gate.reached();
    await control.release();
    gate.open();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect(await sendsOf(harness, call)).toHaveLength(2);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("whose re-send is called a misuse of its key, without effect, is not sent under a fresh key", async () => {
    const harness = await stage.start({ env: HASTY });
    const { control } = harness.sandbox;
    await control.addFault({ match, fault: { type: "reset", effect: "none" } });
    await control.addFault({ match, fault: misused });
    const answer = pay(harness);
    // A confirm's object is fenced, which proves it; a create's absence proves nothing once its key was known.
    if (call === "create") expect(documentOf(await answer).status).toBe("needs_review");
    else await expect(answer).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await sendsOf(harness, call)).toHaveLength(2);
    expect(await control.counts()).toMatchObject({ successful_charges: 0 });
  });

  test("that meets a lock timeout is asked about before it goes out again", async () => {
    const harness = await stage.start({ env: HASTY });
    await harness.sandbox.control.addFault({
      match,
      fault: { type: "error", status: 429, code: "lock_timeout" },
    });
    expect(documentOf(await pay(harness)).status).toBe("succeeded");
    expect(await wireOf(harness)).toContain(call === "create" ? "list 200" : "retrieve 200");
  });

  test("that is limited without end fails at the budget's end, proven to be without effect", async () => {
    const harness = await stage.start({ env: SHORT_BUDGET });
    const { control } = harness.sandbox;
    await control.addFault({ match, times: null, fault: { type: "error", status: 429 } });
    const key = newKey();
    await expect(pay(harness, { key })).rejects.toMatchObject({
      code: "provider_unavailable",
      extra: { retryAfterSeconds: 1, payment: { status: "failed", failure: { retry: "same_key" } } },
    });
    const sends = await sendsOf(harness, call);
    expect(sends.length).toBeGreaterThan(1);
    expect(new Set(sends.map((entry) => entry.idempotency_key)).size).toBe(1);
    expect(await control.counts()).toMatchObject({ successful_charges: 0 });
    await control.clearFaults();
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });
});

describe("a re-send that is refused says nothing of the send before it:", () => {
  test.each([429, 401, 403, 400, 404])("after a lost confirm, a %i is asked about", async (status) => {
    const gate = stage.gate("before_confirm", 1);
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    const { control } = harness.sandbox;
    const match = { call: "payment_intents.confirm" };
    await control.addFault({ match, fault: { type: "reset", effect: "later", arrival: "in_network" } });
    await control.addFault({
      match,
      fault: { type: "error", status, code: status === 400 ? "parameter_unknown" : null },
    });
    const answer = pay(harness);
    await gate.reached();
    gate.open();
    await control.waitForRequests({ filter: { ...match, status } });
    await control.release();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});

test("a provider that refuses connections is waited for, and the payment made when it is back", async () => {
  const harness = await stage.start();
  const { control } = harness.sandbox;
  await control.closeListener();
  const answer = pay(harness);
  await expect
    .poll(async () => (await harness.deps.db.sql`select waits from attempts where waits > 1`).length)
    .toBe(1);
  expect(await wireOf(harness)).toEqual([]);
  await control.openListener();
  expect(documentOf(await answer).status).toBe("succeeded");
  expect(await wireOf(harness)).toEqual(["create 200", "confirm 200"]);
});

test("a provider that refuses connections past the budget leaves the key to run again", async () => {
  const harness = await stage.start({ env: SHORT_BUDGET });
  const { control } = harness.sandbox;
  await control.closeListener();
  const key = newKey();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await control.openListener();
  expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  expect((await onlyObject(harness)).successful_charges).toBe(1);
});

test("a request that the provider finds wrong is a final refusal, stored and replayed", async () => {
  const harness = await stage.start();
  const key = newKey();
  const input = { amount: 1 };
  const first = await pay(harness, { key, input });
  expect(documentOf(first)).toMatchObject({
    status: "failed",
    failure: { code: "amount_too_small", retry: "new_key" },
  });
  const before = await wireOf(harness);
  const second = await pay(harness, { key, input });
  if (first.type !== "final" || second.type !== "final") throw new Error("not final");
  expect(second.response).toEqual(first.response);
  expect(first.response.status).toBe(402);
  expect(await wireOf(harness)).toEqual(before);
});
