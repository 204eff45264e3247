import { expect, test } from "vitest";
import { createAdminApp } from "../../src/http/admin/admin-app.js";
import { createApp } from "../../src/http/app.js";
import { serve } from "../../src/http/serve.js";
import { countLedger } from "../../src/operations/count-ledger.js";
import { readBacklog } from "../../src/operations/read-backlog.js";
import { getBalances } from "../../src/operations/read-ledger.js";
import { ApiClient, VISA } from "../support/api-client.js";
import type { Harness } from "../support/harness.js";
import { useStage } from "../support/stage.js";
import { until } from "../support/until.js";

const stage = useStage();
const PAYMENTS = 5;

/** The statuses of payments made one beside the other, over HTTP. */
async function payTogether(harness: Harness): Promise<unknown[]> {
  const server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  const api = new ApiClient(`http://127.0.0.1:${server.port}`, harness.secret);
  try {
    const answers = await Promise.all(Array.from({ length: PAYMENTS }, () => api.pay(VISA)));
    return answers.map((answer) => answer.json.status);
  } finally {
    await server.close(1_000);
  }
}

async function soldIn(harness: Harness): Promise<bigint | undefined> {
  const balances = await getBalances(harness.deps, harness.caller);
  return balances.find((row) => row.account === "sales" && row.currency === VISA.currency)?.credits;
}

const succeeded = Array.from({ length: PAYMENTS }, () => "succeeded");
const sold = (payments: number) => BigInt(VISA.amount * payments);

test("payments are made and posted while nobody may touch a balance", async () => {
  const harness = await stage.start({ workers: ["attempts"] });
  expect(await payTogether(harness)).toEqual(succeeded);
  await countLedger(harness.deps);
  expect(await soldIn(harness)).toBe(sold(PAYMENTS));
  await harness.deps.db.sql.begin(async (tx) => {
    await tx`lock table ledger_balances in access exclusive mode`;
    expect(await payTogether(harness)).toEqual(succeeded);
    expect((await readBacklog(harness.deps)).uncountedEntries).toBeGreaterThanOrEqual(PAYMENTS);
  });
  expect(await soldIn(harness)).toBe(sold(2 * PAYMENTS));
});

test("the worker counts by itself what was posted, and no balance changes by it", async () => {
  const harness = await stage.start({ workers: ["attempts"] });
  expect(await payTogether(harness)).toEqual(succeeded);
  const posted = (await readBacklog(harness.deps)).uncountedEntries;
  expect(posted).toBeGreaterThanOrEqual(PAYMENTS);
  const scrape = async () => (await createAdminApp(harness.deps).request("/metrics")).text();
  expect(await scrape()).toMatch(new RegExp(`^pawl_ledger_entries_uncounted ${posted}$`, "m"));
  await harness.another({ workers: ["ledger"], env: { LEDGER_INTERVAL_MS: "20" } });
  await until(
    "counted entries",
    async () => (await readBacklog(harness.deps)).uncountedEntries,
    (left) => left === 0,
  );
  expect(await soldIn(harness)).toBe(sold(PAYMENTS));
  expect(await scrape()).toMatch(/^pawl_ledger_entries_uncounted 0$/m);
});
