import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ListedCharge, PageOutcome, PageRequest } from "../../src/domain/provider.js";
import { firstIdAt } from "../../src/lib/ids.js";
import type { Deps } from "../../src/operations/deps.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince, startDueRecovery } from "../../src/operations/recover.js";
import { beginRecovery } from "../../src/store/recovery.js";
import { type Harness, pay, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import { COMPARING, compareNow, emptyRows, loseRows, payMany, runsOf } from "../support/reconciliation.js";

const HOUR_MS = 3_600_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: [] });
});
beforeEach(async () => {
  await emptyRows(harness);
  await harness.sandbox.control.clearFaults();
  // As at a first start: where the data stands is recorded anew.
  await harness.deps.db.sql`
    update installation set system_identifier = null, cluster_timeline = null, recovering_since = null,
           recovery_reason = null, created_at = now()`;
  await harness.deps.recovery.check();
});
afterAll(() => harness.stop());

const account = () => new Comparison(harness.deps).accountOrThrow();

/** Waits for nothing. */
function impatient(changes: Partial<Deps> = {}): Deps {
  const clock = { ...harness.deps.clock, sleep: () => Promise.resolve() };
  return { ...harness.deps, clock, ...changes };
}

/** As the row says it, to whoever reads it now. */
async function recoveringSince(): Promise<string | null> {
  const [row] = await harness.deps.db.sql<{ since: string | null }[]>`
    select recovering_since::text as since from installation`;
  return row?.since ?? null;
}

describe("a recovery", () => {
  test.each([
    ["charges", "payment_intents.list"],
    ["refunds", "refunds.list"],
  ])("that may not list %s has taken nothing in, and lets nobody send", async (phase, call) => {
    await harness.sandbox.control.addFault({
      match: { call },
      times: null,
      fault: { type: "error", status: 403 },
    });
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    expect(await new Comparison(impatient()).drive(id)).toMatchObject({
      state: "failed",
      error: `${phase}: the provider did not answer (forbidden)`,
    });
    expect(await recoveringSince()).not.toBeNull();
  });

  test("is over before its run has ended, so that a process which dies in between leaves none behind", async () => {
    const seen: unknown[] = [];
    const probe = async (point: string) => {
      if (point !== "after_page_committed") return;
      const [run] = await runsOf(harness);
      if (run?.state === "completed") seen.push(await recoveringSince());
    };
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    await new Comparison(impatient({ probe })).drive(id);
    expect(seen).toEqual([null]);
  });

  test("lets what was kept back go at once when it ends, and leaves alone what somebody holds", async () => {
    const { sql } = harness.deps.db;
    await pay(harness, { waitMs: 0 });
    await pay(harness, { waitMs: 0 });
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    await sql`update attempts set wait_reason = 'recovering', due_at = now() + interval '1 hour'`;
    await sql`update attempts set lease_owner = 'one', lease_expires_at = now() + interval '1 hour'
               where id = (select min(id) from attempts)`;
    await new Comparison(impatient()).drive(id);
    expect(await recoveringSince()).toBeNull();
    const due = await sql`select due_at <= now() as due from attempts order by id`;
    expect(due).toEqual([{ due: false }, { due: true }]);
  });
});

describe("a change of the database in the middle of a recovery", () => {
  test.each([
    ["cluster_changed", "system_identifier = '1/' || split_part(system_identifier, '/', 2)"],
    ["database_restored", "system_identifier = split_part(system_identifier, '/', 1) || '/1.1'"],
  ])(
    "%s is a recovery of its own: the one that came with the data does not end it",
    async (reason, change) => {
      const { sql } = harness.deps.db;
      const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
      await sql`update installation set ${sql.unsafe(change)}`;
      await harness.deps.recovery.check();
      expect(harness.deps.recovery.current()?.reason).toBe(reason);
      await new Comparison(impatient()).drive(id);
      expect(await recoveringSince()).not.toBeNull();
    },
  );

  test("a standby that is promoted goes on with the recovery that is under way, which ends it", async () => {
    const { sql } = harness.deps.db;
    const id = await beginRecoverySince(harness.deps, await account(), hoursAgo(1));
    const since = await recoveringSince();
    await sql`update installation set cluster_timeline = cluster_timeline + 1`;
    await harness.deps.recovery.check();
    expect(await recoveringSince()).toBe(since);
    await new Comparison(impatient()).drive(id);
    expect(await recoveringSince()).toBeNull();
  });

  test("begins one recovery, however many processes notice it", async () => {
    const identity = { cluster: "1", database: "1.1", timeline: 1 };
    const noticed: (string | null)[] = [];
    for (let processes = 0; processes < 2; processes += 1) {
      await beginRecovery(harness.deps.db.sql, "database_restored", identity, true);
      noticed.push(await recoveringSince());
    }
    expect(noticed[1]).toBe(noticed[0]);
  });
});

test("a recovery by itself does not count what was accepted while processes looked seldom at the database", async () => {
  const { sql } = harness.deps.db;
  await sql`update installation set created_at = now() - interval '30 days'`;
  const row = { tenant_id: harness.caller.tenantId, status: "failed", amount: 1, currency: "usd" };
  const rest = { capture_method: "automatic", payment_method: "pm", metadata: "{}", provider: "stripe" };
  const newest = hoursAgo(6);
  for (const at of [newest, hoursAgo(1)]) {
    const id = firstIdAt("pay", at);
    await sql`insert into payments ${sql({ ...row, ...rest, id, attempt_id: id, holds_order_id: false, livemode: false })}`;
  }
  await sql`update installation set cluster_timeline = cluster_timeline + 1`;
  await harness.deps.recovery.check();
  const settings = { ...harness.deps.settings, databaseCheckIntervalMs: HOUR_MS };
  await startDueRecovery({ ...harness.deps, settings }, await account());
  const [run] = await sql<{ window_from: string }[]>`select window_from from reconciliation_runs`;
  expect(new Date(run?.window_from ?? "").getTime()).toBe(newest.getTime() - HOUR_MS);
});

test("a recovery that may list no more when it looks again has failed, and does not look for ever", async () => {
  const { control } = harness.sandbox;
  await harness.pawl.startWorkers(["attempts"]);
  const [paid] = await payMany(harness, 1);
  await loseRows(harness, [paid?.paymentId ?? ""]);
  // Made before the time that is asked for, and found missing by a comparison before it.
  const created = Math.floor(Date.now() / 1_000) - 1_200;
  await control.patchPaymentIntent(paid?.objectId ?? "", { created });
  await compareNow(harness.deps);
  const id = await beginRecoverySince(harness.deps, await account(), new Date(Date.now() - 600_000));
  let lists = 0;
  const listCharges = async (page: PageRequest): Promise<PageOutcome<ListedCharge>> => {
    lists += 1;
    const evidence = { httpStatus: 403, code: null, requestId: null };
    if (lists > 1) return { type: "unanswered", reason: "forbidden", retryAfterMs: null, evidence };
    // It lags behind, so that the object is looked for when the run looks again.
    const listed = await harness.deps.provider.listCharges(page);
    return listed.type === "page" ? { ...listed, items: [] } : listed;
  };
  let steps = 0;
  const run = await new Comparison(withProvider(impatient(), { listCharges })).drive(id, () => {
    steps += 1;
    if (steps > 100) throw new Error("it goes on for ever");
  });
  expect(run).toMatchObject({
    state: "failed",
    error: "verify: the provider did not answer (forbidden)",
  });
  expect(await recoveringSince()).not.toBeNull();
});
