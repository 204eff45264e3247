import { describe, expect, test, vi } from "vitest";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { documentOf, type Harness, newKey, pay, untilStatus } from "../support/harness.js";
import { PATIENT, useStage } from "../support/stage.js";

const stage = useStage();

/** Requests of one turn of the event loop share a statement. */
function acceptTogether(harness: Harness, requests: readonly Parameters<typeof pay>[1][]) {
  return Promise.allSettled(requests.map((request) => pay(harness, { waitMs: 0, ...request })));
}

function outcomeOf(settled: PromiseSettledResult<KeyedAnswer>): string {
  if (settled.status === "fulfilled") return documentOf(settled.value).status;
  return String((settled.reason as { code?: string }).code);
}

async function countsOf({ deps: { db } }: Harness): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of ["idempotency_keys", "payments", "attempts", "timeline", "outbox"]) {
    counts[table] = (await db.sql`select 1 from ${db.sql(table)}`).length;
  }
  return counts;
}

function allOf(count: number): Record<string, number> {
  return { idempotency_keys: count, payments: count, attempts: count, timeline: count, outbox: count };
}

async function letWork(harness: Harness): Promise<void> {
  await harness.another({ env: PATIENT });
}

describe("requests that are accepted together", () => {
  test("each have their key, payment, attempt, timeline row and event", async () => {
    const harness = await stage.start({ workers: [] });
    const settled = await acceptTogether(
      harness,
      Array.from({ length: 100 }, () => ({})),
    );
    expect(new Set(settled.map(outcomeOf))).toEqual(new Set(["processing"]));
    expect(await countsOf(harness)).toEqual(allOf(100));
    await letWork(harness);
  });

  test("and share a key are one payment; the rest are told that it runs", async () => {
    const harness = await stage.start({ workers: [] });
    const key = newKey();
    const settled = await acceptTogether(harness, [{}, { key }, {}, { key }, { key }, {}]);
    expect(settled.map(outcomeOf).toSorted()).toEqual([
      "idempotency_key_in_progress",
      "idempotency_key_in_progress",
      "processing",
      "processing",
      "processing",
      "processing",
    ]);
    expect(await countsOf(harness)).toEqual(allOf(4));
    await letWork(harness);
  });

  test("and share an order id are one payment; the rest are told by which", async () => {
    const harness = await stage.start({ workers: [] });
    const input = { merchant_order_id: "order-1" };
    const settled = await acceptTogether(harness, [{}, { input }, {}, { input }]);
    const [first, one, third, other] = settled.map(outcomeOf);
    expect([first, third]).toEqual(["processing", "processing"]);
    expect([one, other].toSorted()).toEqual(["merchant_order_id_taken", "processing"]);
    expect(await countsOf(harness)).toEqual(allOf(3));
    await letWork(harness);
  });

  test("are all accepted but the one that loses a race for its order id inside the statement", async () => {
    const harness = await stage.start({ workers: [] });
    const { sql } = harness.deps.db;
    const other = await harness.another({ workers: [] });
    const accepts = vi.spyOn(other.deps.accepter, "add");
    const input = { merchant_order_id: "order-1" };
    const batch = await sql.begin(async (tx) => {
      await insertHolder(tx, harness.caller.tenantId);
      const settled = acceptTogether({ ...harness, deps: other.deps }, [{}, { input }, {}]);
      // The statement has passed its own look and waits for the index entry that this transaction holds.
      await expect
        .poll(
          async () =>
            (
              await sql`select 1 from pg_stat_activity where wait_event = 'transactionid' and datname = current_database()`
            ).length,
        )
        .toBe(1);
      return { settled };
    });
    const settled = await batch.settled;
    expect(settled.map(outcomeOf)).toEqual(["processing", "merchant_order_id_taken", "processing"]);
    expect(await sql`select 1 from idempotency_keys`).toHaveLength(2);
    // Nobody had to come a second time for another's sake.
    expect(accepts).toHaveBeenCalledTimes(3);
    await sql`delete from payments where id = 'pay_holder'`;
    await letWork(harness);
  });

  test("and race for an order id whose holder rolls back are all accepted", async () => {
    const harness = await stage.start({ workers: [] });
    const { sql } = harness.deps.db;
    const other = await harness.another({ workers: [] });
    const input = { merchant_order_id: "order-1" };
    let settled: ReturnType<typeof acceptTogether> | undefined;
    const rollback = sql.begin(async (tx) => {
      await insertHolder(tx, harness.caller.tenantId);
      settled = acceptTogether({ ...harness, deps: other.deps }, [{ input }, {}]);
      await expect
        .poll(
          async () =>
            (
              await sql`select 1 from pg_stat_activity where wait_event = 'transactionid' and datname = current_database()`
            ).length,
        )
        .toBe(1);
      throw new Error("rolled back");
    });
    await expect(rollback).rejects.toThrow("rolled back");
    expect((await settled)?.map(outcomeOf)).toEqual(["processing", "processing"]);
    await letWork(harness);
  });
});

type Transaction = Parameters<Parameters<Harness["deps"]["db"]["sql"]["begin"]>[1]>[0];

async function insertHolder(tx: Transaction, tenantId: string): Promise<void> {
  await tx`
    insert into payments (tenant_id, id, status, amount, currency, capture_method, payment_method, attempt_id,
                          merchant_order_id, holds_order_id, metadata, provider, livemode)
    values (${tenantId}, 'pay_holder', 'succeeded', 1, 'usd', 'automatic', 'pm_card_visa', 'att_holder', 'order-1',
            true, '{}', 'stripe', false)`;
  await tx`
    insert into order_ids (tenant_id, merchant_order_id, payment_id) values (${tenantId}, 'order-1', 'pay_holder')`;
}

test("a request that cannot be carried leaves no row, and its key stays free", async () => {
  const harness = await stage.start();
  const key = newKey();
  const input = { currency: "kwd", amount: 5125 };
  await expect(pay(harness, { key, input })).rejects.toMatchObject({ code: "amount_not_supported" });
  expect(await countsOf(harness)).toEqual(allOf(0));
  expect(documentOf(await pay(harness, { key, input: { ...input, amount: 5120 } })).status).toBe("succeeded");
});

test.each([
  ["jpy", 500, 500],
  ["kwd", 5120, 5120],
  ["bhd", 5120, 5120],
  ["jod", 5120, 5120],
  ["omr", 5120, 5120],
  ["tnd", 5120, 5120],
  ["isk", 500, 50_000],
  ["ugx", 500, 50_000],
  ["usd", 999_999, 999_999],
])("%s %i reaches the provider as %i and is shown digit for digit", async (currency, amount, sent) => {
  const harness = await stage.start();
  const answer = await pay(harness, { input: { currency, amount } });
  expect(documentOf(answer)).toMatchObject({
    status: "succeeded",
    currency,
    amount,
    amount_captured: amount,
  });
  const [object] = await harness.sandbox.control.listPaymentIntents();
  expect(object?.payment_intent).toMatchObject({ currency, amount: sent });
  const payment = await untilStatus(harness, documentOf(answer).id, "succeeded");
  expect(payment).toMatchObject({ amount, amountCaptured: amount });
  const events = await harness.deps.db.sql<{ data: string }[]>`select data::text as data from outbox`;
  expect(events.map(({ data }) => (JSON.parse(data) as { amount: number }).amount)).toEqual([amount, amount]);
});
