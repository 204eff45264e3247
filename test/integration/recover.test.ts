import { afterEach, describe, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince, endRecoveryNow } from "../../src/operations/recover.js";
import type { Pawl } from "../../src/wire.js";
import { refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, startHarness, untilStatus } from "../support/harness.js";
import { type Cluster, startCluster } from "../support/postgres-cluster.js";
import { COMPARING, findingsOf, loseRows, payMany } from "../support/reconciliation.js";
import { processOn } from "../support/restored.js";
import { faultsAfterSettling } from "../support/settle-checks.js";
import { until } from "../support/until.js";
import { dumpDatabase, restoreDatabase } from "../support/whole-dump.js";

const SENDS = /\.(create|confirm|cancel|capture)$/;

/** What waits does so for longer than a test does. */
const SLOW_TO_RETRY = {
  RETRY_FIRST_MS: "120000",
  RETRY_MOST_MS: "120000",
  ATTEMPT_RETRY_BUDGET_MS: "600000",
};

let harness: Harness;
let cluster: Cluster | null = null;
const processes: Pawl[] = [];
afterEach(async () => {
  await harness.sandbox.control.clearFaults();
  for (const pawl of processes.splice(0)) {
    await pawl.drain(0);
    await pawl.close();
  }
  await harness.stop();
  await cluster?.remove();
  cluster = null;
});

/** The dump in a cluster of its own, with a process on it. */
async function restoreElsewhere(dump: Awaited<ReturnType<typeof dumpDatabase>>): Promise<Pawl> {
  cluster = await startCluster({ durable: false });
  const admin = new URL(cluster.adminUrl);
  admin.pathname = "/pawl";
  await restoreDatabase(admin.href, dump);
  const pawl = await processOn(harness, cluster.url, { env: COMPARING });
  processes.push(pawl);
  return pawl;
}

/** The harness as the restored process sees it. */
function seenBy(pawl: Pawl): Harness {
  return { ...harness, pawl, deps: pawl.deps };
}

async function sends(): Promise<string[]> {
  const log = await harness.sandbox.control.listRequests();
  return log.map(({ call }) => call ?? "").filter((call) => SENDS.test(call));
}

interface Paid {
  readonly key: string;
  readonly id: string;
}

/** Callers that pay one after another until told to stop. */
function startPaying(callers: number) {
  const paid: Paid[] = [];
  let stopped = false;
  const calling = Array.from({ length: callers }, async () => {
    while (!stopped) {
      const key = newKey();
      paid.push({ key, id: documentOf(await pay(harness, { key })).id });
    }
  });
  return {
    paid,
    stop: async () => {
      stopped = true;
      await Promise.all(calling);
    },
  };
}

test("a dump taken under load and restored elsewhere is brought up to the provider before anything is sent", async () => {
  harness = await startHarness({ env: COMPARING });
  const refundKey = newKey();
  const load = startPaying(4);
  await until(
    "payments before the dump",
    () => load.paid.length,
    (count) => count >= 20,
  );
  const dumpedAt = new Date();
  const dump = await dumpDatabase(harness.database.url);
  await until(
    "payments after the dump",
    () => load.paid.length,
    (count) => count >= 50,
  );
  await load.stop();
  const early = load.paid[0]!;
  const late = load.paid.at(-1)!;
  await refund(harness, early.id, 700, { key: refundKey });
  await refund(harness, late.id, 800);
  await harness.pawl.drain(0);

  const pawl = await restoreElsewhere(dump);
  const restored = seenBy(pawl);
  expect(pawl.deps.recovery.current()?.reason).toBe("cluster_changed");
  await harness.sandbox.control.clearRequests();
  await pawl.startWorkers(["attempts", "reconciler", "comparison", "ledger"]);
  await expect(pay(restored)).rejects.toMatchObject({ code: "service_unavailable" });
  expect(await pay(restored, { key: early.key })).toMatchObject({ type: "final", replayed: true });

  const account = await pawl.comparison.accountOrThrow();
  const id = await beginRecoverySince(pawl.deps, account, dumpedAt);
  expect(await pawl.comparison.drive(id)).toMatchObject({ state: "completed", error: null });
  expect(await sends()).toEqual([]);
  expect(pawl.deps.recovery.current()).toBeNull();

  for (const { key } of load.paid) {
    const again = await pay(restored, { key }).then(
      (answer) => documentOf(answer)["status"],
      (error: unknown) => (error as { code: string }).code,
    );
    expect(["succeeded", "idempotency_key_expired"]).toContain(again);
  }
  await expect(refund(restored, early.id, 700, { key: refundKey })).rejects.toMatchObject({
    code: "idempotency_key_expired",
  });
  expect(await sends()).toEqual([]);
  expect(documentOf(await pay(restored)).status).toBe("succeeded");
  expect(await faultsAfterSettling(restored)).toEqual([]);
  const rows = await pawl.deps.db.sql<{ status: string; refunded: string }[]>`
    select status, sum(amount_refunded) as refunded from payments group by status`;
  expect(rows).toEqual([{ status: "succeeded", refunded: "1500" }]);
  const [counted] = await pawl.deps.db.sql<
    { payments: number }[]
  >`select count(*)::int as payments from payments`;
  expect(counted?.payments).toBe(load.paid.length + 1);
  const open = (await findingsOf(restored)).filter(({ state }) => state === "open");
  expect(open).toEqual([]);
});

/** As after a failover that lost rows: what a test has deleted, and a person who says so. */
async function recoverHere(since = new Date(Date.now() - 3_600_000)) {
  const { deps } = harness;
  const comparison = new Comparison(deps);
  const id = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
  return { id, comparison };
}

describe("a recovery", () => {
  test("compares what changed a moment ago too: after a restore a young row may be as old as any", async () => {
    harness = await startHarness({ env: { ...COMPARING, RECONCILE_LAG_MS: "600000" } });
    const { id } = documentOf(await pay(harness));
    await refund(harness, id, 1_000);
    const [made] = await harness.sandbox.control.listRefunds();
    await harness.sandbox.control.bank.failRefund(made!.id);
    const { id: run, comparison } = await recoverHere();
    await comparison.drive(run);
    expect(await findingsOf(harness)).toMatchObject([{ kind: "refund_differs", state: "repaired" }]);
    const { sql } = harness.deps.db;
    expect(await sql`select status from refunds`).toEqual([{ status: "failed" }]);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });

  test("does not end while one open attempt has had no answer, and nothing is sent until then", async () => {
    harness = await startHarness({ env: COMPARING, workers: [] });
    const key = newKey();
    const { id } = documentOf(await pay(harness, { key, waitMs: 0 }));
    const { sql } = harness.deps.db;
    const runs = () => sql<{ phase: string; pages: number }[]>`select phase, pages from reconciliation_runs`;
    const { id: run, comparison } = await recoverHere();
    const ended = comparison.drive(run);
    await until("a run that waits", runs, ([now]) => now?.phase === "attempts");
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.list" },
      times: null,
      fault: { type: "error", status: 500 },
    });
    await harness.pawl.startWorkers(["attempts"]);
    await until(
      "a question without an answer",
      () => sql<{ wait_reason: string }[]>`select wait_reason from attempts`,
      ([row]) => row?.wait_reason === "server_error",
    );
    const [asked] = await runs();
    await until("its further looks", runs, ([now]) => (now?.pages ?? 0) >= (asked?.pages ?? 0) + 3);
    expect(await runs()).toMatchObject([{ phase: "attempts" }]);
    expect(harness.deps.recovery.isRecovering()).toBe(true);
    expect(await sql`select state, unresolved from attempts`).toEqual([
      { state: "create_unknown", unresolved: true },
    ]);
    expect(await sends()).toEqual([]);
    await harness.sandbox.control.clearFaults();
    expect(await ended).toMatchObject({ state: "completed" });
    await untilStatus(harness, id, "succeeded");
    expect(await sends()).toEqual(["payment_intents.create", "payment_intents.confirm"]);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });

  test("whose process died is gone on with by the worker of another", async () => {
    harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
    const [paid] = await payMany(harness, 1);
    await loseRows(harness, [paid!.paymentId]);
    await recoverHere();
    await harness.another({ env: COMPARING, workers: ["comparison"] });
    await until(
      "an end of the recovery",
      async () => {
        await harness.deps.recovery.check();
        return harness.deps.recovery.current();
      },
      (current) => current === null,
    );
    const { sql } = harness.deps.db;
    expect(await sql`select status from payments`).toEqual([{ status: "succeeded" }]);
  });

  test("is ended by a person who knows better, and what was kept back goes out at once", async () => {
    harness = await startHarness({ env: { ...COMPARING, ...SLOW_TO_RETRY }, workers: [] });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await recoverHere();
    await harness.pawl.startWorkers(["attempts"]);
    const { sql } = harness.deps.db;
    await until(
      "a send that was kept back",
      () => sql<{ wait_reason: string }[]>`select wait_reason from attempts`,
      ([row]) => row?.wait_reason === "recovering",
    );
    expect(await sends()).toEqual([]);
    expect(await endRecoveryNow(harness.deps, "a drill")).toBe(true);
    await harness.deps.recovery.check();
    await untilStatus(harness, id, "succeeded");
    expect(await sql`select state, error from reconciliation_runs`).toEqual([
      { state: "failed", error: "ended by hand: a drill" },
    ]);
    expect(await endRecoveryNow(harness.deps, "again")).toBe(false);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });
});
