import { describe, expect, test } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { recordIdentity } from "../../src/store/recovery.js";
import { dumpRows, restoreRows } from "../support/dump.js";
import { bodyOf, outcomeOf, paid, refund, untilRefund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "../support/harness.js";
import { HASTY, onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

/**
 * A backup was put back and nobody has noticed: the attempt's row says that nothing was sent, in the minute in which
 * that is believed where the provider does not answer. What is said then is asked about, before its key charges again.
 */

const stage = useStage();
/** Within the minute after the budget, which is 20 s here. */
const JUST_OVER = "25 seconds";

/** A payment whose attempt had only started when the backup was made; `meanwhile` is what the backup lacks. */
async function restored(meanwhile: (harness: Harness, id: string) => Promise<void>) {
  const harness = await stage.start({ workers: [] });
  const key = newKey();
  const { id } = documentOf(await pay(harness, { key, waitMs: 0 }));
  await harness.deps.db.sql`update attempts set created_at = created_at - ${JUST_OVER}::interval`;
  const dump = await dumpRows(harness);
  await harness.deps.db.sql`update attempts set created_at = now()`;
  await meanwhile(harness, id);
  await restoreRows(harness, dump);
  await harness.sandbox.control.clearRequests();
  return { harness, key, id };
}

async function paysIt(harness: Harness, id: string): Promise<void> {
  const worker = await harness.another({ env: PATIENT });
  await untilStatus(harness, id, "succeeded");
  await worker.drain(0);
}

/** Its object is made, and every confirm is refused before execution. */
async function createsIt(harness: Harness): Promise<void> {
  const { control } = harness.sandbox;
  const match = { call: "payment_intents.confirm" } as const;
  await control.addFault({ match, times: null, fault: { type: "error", status: 429 } });
  const worker = await harness.another();
  await until(
    "a confirm that was refused",
    () =>
      harness.deps.db.sql`select 1 from attempts where state = 'charge_created' and wait_reason is not null`,
    (rows) => rows.length === 1,
  );
  await worker.drain(0);
  await control.clearFaults();
}

/** With a provider that cannot be reached, the row is all there is. */
async function believed(harness: Harness, id: string): Promise<void> {
  await harness.sandbox.control.closeListener();
  await harness.another({ env: PATIENT });
  await untilStatus(harness, id, "failed");
}

describe("a payment that was paid, and is told to have failed on the word of a restored row", () => {
  test("is paid again by nobody: its key's next run waits for the answer, and says so", async () => {
    const { harness, key, id } = await restored(paysIt);
    await believed(harness, id);
    const second = documentOf(await pay(harness, { key, waitMs: 0 }));
    expect(second.id).not.toBe(id);
    await until(
      "a run that waits for the one before it",
      () => harness.deps.db.sql`select 1 from attempts where run = 2 and wait_reason = 'earlier_run_open'`,
      (rows) => rows.length === 1,
    );
    await harness.sandbox.control.openListener();
    await untilStatus(harness, id, "succeeded");
    await untilStatus(harness, second.id, "canceled");
    const replay = await pay(harness, { key });
    expect(replay).toMatchObject({ type: "final", replayed: true, response: { status: 409 } });
    expect(JSON.parse(replay.type === "final" ? replay.response.body : "")).toMatchObject({
      code: "invalid_state",
      payment: { id: second.id, status: "canceled" },
    });
    expect(await wireOf(harness, { call: "payment_intents.create" })).toEqual([]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("is shown as paid once the provider answers, and its key says so for ever", async () => {
    const { harness, key, id } = await restored(paysIt);
    await believed(harness, id);
    await harness.sandbox.control.openListener();
    await untilStatus(harness, id, "succeeded");
    const replay = await pay(harness, { key });
    expect(replay).toMatchObject({ type: "final", replayed: true, response: { status: 201 } });
    expect(documentOf(replay)).toMatchObject({ id, status: "succeeded" });
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});

test("a refund that was made, and is told to have failed on the word of a restored row, is made again by nobody", async () => {
  const harness = await stage.start({ workers: [] });
  const { deps, sandbox } = harness;
  const paying = await harness.another({ env: PATIENT });
  const paymentId = await paid(harness);
  await paying.drain(0);
  const key = newKey();
  const first = String(bodyOf(await refund(harness, paymentId, 4_000, { key, waitMs: 0 }))["id"]);
  await deps.db
    .sql`update attempts set created_at = created_at - ${JUST_OVER}::interval where kind = 'refund'`;
  const dump = await dumpRows(harness);
  await deps.db.sql`update attempts set created_at = now() where kind = 'refund'`;
  const refunding = await harness.another({ env: PATIENT });
  await untilRefund(harness, first, "succeeded");
  await refunding.drain(0);
  await restoreRows(harness, dump);
  await sandbox.control.clearRequests();
  await sandbox.control.closeListener();
  await harness.another({ env: PATIENT });
  await untilRefund(harness, first, "failed");
  const second = String(bodyOf(await refund(harness, paymentId, 4_000, { key, waitMs: 0 }))["id"]);
  await sandbox.control.openListener();
  await untilRefund(harness, first, "succeeded");
  await untilRefund(harness, second, "failed");
  expect(outcomeOf(await refund(harness, paymentId, 4_000, { key }))).toBe("409 invalid_state");
  expect(await sandbox.control.listRequests({ call: "refunds.create" })).toEqual([]);
  expect((await getPayment(deps, harness.caller, paymentId)).amountRefunded).toBe(4_000);
});

test("an object that nobody confirmed is canceled before the key's next run makes its own", async () => {
  const { harness, key, id } = await restored(createsIt);
  await believed(harness, id);
  const running = pay(harness, { key });
  await harness.sandbox.control.openListener();
  expect(documentOf(await running)).toMatchObject({ status: "succeeded" });
  const wire = await wireOf(harness);
  expect(wire.indexOf("fence 200")).toBeGreaterThan(-1);
  expect(wire.indexOf("fence 200")).toBeLessThan(wire.indexOf("create 200"));
  const objects = await harness.sandbox.control.listPaymentIntents();
  expect(objects.map((one) => one.successful_charges).toSorted()).toEqual([0, 1]);
});

test("a payment that was never sent is run again once the provider says so", async () => {
  const harness = await stage.start({ env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" } });
  const key = newKey();
  await harness.sandbox.control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  const second = documentOf(await pay(harness, { key, waitMs: 0 }));
  await expect(pay(harness, { key, explicit: true, waitMs: 10_000 })).rejects.toMatchObject({
    code: "provider_unavailable",
  });
  await harness.sandbox.control.openListener();
  const third = documentOf(await pay(harness, { key }));
  expect(third.status).toBe("succeeded");
  expect(third.id).not.toBe(second.id);
  expect((await onlyObject(harness)).successful_charges).toBe(1);
});

test("a database that has just become another one is noticed before a row is believed", async () => {
  const { harness, id } = await restored(paysIt);
  const { sql } = harness.deps.db;
  await harness.sandbox.control.closeListener();
  const env = { ...PATIENT, DATABASE_CHECK_INTERVAL_MS: "3600000" };
  const worker = await harness.another({ env, workers: [] });
  await recordIdentity(sql, { cluster: "1", database: "1.1", timeline: 1 });
  expect(worker.deps.recovery.isRecovering()).toBe(false);
  await worker.startWorkers(["attempts"]);
  await until(
    "an attempt that was looked at in vain",
    () => sql`select 1 from attempts where fence > 0 and lease_expires_at is null and waits > 0`,
    (rows) => rows.length === 1,
  );
  expect(worker.deps.recovery.current()).toMatchObject({ reason: "cluster_changed" });
  expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("processing");
  await harness.sandbox.control.openListener();
  await untilStatus(harness, id, "succeeded");
});
