import { afterEach, beforeEach, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince, sinceToldOf } from "../../src/operations/recover.js";
import { documentOf, type Harness, pay, startHarness } from "../support/harness.js";
import { COMPARING, loseRows } from "../support/reconciliation.js";

const HOUR_MS = 3_600_000;

let harness: Harness;
beforeEach(async () => {
  harness = await startHarness({ env: COMPARING });
});
afterEach(() => harness.stop());

/** Of which the data tells, where nothing but the installation is older than what is missing. */
async function madeBefore(hours: number): Promise<Date> {
  const { sql } = harness.deps.db;
  const [row] = await sql<{ created_at: string }[]>`
    update installation set created_at = now() - ${hours}::int * interval '1 hour' returning created_at`;
  return new Date(row!.created_at);
}

test("a recovery from a time later than the data tells of begins where the data ends, and takes in what is missing", async () => {
  const { deps } = harness;
  const made = await madeBefore(2);
  const { id } = documentOf(await pay(harness));
  await loseRows(harness, [id]);
  await deps.recovery.begin("asked_for", null);
  const comparison = new Comparison(deps);
  const inAMinute = new Date(Date.now() + 60_000);
  const since = await sinceToldOf(deps, inAMinute);
  expect(since).toEqual(new Date(made.getTime() - HOUR_MS));
  const run = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
  expect(await comparison.drive(run)).toMatchObject({ state: "completed" });
  expect(await deps.db.sql`select status from payments`).toEqual([{ status: "succeeded" }]);
});

test("an earlier time is left as it is", async () => {
  const made = await madeBefore(2);
  await harness.deps.recovery.begin("asked_for", null);
  const named = new Date(made.getTime() - 2 * HOUR_MS);
  expect(await sinceToldOf(harness.deps, named)).toEqual(named);
});
