import { afterEach, describe, expect, test } from "vitest";
import type { PageRequest } from "../../src/domain/provider.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince } from "../../src/operations/recover.js";
import { refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  countAnew,
  findingsOf,
  loseRows,
  strayOf,
} from "../support/reconciliation.js";
import { faultsAfterSettling } from "../support/settle-checks.js";
import { until } from "../support/until.js";

let harness: Harness;
afterEach(() => harness.stop());

interface Paid {
  readonly key: string;
  readonly id: string;
}

/** As after a failover that lost rows: what a test has deleted, and a person who says so. */
async function recoverHere(since = new Date(Date.now() - 3_600_000)) {
  const { deps } = harness;
  const comparison = new Comparison(deps);
  const id = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
  return { id, comparison };
}

async function loseRefunds(): Promise<void> {
  const { sql } = harness.deps.db;
  await sql`delete from refunds`;
  await sql`delete from attempts where kind = 'refund'`;
  await sql`delete from idempotency_keys where operation = 'refunds.create'`;
  await sql`delete from timeline where refund_id is not null`;
  await sql`delete from outbox where type like 'refund.%'`;
  await sql`delete from ledger_uncounted where fact like 'refunded:%'`;
  await sql`delete from ledger_entries where fact like 'refunded:%'`;
  await sql`update payments set amount_refunded = 0, refund_reserved = 0`;
  await sql.begin(countAnew);
}

describe("what was lost is made again from the provider's object", () => {
  test("a payment in each state is found where the provider has it, and its key never charges again", async () => {
    harness = await startHarness({ env: COMPARING });
    const lost: Record<string, Paid> = {};
    const cases = {
      succeeded: {},
      authorized: { capture_method: "manual" },
      requires_action: { payment_method: "pm_card_authenticationRequired" },
    } as const;
    for (const [status, input] of Object.entries(cases)) {
      const key = newKey();
      const document = documentOf(await pay(harness, { key, input }));
      expect(document.status).toBe(status);
      lost[status] = { key, id: document.id };
    }
    await loseRows(
      harness,
      Object.values(lost).map(({ id }) => id),
    );
    const { id, comparison } = await recoverHere();
    expect(await comparison.drive(id)).toMatchObject({ state: "completed", repaired: 3 });
    const { sql } = harness.deps.db;
    const rebuilt = await sql<
      { id: string; status: string; amount: string; merchant_order_id: string | null }[]
    >`
      select * from payments order by status`;
    expect(rebuilt.map(({ status }) => status).toSorted()).toEqual(Object.keys(cases).toSorted());
    expect(rebuilt).toMatchObject([{ amount: "4200" }, { amount: "4200" }, { amount: "4200" }]);
    expect(await sql`select reason from timeline where from_status is null and refund_id is null`).toEqual([
      { reason: "recovered_without_row" },
      { reason: "recovered_without_row" },
      { reason: "recovered_without_row" },
    ]);
    for (const { key } of Object.values(lost)) {
      await expect(pay(harness, { key })).rejects.toMatchObject({ code: "idempotency_key_expired" });
    }
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });

  test("what an earlier comparison has found missing is taken in too, though it was made before the time that is asked for", async () => {
    harness = await startHarness({ env: COMPARING });
    const { id, provider_payment_id: objectId } = documentOf(await pay(harness));
    await loseRows(harness, [id]);
    const created = Math.floor(Date.now() / 1_000) - 1_200;
    await harness.sandbox.control.patchPaymentIntent(String(objectId), { created });
    await compareNow(harness.deps);
    expect(await findingsOf(harness)).toMatchObject([{ kind: "missing_here", state: "open" }]);
    const { id: run, comparison } = await recoverHere(new Date(Date.now() - 600_000));
    expect(await comparison.drive(run)).toMatchObject({ state: "completed", repaired: 1 });
    const { sql } = harness.deps.db;
    expect(await sql`select status from payments`).toEqual([{ status: "succeeded" }]);
    expect(await findingsOf(harness)).toMatchObject([{ kind: "missing_here", state: "repaired" }]);
  });

  test("an object that nobody confirmed is closed when sends go out again, and its key pays afresh", async () => {
    harness = await startHarness({ env: COMPARING });
    const key = newKey();
    const { id, provider_payment_id: objectId } = documentOf(await pay(harness, { key }));
    const stray = await strayOf(harness, { paymentId: id, objectId: String(objectId) });
    await loseRows(harness, [id]);
    await harness.sandbox.control.removePaymentIntent(String(objectId));
    const { id: run, comparison } = await recoverHere();
    await comparison.drive(run);
    expect(await findingsOf(harness)).toMatchObject([
      { kind: "missing_here", object_id: stray, state: "repaired" },
    ]);
    const { sql } = harness.deps.db;
    await until(
      "its end",
      () => sql<{ status: string }[]>`select status from payments`,
      ([row]) => row?.status === "failed",
    );
    expect((await harness.sandbox.control.getPaymentIntent(stray)).payment_intent.status).toBe("canceled");
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });

  test("a refund is made again under its own attempt, so its key never refunds again", async () => {
    harness = await startHarness({ env: COMPARING });
    const { id } = documentOf(await pay(harness));
    const key = newKey();
    await refund(harness, id, 1_000, { key });
    const { sql } = harness.deps.db;
    await loseRefunds();
    const { id: run, comparison } = await recoverHere();
    await comparison.drive(run);
    const [row] = await until(
      "a followed refund",
      () => sql<{ status: string; amount: string }[]>`select * from refunds`,
      ([one]) => one?.status === "succeeded",
    );
    expect(row).toMatchObject({ amount: "1000" });
    await expect(refund(harness, id, 1_000, { key })).rejects.toMatchObject({
      code: "idempotency_key_expired",
    });
    expect(await harness.sandbox.control.listRefunds()).toHaveLength(1);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });

  test("a refund that has failed is made again as such, so its key never asks for another", async () => {
    harness = await startHarness({ env: COMPARING });
    const { id } = documentOf(await pay(harness));
    const key = newKey();
    await refund(harness, id, 4_200, { key });
    const [made] = await harness.sandbox.control.listRefunds();
    await harness.sandbox.control.bank.failRefund(made!.id);
    await loseRefunds();
    const { id: run, comparison } = await recoverHere();
    await comparison.drive(run);
    const { sql } = harness.deps.db;
    expect(await sql`select status, provider_refund_id, amount from refunds`).toEqual([
      { status: "failed", provider_refund_id: made!.id, amount: "4200" },
    ]);
    expect(await sql`select amount_refunded, refund_reserved from payments`).toEqual([
      { amount_refunded: "0", refund_reserved: "0" },
    ]);
    await expect(refund(harness, id, 4_200, { key })).rejects.toMatchObject({
      code: "idempotency_key_expired",
    });
    expect(await harness.sandbox.control.listRefunds()).toHaveLength(1);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });

  test("a refund whose payment is being written just then is made again before the recovery ends", async () => {
    harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
    const { id } = documentOf(await pay(harness));
    await refund(harness, id, 1_000);
    await loseRefunds();
    const { sql } = harness.deps.db;
    const { id: run } = await recoverHere();
    // No movement of the balance tells of it a second time.
    const listTransactions = async (page: PageRequest) => {
      const listed = await harness.deps.provider.listTransactions(page);
      return { ...listed, items: [] };
    };
    const comparison = new Comparison(withProvider(harness.deps, { listTransactions }));
    const writer = await sql.reserve();
    await writer`begin`;
    await writer`select from payments for update`;
    const ends: Promise<unknown>[] = [];
    await comparison.drive(run, ({ phase }) => {
      const isBehind = phase !== "charges" && phase !== "refunds";
      if (isBehind && ends.length === 0) ends.push(Promise.resolve(writer`rollback`));
    });
    await Promise.all(ends);
    writer.release();
    expect(await findingsOf(harness)).toMatchObject([{ kind: "refund_missing_here", state: "repaired" }]);
    expect(await sql`select amount from refunds`).toEqual([{ amount: "1000" }]);
  });
});
