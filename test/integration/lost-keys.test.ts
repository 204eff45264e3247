import { describe, expect, test } from "vitest";
import { MOST_RUNS } from "../../src/domain/earlier-runs.js";
import { attemptIdOf } from "../../src/operations/attempt-id.js";
import { CREATE_PAYMENT } from "../../src/operations/create-payment.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince } from "../../src/operations/recover.js";
import { dumpRows, restoreRows } from "../support/dump.js";
import { paid, refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, paymentInput, until } from "../support/harness.js";
import { COMPARING, compareNow, findingsOf, untilSettled } from "../support/reconciliation.js";
import { onlyObject, useStage } from "../support/stage.js";

/** Every row of a key is lost with a restored backup, and what it has charged or given back is made again. */

const stage = useStage();
const ENV = { ...COMPARING, ATTEMPT_RETRY_BUDGET_MS: "1000" };
/** For a process that has not looked at the database since it began. */
const NEVER_LOOKS = { DATABASE_CHECK_INTERVAL_MS: "3600000" };
const EXPIRED = { code: "idempotency_key_expired" };
const UNAVAILABLE = { code: "service_unavailable" };

/** The first run of the key comes to nothing, and the second has its effect. */
async function inItsSecondRun({ sandbox }: Harness, send: () => Promise<unknown>): Promise<void> {
  await sandbox.control.closeListener();
  await expect(send()).rejects.toMatchObject({ code: "provider_unavailable" });
  await sandbox.control.openListener();
  await send();
}

/** What the database tells of itself is another thing than it was: nobody has looked yet. */
async function promote({ deps }: Harness): Promise<void> {
  await deps.db.sql`update installation set cluster_timeline = cluster_timeline + 1`;
}

async function recover({ deps }: Harness): Promise<void> {
  const comparison = new Comparison(deps);
  const since = new Date(Date.now() - 3_600_000);
  const id = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
  expect(await comparison.drive(id)).toMatchObject({ state: "completed" });
  expect(deps.recovery.isRecovering()).toBe(false);
}

/** A key whose second run was paid, and of which no row is left. */
async function lostAfterItsSecondRun() {
  const harness = await stage.start({ env: { ...ENV, ...NEVER_LOOKS } });
  const key = newKey();
  const unaware = await harness.another({ workers: [] });
  const dump = await dumpRows(harness);
  await inItsSecondRun(harness, () => pay(harness, { key }));
  await restoreRows(harness, dump);
  return { harness, key, unaware: unaware.deps };
}

describe("a key that was paid in a later run, and lost", () => {
  test("is refused with the payment that was made again, whatever a process knows", async () => {
    const { harness, key, unaware } = await lostAfterItsSecondRun();
    await recover(harness);
    expect(unaware.accepter.searchesRuns).toBe(false);
    for (const deps of [unaware, harness.deps]) {
      const refused = { ...EXPIRED, extra: { payment: { status: "succeeded" } } };
      await expect(pay(harness, { key, deps })).rejects.toMatchObject(refused);
    }
    expect((await onlyObject(harness)).successful_charges).toBe(1);
    expect(documentOf(await pay(harness, { deps: unaware })).status).toBe("succeeded");
    expect(unaware.accepter.searchesRuns).toBe(true);
    await expect(pay(harness, { key, deps: unaware })).rejects.toMatchObject(EXPIRED);
    expect(await harness.deps.db.sql`select 1 from payments`).toHaveLength(2);
  });

  test("is not accepted by a process that has not heard yet that the database is another one", async () => {
    const { harness, key, unaware } = await lostAfterItsSecondRun();
    await promote(harness);
    await expect(pay(harness, { key, deps: unaware })).rejects.toMatchObject(UNAVAILABLE);
    expect(unaware.recovery.current()?.reason).toBe("timeline_changed");
    expect(await harness.deps.db.sql`select 1 from payments`).toEqual([]);
    await recover(harness);
    await expect(pay(harness, { key })).rejects.toMatchObject(EXPIRED);
  });
});

test("a refund's key that was lost after its second run refunds no more", async () => {
  const harness = await stage.start({ env: ENV });
  const id = await paid(harness);
  const key = newKey();
  const dump = await dumpRows(harness);
  await inItsSecondRun(harness, () => refund(harness, id, 1_000, { key }));
  await restoreRows(harness, dump);
  await recover(harness);
  await expect(refund(harness, id, 1_000, { key })).rejects.toMatchObject(EXPIRED);
  expect(await harness.sandbox.control.listRefunds()).toHaveLength(1);
  expect(documentOf(await refund(harness, id, 500)).status).toBe("succeeded");
});

test("an effect is neither accepted nor refused by a process that has not heard yet that the database is another one", async () => {
  const harness = await stage.start({ env: { ...ENV, ...NEVER_LOOKS } });
  const { deps: unaware } = await harness.another({ workers: [] });
  const { deps: other } = await harness.another({ workers: [] });
  const id = await paid(harness);
  await promote(harness);
  await expect(refund(harness, id, 1_000, { deps: unaware })).rejects.toMatchObject(UNAVAILABLE);
  await expect(refund(harness, id, 999_999, { deps: other })).rejects.toMatchObject(UNAVAILABLE);
  const keys = await harness.deps.db.sql`select 1 from idempotency_keys where operation = 'refunds.create'`;
  expect(keys).toEqual([]);
  await recover(harness);
});

/** What a worker had made of the key's second run when all its rows were lost: an object that waits for its confirm. */
async function confirmUnderWay(harness: Harness, key: string) {
  const { provider, installationSecret } = harness.deps;
  const { tenantId } = harness.caller;
  const attemptId = attemptIdOf(installationSecret, { tenantId, operation: CREATE_PAYMENT, key }, 2);
  const prepared = provider.prepareCharge(paymentInput(), { attemptId, tenantId });
  if (!prepared.ok) throw new Error(prepared.detail);
  const idempotencyKey = `payment-attempt:${attemptId}`;
  const made = await provider.createCharge(prepared.parameters, { idempotencyKey, resend: false });
  if (made.type !== "object") throw new Error(made.type);
  const context = { idempotencyKey: `${idempotencyKey}:confirm`, resend: false };
  return () => provider.confirmCharge(made.charge.id, prepared.parameters, context);
}

describe("a confirm that is under way when its rows are lost", () => {
  /** The object cannot be closed before the test lets it. */
  async function recoveredWithout(landsIn: "time" | "vain") {
    const harness = await stage.start({ env: ENV });
    const key = newKey();
    const land = await confirmUnderWay(harness, key);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.cancel" },
      times: null,
      fault: { type: "error", status: 429 },
    });
    await recover(harness);
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "idempotency_key_in_progress" });
    if (landsIn === "time") await land();
    await harness.sandbox.control.clearFaults();
    return { harness, key, land };
  }

  test("is adopted where it lands after the recovery, and its key is refused with the payment", async () => {
    const { harness, key } = await recoveredWithout("time");
    const { sql } = harness.deps.db;
    await until(
      "the payment as it was paid",
      () => sql<{ status: string }[]>`select status from payments`,
      ([row]) => row?.status === "succeeded",
    );
    await expect(pay(harness, { key })).rejects.toMatchObject(EXPIRED);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("charges nothing once its object is closed, and the key runs afresh", async () => {
    const { harness, key, land } = await recoveredWithout("vain");
    const { sql } = harness.deps.db;
    await until(
      "the end of the payment",
      () => sql<{ status: string }[]>`select status from payments`,
      ([row]) => row?.status === "failed",
    );
    expect(await land()).not.toMatchObject({ type: "object" });
    const answer = await pay(harness, { key });
    expect(documentOf(answer).status).toBe("succeeded");
    expect(await pay(harness, { key })).toMatchObject({ replayed: true });
    expect(await sql`select run from idempotency_keys`).toEqual([{ run: 3 }]);
    const objects = await harness.sandbox.control.listPaymentIntents();
    expect(objects.map(({ successful_charges }) => successful_charges).toSorted()).toEqual([0, 1]);
  });
});

test("a refund that lands after the recovery is taken in by the next comparison", async () => {
  const harness = await stage.start({ env: ENV });
  const { provider, installationSecret, db } = harness.deps;
  const { tenantId } = harness.caller;
  const id = await paid(harness);
  const key = newKey();
  await recover(harness);
  const attemptId = attemptIdOf(installationSecret, { tenantId, operation: "refunds.create", key }, 1);
  const [row] = await db.sql<{ object: string }[]>`select provider_payment_id as object from attempts`;
  const asked = {
    call: "refund",
    chargeId: row!.object,
    amount: 1_000,
    currency: "usd",
    reason: null,
  } as const;
  const prepared = provider.prepareEffect(asked, { attemptId, tenantId });
  if (!prepared.ok) throw new Error(prepared.detail);
  const context = { idempotencyKey: `payment-attempt:${attemptId}`, resend: false };
  expect(await provider.createRefund(prepared.parameters, context)).toMatchObject({ type: "refund" });
  await untilSettled(harness);
  await compareNow(harness.deps);
  expect(await findingsOf(harness)).toMatchObject([{ kind: "refund_missing_here", state: "repaired" }]);
  await expect(refund(harness, id, 1_000, { key })).rejects.toMatchObject(EXPIRED);
  expect(await harness.sandbox.control.listRefunds()).toHaveLength(1);
});

test(`a key that has run ${String(MOST_RUNS)} times in vain runs no more, so that none is overlooked when it is lost`, async () => {
  const harness = await stage.start({ env: ENV });
  const key = newKey();
  await harness.sandbox.control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await harness.sandbox.control.openListener();
  const { sql } = harness.deps.db;
  await sql`update idempotency_keys set run = ${MOST_RUNS}`;
  await expect(pay(harness, { key })).rejects.toMatchObject(EXPIRED);
  await sql`update idempotency_keys set run = 1`;
  expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
});
