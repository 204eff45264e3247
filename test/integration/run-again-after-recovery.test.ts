import { describe, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince } from "../../src/operations/recover.js";
import { type Dump, dumpRows, restoreRows } from "../support/dump.js";
import { documentOf, type Harness, newKey, pay } from "../support/harness.js";
import { COMPARING } from "../support/reconciliation.js";
import { onlyObject, useStage } from "../support/stage.js";

const stage = useStage();

/**
 * A key that ran so many times without effect, and was then paid. What is restored is from after its first run, so the
 * row of the one that was paid is made again by the recovery, and the key's record knows nothing of it.
 */
async function recoveredAfter(vainRuns: number) {
  const harness = await stage.start({ env: { ...COMPARING, ATTEMPT_RETRY_BUDGET_MS: "1000" } });
  const { control } = harness.sandbox;
  const key = newKey();
  await control.closeListener();
  let dump: Dump = new Map();
  for (let run = 1; run <= vainRuns; run += 1) {
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
    if (run === 1) dump = await dumpRows(harness);
  }
  await control.openListener();
  expect(documentOf(await pay(harness, { key }))).toMatchObject({ status: "succeeded" });
  await restoreRows(harness, dump);
  await recover(harness);
  return { harness, key };
}

async function recover({ deps }: Harness): Promise<void> {
  const comparison = new Comparison(deps);
  const since = new Date(Date.now() - 3_600_000);
  const id = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
  expect(await comparison.drive(id)).toMatchObject({ state: "completed", repaired: 1 });
  expect(deps.recovery.isRecovering()).toBe(false);
}

describe("a key whose later run was paid and lost is paid by nobody again", () => {
  test("where its next run is that one: the payment is shown, and the key is refused", async () => {
    const { harness, key } = await recoveredAfter(1);
    await expect(pay(harness, { key })).rejects.toMatchObject({
      code: "idempotency_key_expired",
      extra: { payment: { status: "succeeded" } },
    });
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("where its next run is another: no other is accepted, and the payment is shown", async () => {
    const { harness, key } = await recoveredAfter(2);
    await expect(pay(harness, { key })).rejects.toMatchObject({
      code: "idempotency_key_expired",
      extra: { payment: { status: "succeeded" } },
    });
    expect(await harness.deps.db.sql`select run from idempotency_keys`).toEqual([{ run: 1 }]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});
