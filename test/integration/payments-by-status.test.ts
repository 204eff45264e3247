import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../src/domain/payment.js";
import { listPayments } from "../../src/operations/read-payments.js";
import { rowsRead } from "../support/doctor-crowd.js";
import { type Harness, pay, startHarness, until } from "../support/harness.js";

const PAYMENTS = 5_000;
/** Of each, the oldest of all. */
const RARE = 4;
const MOST_READ = 100;
const UNINDEXED: readonly PaymentStatus[] = ["processing", "succeeded"];
const INDEXED = PAYMENT_STATUSES.filter((status) => !UNINDEXED.includes(status));

let harness: Harness;
// One connection: what it has read is told as soon as it is asked for.
beforeAll(async () => {
  harness = await startHarness({ env: { DATABASE_POOL_MAX: "1" }, workers: [] });
  const { sql } = harness.deps.db;
  for (const tenant of [harness.caller.tenantId, "ten_other"]) {
    await sql`
      insert into payments (tenant_id, id, status, amount, currency, capture_method, payment_method, attempt_id, holds_order_id,
          metadata, provider, livemode, merchant_order_id)
        select ${tenant}, 'pay_' || lpad(n::text, 32, '0'),
               coalesce((string_to_array(${INDEXED.join(",")}, ','))[1 + n / ${RARE}::int], 'succeeded')::payment_status,
               4200, 'usd', 'automatic', 'pm', 'att_' || n, false, '{}', 'none', false, 'order-' || n
          from generate_series(0, ${PAYMENTS}::int) n`;
  }
  await sql`analyze payments`;
});
afterAll(() => harness.stop());

/** Ids of the first page, the newest first, and how many rows of payments were read for it. */
async function page(filter: Parameters<typeof listPayments>[2], limit = 3, cursor: string | null = null) {
  const { sql } = harness.deps.db;
  const before = (await rowsRead(sql)).get("payments") ?? 0;
  const { data, nextCursor } = await listPayments(harness.deps, harness.caller, filter, { limit, cursor });
  const after = (await rowsRead(sql)).get("payments") ?? 0;
  return { ids: data.map(({ id }) => Number(id.slice(4))), nextCursor, read: after - before };
}

describe.each(INDEXED.map((status, at) => ({ status, newest: (at + 1) * RARE - 1 })))(
  "the $status ones among many payments",
  ({ status, newest }) => {
    test("are listed without the others, page by page", async () => {
      const first = await page({ status });
      expect(first.ids).toEqual([newest, newest - 1, newest - 2]);
      const second = await page({ status }, 3, first.nextCursor);
      expect(second).toMatchObject({ ids: [newest - 3], nextCursor: null });
      expect(Math.max(first.read, second.read)).toBeLessThan(MOST_READ);
    });

    test("are listed without the others together with any other filter", async () => {
      const inHour = {
        createdAfter: new Date(Date.now() - 3_600_000),
        createdBefore: new Date(Date.now() + 3_600_000),
      };
      const found = await page({ status, ...inHour });
      expect(found.ids).toEqual([newest, newest - 1, newest - 2]);
      const before = await page({ status, createdBefore: inHour.createdAfter });
      expect(before.ids).toEqual([]);
      const ordered = await page({ status, merchantOrderId: `order-${newest}` });
      expect(ordered.ids).toEqual([newest]);
      expect(Math.max(found.read, before.read, ordered.read)).toBeLessThan(MOST_READ);
    });
  },
);

test("the payments that succeeded, and those under way, are found by their status too", async () => {
  expect((await page({ status: "succeeded" })).ids).toEqual([PAYMENTS, PAYMENTS - 1, PAYMENTS - 2]);
  expect((await page({ status: "processing" })).ids).toEqual([]);
});

test("a payment that succeeds is written within its row's page, into no index", async () => {
  const busy = await startHarness({ workers: ["attempts"] });
  try {
    const payments = 8;
    for (let paid = 0; paid < payments; paid += 1)
      await pay(busy, { input: { merchant_order_id: `order-${paid}` } });
    const { sql } = busy.deps.db;
    const [counted] = await until(
      "statistics of every payment",
      () => sql<{ updated: number; hot: number }[]>`
        select n_tup_upd::int as updated, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'payments'`,
      ([row]) => (row?.updated ?? 0) >= payments,
    );
    // One page holds some thirty payments, so none of these few finds it full.
    expect(counted).toEqual({ updated: payments, hot: payments });
  } finally {
    await busy.stop();
  }
});
