import { expect, test } from "vitest";
import { purgeExpired } from "../../src/operations/purge-expired.js";
import { documentOf, type Harness, newKey, pay } from "../support/harness.js";
import { HASTY, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** A key whose first run was without effect and whose second was paid, and whose record has been purged since. */
async function purgedAfterTwoRuns(harness: Harness) {
  const { control } = harness.sandbox;
  const key = newKey();
  await control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await control.openListener();
  const paid = documentOf(await pay(harness, { key }));
  expect(paid.status).toBe("succeeded");
  await harness.deps.db.sql`update idempotency_keys set expires_at = now()`;
  expect(await purgeExpired(harness.deps)).toBe(1);
  return { key, paidId: paid.id, wire: await wireOf(harness) };
}

test("a purged key names the payment of its last run, and charges nothing", async () => {
  const harness = await stage.start({
    env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" },
    workers: ["attempts", "reconciler"],
  });
  const { key, paidId, wire } = await purgedAfterTwoRuns(harness);
  await expect(pay(harness, { key })).rejects.toMatchObject({
    code: "idempotency_key_expired",
    extra: { payment: { id: paidId, status: "succeeded" } },
  });
  expect(await wireOf(harness)).toEqual(wire);
});
