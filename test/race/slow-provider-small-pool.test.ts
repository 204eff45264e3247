import { expect, test } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { documentOf, pay, untilStatus } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();
const PAYMENTS = 50;

test("fifty payments at a provider that does not answer hold no connection and no transaction", async () => {
  const harness = await stage.start({
    env: { DATABASE_POOL_MAX: "3", PROVIDER_TIMEOUT_MS: "20000", ATTEMPT_LEASE_MS: "60000" },
  });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    times: null,
    fault: { type: "hang" },
  });
  const answers = await Promise.all(Array.from({ length: PAYMENTS }, () => pay(harness, { waitMs: 0 })));
  const ids = answers.map((answer) => documentOf(answer).id);
  await control.waitForHeld({ count: PAYMENTS, timeout_ms: 20_000 });

  await Promise.all(ids.map((id) => getPayment(harness.deps, harness.caller, id)));
  // No call has ended yet, so no read has waited for one.
  const underWay = await harness.deps.db.sql`select 1 from attempts where state = 'confirming'`;
  expect(underWay.length).toBe(PAYMENTS);
  const inTransaction = await harness.deps.db.sql`
    select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`;
  expect(inTransaction).toEqual([]);

  await control.clearFaults();
  await control.release();
  for (const id of ids) await untilStatus(harness, id, "succeeded");
  expect(await control.counts()).toMatchObject({ payment_intents: PAYMENTS, successful_charges: PAYMENTS });
});
