import { expect, test } from "vitest";
import { runAttempt } from "../../src/operations/run-attempt.js";
import { claimAttempts } from "../../src/store/attempts.js";
import { documentOf, pay, untilStatus } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

test("a payment takes four commits: accept, claim, id, outcome", async () => {
  const harness = await stage.start({ workers: [] });
  const { deps } = harness;
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  const account = deps.account.current();
  if (account.type !== "known") throw new Error("the account is not known");
  const claimedAtMs = deps.clock.monotonicMs();
  const [claimed] = await claimAttempts(deps.db.sql, {
    owner: deps.workerName,
    limit: 1,
    leaseMs: deps.settings.attemptLeaseMs,
    retryBudgetMs: deps.settings.retryBudgetMs,
    account: account.accountId,
    livemode: false,
    tells: deps.recovery.tells,
    which: "due",
  });
  if (claimed === undefined) throw new Error("nothing was due");
  await runAttempt(deps, claimed, claimedAtMs);
  // Each commit that wrote a row shows in its xmin; a row keeps the last one that wrote it.
  const [row] = await deps.db.sql`
    with written as (
      select xmin::text from payments union select xmin::text from attempts union select xmin::text from idempotency_keys
      union select xmin::text from timeline union select xmin::text from outbox)
    select count(*)::int as commits from written`;
  // Accept, id and outcome; the claim writes the attempt alone, which the two later ones wrote again.
  expect(row?.["commits"]).toBe(3);
  await untilStatus(harness, id, "succeeded");
});
