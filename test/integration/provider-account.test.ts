import { describe, expect, test } from "vitest";
import { checkReadiness } from "../../src/operations/check-health.js";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import type { Pawl } from "../../src/wire.js";
import { documentOf, type Harness, pay, until, untilStatus } from "../support/harness.js";
import { freeze, HASTY, onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** A restart under another credential: a process that works with it until it is drained. */
function startWith(harness: Harness, stripeKey: string): Promise<Pawl> {
  return harness.another({ env: PATIENT, stripeKey });
}

async function untilHeldForReview(harness: Harness, id: string): Promise<void> {
  await untilStatus(harness, id, "needs_review");
  const reviews = await listOpenReviews(harness.deps, harness.caller.tenantId, 10);
  expect(reviews.map((review) => review.reason)).toEqual(["provider_account_changed"]);
}

describe.each([
  { name: "another account", stripeKey: "sk_test_other" },
  { name: "the other mode of the same account", stripeKey: "sk_live_harness" },
])("under $name", ({ stripeKey }) => {
  test("a payment that was accepted is neither sent nor asked about, and goes on under its own", async () => {
    const harness = await stage.start({ workers: [] });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    const wrong = await startWith(harness, stripeKey);
    await untilHeldForReview(harness, id);
    await wrong.drain(0);
    expect(await wireOf(harness)).toEqual([]);
    await startWith(harness, "sk_test_harness");
    await untilStatus(harness, id, "succeeded");
    expect(await listOpenReviews(harness.deps, null, 10)).toEqual([]);
    expect(await wireOf(harness)).toEqual(["create 200", "confirm 200"]);
  });

  test("a payment whose confirm is unknown is neither sent again nor asked about", async () => {
    const gate = stage.gate("before_get");
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "applied" },
    });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await gate.reached();
    freeze(harness.pawl);
    const before = await wireOf(harness);
    const wrong = await startWith(harness, stripeKey);
    await untilHeldForReview(harness, id);
    await wrong.drain(0);
    expect(await wireOf(harness)).toEqual(before);
    await startWith(harness, "sk_test_harness");
    await untilStatus(harness, id, "succeeded");
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});

test("another key of the same account goes on as if nothing had changed", async () => {
  const harness = await stage.start({ workers: [] });
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  const account = harness.deps.account.current();
  if (account.type !== "known") throw new Error("the account is not known");
  await harness.sandbox.control.assignApiKey("sk_test_rotated", account.accountId);
  await startWith(harness, "sk_test_rotated");
  await untilStatus(harness, id, "succeeded");
});

test("a payment accepted while the account could not be asked for belongs to the account that first works on it", async () => {
  const harness = await stage.start({ workers: [] });
  const { control } = harness.sandbox;
  await control.closeListener();
  const late = await startWith(harness, "sk_test_late");
  const { id } = documentOf(await pay(harness, { waitMs: 0, deps: late.deps }));
  await until(
    "an attempt that waits for its account",
    () => harness.deps.db.sql<{ provider_account: string | null }[]>`select * from attempts where waits > 0`,
    (rows) => rows.length === 1 && rows[0]?.provider_account === null,
  );
  await control.openListener();
  await untilStatus(harness, id, "succeeded");
  const { account } = await onlyObject(harness);
  const [attempt] = await harness.deps.db.sql<
    { provider_account: string }[]
  >`select provider_account from attempts`;
  expect(attempt?.provider_account).toBe(account);
});

test("an account that is known from an earlier start is not asked for again", async () => {
  const harness = await stage.start();
  await harness.another({ env: PATIENT });
  const asked = await harness.sandbox.control.listRequests({ call: "account.retrieve" });
  expect(asked).toHaveLength(1);
});

test("a credential that is refused from the first start on degrades readiness, until it is accepted", async () => {
  const harness = await stage.start({ workers: [] });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "account.retrieve" },
    times: null,
    fault: { type: "error", status: 401 },
  });
  const fresh = await harness.another({ stripeKey: "sk_test_refused" });
  expect(await checkReadiness(fresh.deps)).toMatchObject({
    ready: false,
    checks: { provider: "degraded: unauthorized" },
  });
  await control.clearFaults();
  await fresh.deps.account.resolve();
  expect(await checkReadiness(fresh.deps)).toMatchObject({ ready: true });
});

test("a rotated key of an account that it may not read goes on with what has an object, by asking first", async () => {
  const harness = await stage.start({ env: HASTY, workers: [], stripeKey: "rk_test_old" });
  const { control } = harness.sandbox;
  await control.assignApiKey("rk_test_old", "acct_shop");
  await control.assignApiKey("rk_test_new", "acct_shop");
  await control.addFault({
    match: { call: "account.retrieve" },
    times: null,
    fault: { type: "error", status: 403 },
  });
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "reset", effect: "applied" },
  });
  const gate = stage.gate("before_get");
  const old = await harness.another({ env: HASTY, stripeKey: "rk_test_old", probe: gate.probe });
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  await gate.reached();
  freeze(old);
  await harness.another({ env: HASTY, stripeKey: "rk_test_new" });
  await untilStatus(harness, id, "succeeded");
  expect((await onlyObject(harness)).successful_charges).toBe(1);
});
