import { expect, it } from "vitest";
import { capture, refund } from "../support/effects.js";
import { documentOf, pay, until } from "../support/harness.js";
import { CROWDED, useStage } from "../support/stage.js";

const stage = useStage();
const PAYMENTS = 256;
const SIDE_BY_SIDE = 32;
/** Rows that one look-up by a primary key may read: itself, and versions of it that are not cleaned up yet. */
const MOST_ROWS_A_LOOKUP = 40;

interface Scans {
  readonly name: string;
  readonly scans: number;
  readonly rows: number;
}

it("finds its rows by whole primary keys from the first payment on, so that nothing grows with a tenant", async () => {
  const harness = await stage.start({ env: CROWDED });
  const { sql } = harness.deps.db;
  for (let made = 0; made < PAYMENTS; made += SIDE_BY_SIDE) {
    await Promise.all(
      Array.from({ length: SIDE_BY_SIDE }, async (_, at) => {
        const manual = at % 8 === 0;
        const input = {
          merchant_order_id: `order-${made + at}`,
          capture_method: manual ? "manual" : "automatic",
        } as const;
        const { id } = documentOf(await pay(harness, { input }));
        if (manual) await capture(harness, id);
        if (at % 4 === 0) await refund(harness, id, 1);
      }),
    );
  }
  const keys = await until(
    "statistics of every look-up",
    () => sql<Scans[]>`
      select s.indexrelname as name, s.idx_scan::float8 as scans, s.idx_tup_read::float8 as rows
        from pg_stat_user_indexes s join pg_index i using (indexrelid)
       where i.indisprimary and s.relname in ('payments', 'attempts', 'idempotency_keys', 'order_ids', 'refunds')`,
    (seen) => seen.every(({ scans }) => scans > 0) && seen.some(({ scans }) => scans > PAYMENTS),
  );
  const wide = keys.filter(({ scans, rows }) => rows > MOST_ROWS_A_LOOKUP * scans);
  expect(wide).toEqual([]);
  const read = await sql<{ relname: string }[]>`
    select relname from pg_stat_user_tables
     where relname in ('payments', 'attempts', 'idempotency_keys', 'order_ids', 'refunds', 'timeline', 'outbox')
       and seq_tup_read > ${4 * PAYMENTS}`;
  expect(read).toEqual([]);
});
