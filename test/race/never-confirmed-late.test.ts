import { expect, test } from "vitest";
import { documentOf, pay, untilStatus } from "../support/harness.js";
import { useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const BUDGET_MS = 1_000;

test("a worker that pauses between deciding to confirm and sending it does not confirm after the budget", async () => {
  const gate = stage.gate("before_confirm");
  const harness = await stage.start({
    env: { ATTEMPT_RETRY_BUDGET_MS: String(BUDGET_MS) },
    probe: gate.probe,
  });
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  await gate.reached();
  await harness.deps.db.sql`
    select pg_sleep(extract(epoch from created_at + ${BUDGET_MS} * interval '1 millisecond' - now())) from attempts`;
  gate.open();
  const payment = await untilStatus(harness, id, "failed");
  expect(payment.failure).toMatchObject({ code: "provider_unavailable", retry: "same_key" });
  expect(await wireOf(harness)).toEqual(["create 200", "retrieve 200", "fence 200", "retrieve 200"]);
});
