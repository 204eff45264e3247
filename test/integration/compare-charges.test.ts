import { afterEach, expect, test } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";
import {
  COMPARING,
  findingWords,
  loseRows,
  payMany,
  runsOf,
  untilSettled,
} from "../support/reconciliation.js";
import { until } from "../support/until.js";

/** Longer than it takes to pay five times and to start two workers. */
const LAG_MS = 3_000;
const LATE: Readonly<Record<string, string>> = { ...COMPARING, RECONCILE_LAG_MS: String(LAG_MS) };

let harness: Harness;
afterEach(() => harness.stop());

test("of 250 payments exactly the true differences are found, each once, by two workers and over a page that fails", async () => {
  harness = await startHarness({ env: LATE, workers: ["attempts"] });
  const { control } = harness.sandbox;
  const paid = await payMany(harness, 250);
  const at = (number: number) => paid[number - 1] ?? { paymentId: "", objectId: "" };
  await loseRows(harness, [at(120).paymentId, at(240).paymentId]);
  await control.patchPaymentIntent(at(60).objectId, { amount: 4_300 });
  await control.patchPaymentIntent(at(180).objectId, { status: "on_hold" });
  await untilSettled(harness, LAG_MS);
  await payMany(harness, 5);
  await control.clearRequests();
  await control.addFault({
    match: { call: "payment_intents.list" },
    skip: 1,
    times: 1,
    fault: { type: "error", status: 500 },
  });
  for (let workers = 0; workers < 2; workers += 1) {
    await harness.another({ env: LATE, workers: ["comparison"] });
  }
  await until(
    "an end",
    () => runsOf(harness),
    (runs) => runs.some(({ state }) => state === "completed"),
  );
  expect(await findingWords(harness)).toEqual(
    [
      `amount_differs ${at(60).objectId} open`,
      `missing_here ${at(120).objectId} open`,
      `missing_here ${at(240).objectId} open`,
      `status_unrecognized ${at(180).objectId} open`,
    ].toSorted(),
  );
  const [run, ...others] = await runsOf(harness);
  expect(others).toEqual([]);
  expect(run).toMatchObject({ trigger: "worker", error: null });
  const lists = await control.listRequests({ call: "payment_intents.list" });
  expect(lists.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 500]);
  const { sql } = harness.deps.db;
  expect(await sql`select payment_id, reason from reviews order by reason`).toEqual([
    { payment_id: at(60).paymentId, reason: "provider_amount_mismatch" },
    { payment_id: at(180).paymentId, reason: "provider_status_unrecognized" },
  ]);
  expect(await sql`select id from timeline where kind = 'fact'`).toHaveLength(2);
});
