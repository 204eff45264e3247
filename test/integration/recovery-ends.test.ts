import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { firstIdAt } from "../../src/lib/ids.js";
import { checkReadiness } from "../../src/operations/check-health.js";
import type { Deps } from "../../src/operations/deps.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince, endRecoveryNow, startDueRecovery } from "../../src/operations/recover.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import { COMPARING, loseRows, payMany, runsOf } from "../support/reconciliation.js";
import { until } from "../support/until.js";

const HOUR_MS = 3_600_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

let harness: Harness;
beforeEach(async () => {
  harness = await startHarness({ env: COMPARING, workers: [] });
});
afterEach(() => harness.stop());

const account = () => new Comparison(harness.deps).accountOrThrow();

async function isRecovering(): Promise<boolean> {
  await harness.deps.recovery.check();
  return harness.deps.recovery.isRecovering();
}

/** The data stands in another database than it says, as a dump does that was restored. */
async function moveElsewhere(): Promise<void> {
  await harness.deps.db.sql`
    update installation set system_identifier = split_part(system_identifier, '/', 1) || '/1.1'`;
  await harness.deps.recovery.check();
}

test("two recoveries that end in the same moment leave none behind", async () => {
  const gate = new Gate("before_recovery_completed");
  const ends: Promise<unknown>[] = [];
  for (const hours of [1, 2]) {
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(hours));
    const deps = { ...harness.deps, workerName: `worker ${hours}`, probe: gate.probe };
    ends.push(new Comparison(deps).drive(id));
  }
  await until(
    "both at their end",
    () => gate.arrivals,
    (arrivals) => arrivals === 2,
  );
  expect(await isRecovering()).toBe(true);
  gate.open();
  await Promise.all(ends);
  expect((await runsOf(harness)).map(({ state }) => state)).toEqual(["completed", "completed"]);
  expect(await isRecovering()).toBe(false);
});

test("a recovery whose key may not list the charges has failed: nothing was taken in, and nothing is sent", async () => {
  await harness.sandbox.control.addFault({
    match: { call: "payment_intents.list" },
    times: null,
    fault: { type: "error", status: 403 },
  });
  const impatient: Deps = {
    ...harness.deps,
    clock: { ...harness.deps.clock, sleep: () => Promise.resolve() },
  };
  const id = await beginRecoverySince(impatient, await account(), hoursAgo(1));
  expect(await new Comparison(impatient).drive(id)).toMatchObject({
    state: "failed",
    error: "charges: the provider did not answer (forbidden)",
  });
  expect(await isRecovering()).toBe(true);
});

describe("a recovery that came with a dump", () => {
  test("is gone on with by a worker, and does not end that of the restored data", async () => {
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    await moveElsewhere();
    expect(harness.deps.recovery.current()?.reason).toBe("database_restored");
    const comparison = new Comparison(harness.deps);
    while (await comparison.round());
    expect(await runsOf(harness)).toMatchObject([{ id, state: "completed" }]);
    expect(await isRecovering()).toBe(true);
  });

  test("is not what a person's own begins with: that one compares all, and ends it", async () => {
    const old = await beginRecoverySince(harness.deps, await account(), hoursAgo(3));
    await moveElsewhere();
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    expect(id).not.toBe(old);
    await new Comparison(harness.deps).drive(id);
    expect(await isRecovering()).toBe(false);
  });
});

describe("where the data tells of another provider account", () => {
  const other = () => harness.another({ env: COMPARING, workers: [], stripeKey: "sk_test_another" });
  const compared = (provider: string, account: string, at: Date) => harness.deps.db.sql`
    insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, state, phase, started_at)
    values (${provider}, ${`rec_${account}_${String(at.getTime())}`}, ${account}, 'worker', ${at.toISOString()}, ${at.toISOString()}, 'completed',
            'verify', ${at.toISOString()})`;

  /** Both have compared until now, as far as the data tells, and the database is another one. */
  async function twoAccounts() {
    const { deps } = await other();
    const [own, theirs] = [new Comparison(harness.deps), new Comparison(deps)];
    const { name } = harness.deps.provider;
    const theirId = await theirs.accountOrThrow();
    await compared(name, await own.accountOrThrow(), hoursAgo(2));
    await compared(name, theirId, hoursAgo(3));
    await compared(name, "acct_retired", hoursAgo(48));
    await harness.deps.db.sql`update installation set cluster_timeline = cluster_timeline + 1`;
    await harness.deps.recovery.check();
    await deps.recovery.check();
    return { own, theirs, theirId };
  }

  test("a recovery ends when both have taken in what was lost, and says until then whom it waits for", async () => {
    const { own, theirs, theirId } = await twoAccounts();
    for (let rounds = 0; rounds < 20; rounds += 1) await own.round();
    expect((await runsOf(harness)).filter(({ trigger }) => trigger === "recover")).toHaveLength(1);
    expect(await isRecovering()).toBe(true);
    expect((await checkReadiness(harness.deps)).checks["recovery"]).toContain(
      `these accounts are to be compared: ${theirId}`,
    );
    while (await theirs.round());
    expect(await isRecovering()).toBe(false);
    const recovered = (await runsOf(harness)).filter(({ trigger }) => trigger === "recover");
    expect(recovered.map(({ state }) => state)).toEqual(["completed", "completed"]);
  });

  test("a person who knows that the other is gone ends it", async () => {
    const { own } = await twoAccounts();
    while (await own.round());
    expect(await isRecovering()).toBe(true);
    expect(await endRecoveryNow(harness.deps, "that account is closed")).toBe(true);
    expect(await isRecovering()).toBe(false);
  });
});

test("a recovery that another process has just ended is not begun again by one that has not noticed yet", async () => {
  const { sql } = harness.deps.db;
  await sql`update installation set cluster_timeline = cluster_timeline + 1`;
  await harness.deps.recovery.check();
  await sql`update installation set recovering_since = null, recovery_reason = null`;
  expect(harness.deps.recovery.isRecovering()).toBe(true);
  await startDueRecovery(harness.deps, await account());
  expect(await runsOf(harness)).toEqual([]);
});

test("a recovery takes in what was made last, where the provider's clock is ahead of ours", async () => {
  await harness.pawl.startWorkers(["attempts"]);
  const [paid] = await payMany(harness, 1);
  await loseRows(harness, [paid!.paymentId]);
  const created = Math.floor(Date.now() / 1_000) + 600;
  await harness.sandbox.control.patchPaymentIntent(paid!.objectId, { created });
  const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
  expect(await new Comparison(harness.deps).drive(id)).toMatchObject({ state: "completed", repaired: 1 });
});

test("a recovery by itself begins before what was lost, whatever was accepted or compared since the promotion", async () => {
  const { sql } = harness.deps.db;
  await sql`update installation set created_at = now() - interval '30 days'`;
  const newest = hoursAgo(3);
  const row = { tenant_id: harness.caller.tenantId, status: "failed", amount: 1, currency: "usd" };
  const rest = { capture_method: "automatic", payment_method: "pm", metadata: "{}", provider: "stripe" };
  for (const at of [newest, new Date()]) {
    const id = firstIdAt("pay", at);
    await sql`insert into payments ${sql({ ...row, ...rest, id, attempt_id: id, holds_order_id: false, livemode: false })}`;
  }
  await sql`update installation set cluster_timeline = cluster_timeline + 1`;
  await harness.deps.recovery.check();
  await startDueRecovery(harness.deps, await account());
  await sql`update reconciliation_runs set state = 'failed'`;
  await startDueRecovery(harness.deps, await account());
  const runs = await sql<{ window_from: string }[]>`select window_from from reconciliation_runs`;
  const begins = newest.getTime() - HOUR_MS;
  expect(runs.map((run) => new Date(run.window_from).getTime())).toEqual([begins, begins]);
});
