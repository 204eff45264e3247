import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { insertRun, type NewRun, startDueRun } from "../../src/store/reconciliation.js";
import { type Harness, startHarness } from "../support/harness.js";

const HOUR_MS = 3_600_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);
/** How far back a comparison goes by itself. */
const WINDOW_HOURS = 72;

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
beforeEach(async () => {
  const { sql } = harness.deps.db;
  await sql`delete from reconciliation_runs`;
  await sql`update installation set created_at = now() - interval '30 days'`;
});
afterAll(() => harness.stop());

/** One that ended so many hours ago. */
async function ran(hours: number, changes: Partial<NewRun> = {}, state = "completed"): Promise<void> {
  const { sql } = harness.deps.db;
  const id = `rec_${hours}`;
  await insertRun(sql, {
    provider: "stripe",
    id,
    account: "acct_1",
    trigger: "worker",
    windowFrom: hoursAgo(hours + 1),
    windowTo: hoursAgo(hours),
    phase: "charges",
    ...changes,
  });
  await sql`update reconciliation_runs set state = ${state} where id = ${id}`;
}

/** From when on the next one compares, in whole hours ago; null: none was begun. */
async function next(): Promise<number | null> {
  const { sql } = harness.deps.db;
  const due = { provider: "stripe", account: "acct_1", everyMs: HOUR_MS, lagMs: 0, phase: "charges" };
  if (!(await startDueRun(sql, { ...due, windowMs: WINDOW_HOURS * HOUR_MS }))) return null;
  const [row] = await sql<{ hours: number }[]>`
    select round(extract(epoch from now() - window_from) / 3600)::int as hours
      from reconciliation_runs order by started_at desc, id desc limit 1`;
  return row?.hours ?? null;
}

describe("the worker's next comparison", () => {
  test("goes as far back as its window where the last one ended within it, or there was none", async () => {
    expect(await next()).toBe(WINDOW_HOURS);
    await harness.deps.db.sql`delete from reconciliation_runs`;
    await ran(5);
    expect(await next()).toBe(WINDOW_HOURS);
  });

  test("begins where the last completed one ended", async () => {
    await ran(200);
    await ran(150);
    expect(await next()).toBe(150);
  });

  test.each<[string, Partial<NewRun>, string]>([
    ["that has failed", {}, "failed"],
    ["of a window that a person asked for", { trigger: "command" }, "completed"],
    ["of another account", { account: "acct_2" }, "completed"],
    ["of another provider", { provider: "other" }, "completed"],
  ])("does not take one %s for it", async (_name, changes, state) => {
    await ran(150);
    await ran(1, changes, state);
    expect(await next()).toBe(150);
  });

  test("waits while one of its own runs", async () => {
    await ran(1, {}, "running");
    expect(await next()).toBeNull();
  });
});
