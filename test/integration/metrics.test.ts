import { expect, test } from "vitest";
import { createAdminApp } from "../../src/http/admin/admin-app.js";
import { readBacklog } from "../../src/operations/read-backlog.js";
import { documentOf, pay, untilStatus } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

test("the operator sees what is open, overdue and unknown, and what the provider answered", async () => {
  const harness = await stage.start({ workers: [] });
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  await harness.deps.db
    .sql`update attempts set due_at = now() - interval '90 seconds', unknown_since = now()`;
  const backlog = await readBacklog(harness.deps);
  expect(backlog).toMatchObject({ unknownOutcomes: 1, openReviews: 0 });
  expect([...backlog.attemptsByState]).toEqual([["started", 1]]);
  expect(backlog.longestOverdueSeconds).toBeGreaterThanOrEqual(90);
  const scrape = async () => (await createAdminApp(harness.deps).request("/metrics")).text();
  expect(await scrape()).toMatch(/^pawl_attempts_open\{state="started"\} 1$/m);

  await harness.deps.db.sql`update attempts set unknown_since = null`;
  await harness.another();
  await untilStatus(harness, id, "succeeded");
  const after = await scrape();
  expect(after).toMatch(/^pawl_attempts_open\{state="started"\} 0$/m);
  expect(after).toMatch(/^pawl_attempts_overdue_seconds 0$/m);
  expect(after).toMatch(/^pawl_payments_moved_total\{status="succeeded"\} \d+$/m);
  expect(after).toMatch(
    /^pawl_provider_call_duration_seconds_count\{call="confirm",outcome="object"\} \d+$/m,
  );
});
