import { givenColumns } from "./given-columns.js";
import type { Harness } from "./harness.js";

/** What a payment consists of. The installation, tenants, keys of the API and provider accounts stay as they are. */
const TABLES = [
  "idempotency_keys",
  "payments",
  "refunds",
  "order_ids",
  "attempts",
  "timeline",
  "outbox",
  "reviews",
  "ledger_entries",
  "ledger_uncounted",
  "ledger_balances",
] as const;

export type Dump = ReadonlyMap<string, string>;

/** Every row of every payment, as a backup would have it. */
export function dumpRows({ deps: { db } }: Harness): Promise<Dump> {
  return db.sql.begin("isolation level repeatable read", async (tx) => {
    const dump = new Map<string, string>();
    for (const table of TABLES) {
      const [row] = await tx<
        { rows: string }[]
      >`select coalesce(json_agg(t), '[]')::text as rows from ${tx(table)} t`;
      dump.set(table, row?.rows ?? "[]");
    }
    return dump;
  });
}

/** All rows written since are gone. An empty dump is a backup from before the first payment. */
export async function restoreRows({ deps: { db } }: Harness, dump: Dump): Promise<void> {
  await db.sql.begin(async (tx) => {
    for (const table of TABLES.toReversed()) await tx`delete from ${tx(table)}`;
    for (const table of TABLES) {
      const rows = dump.get(table) ?? "[]";
      const columns = tx.unsafe(await givenColumns(tx, table));
      await tx`insert into ${tx(table)} (${columns})
        select ${columns} from json_populate_recordset(null::${tx(table)}, ${rows}::text::json)`;
    }
  });
}
