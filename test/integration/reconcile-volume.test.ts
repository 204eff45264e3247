import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { Accounts } from "../../src/sandbox/accounts.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type Crowd, makeRows, plantedWords } from "../support/reconcile-crowd.js";
import { writeJournal } from "../support/reconcile-journal.js";
import { COMPARING, findingWords, runsOf } from "../support/reconciliation.js";
import { until } from "../support/until.js";

const STRIPE_KEY = "sk_test_crowd";
const COUNT = 1_000;
const STEP_MS = 100;
const CROWD: Crowd = {
  count: COUNT,
  tenants: 10,
  stepMs: STEP_MS,
  startMs: Math.floor((Date.now() - 3_600_000) / 1_000) * 1_000,
  account: new Accounts().callerOf(STRIPE_KEY).account,
};
/** Some sixty steps, on whatever machine. */
const PATIENCE_MS = 100_000;
const TIMEOUT_MS = PATIENCE_MS + 20_000;
/** A charge and its movement for each payment; of every 20th a refund with its own, of every 100th a dispute with its own. */
const OBJECTS = 2 * COUNT + 2 * (COUNT / 20) + 2 * (COUNT / 100);

let folder: string;
let harness: Harness;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-test-crowd-"));
  writeJournal(folder, CROWD);
  harness = await startHarness({
    env: COMPARING,
    workers: [],
    stripeKey: STRIPE_KEY,
    sandbox: { stateDir: folder },
  });
  await makeRows(harness.deps.db.sql, CROWD);
});
afterAll(async () => {
  await harness.stop();
  rmSync(folder, { recursive: true, force: true });
});

test(
  "of a thousand payments exactly what differs is found, though each page is another worker's and some are refused",
  async () => {
    const { sql } = harness.deps.db;
    const { deps: other } = await harness.another({ workers: [] });
    await harness.sandbox.control.addFault({
      match: { call: ["payment_intents.list", "refunds.list", "balance_transactions.list"] },
      skip: 3,
      times: 2,
      fault: { type: "error", status: 429, retry_after: 1 },
    });
    const workers = [new Comparison(harness.deps), new Comparison(other)];
    const windowEnd = CROWD.startMs + (COUNT + 1) * STEP_MS + 60_000;
    const window = { from: new Date(CROWD.startMs), to: new Date(windowEnd) };
    const id = await workers[0]!.begin(window);
    const run = await until(
      "the end of all pages",
      async () => {
        for (const worker of workers) {
          await worker.step(id);
          await sql`update reconciliation_runs set lease_expires_at = now() where state = 'running'`;
        }
        const [row] = await sql<{ phase: string; objects: number; error: string | null }[]>`
        select phase, objects, error from reconciliation_runs where id = ${id}`;
        return row;
      },
      (row) => row?.phase === "verify",
      PATIENCE_MS,
    );
    expect(run).toEqual({ phase: "verify", objects: OBJECTS, error: null });
    expect(await findingWords(harness)).toEqual(plantedWords(CROWD));
    expect(await runsOf(harness)).toHaveLength(1);
    const { control } = harness.sandbox;
    expect((await control.listRequests({ status: 429 })).length).toBe(2);
    expect(await control.listRequests({ call: "payment_intents.cancel" })).toHaveLength(3);
  },
  TIMEOUT_MS,
);
