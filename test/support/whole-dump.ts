import postgres from "postgres";
import { givenColumns } from "./given-columns.js";

/** Every row of every table, as a backup of the database would have it. */
export type WholeDump = ReadonlyMap<string, string>;

/** One snapshot of the whole database, while whatever goes on goes on. */
export async function dumpDatabase(url: string): Promise<WholeDump> {
  const sql = postgres(url, { max: 1, fetch_types: false });
  try {
    return await sql.begin("isolation level repeatable read read only", async (tx) => {
      const dump = new Map<string, string>();
      const tables = await tx<{ name: string }[]>`
        select tablename as name from pg_tables where schemaname = 'public' order by tablename`;
      for (const { name } of tables) {
        const [row] = await tx<{ rows: string }[]>`
          select coalesce(json_agg(t), '[]')::text as rows from ${tx(name)} t`;
        dump.set(name, row?.rows ?? "[]");
      }
      return dump;
    });
  } finally {
    await sql.end();
  }
}

/** Into an empty, migrated database; `adminUrl` is its superuser's, since rows come in any order of their keys. */
export async function restoreDatabase(adminUrl: string, dump: WholeDump): Promise<void> {
  const sql = postgres(adminUrl, { max: 1, fetch_types: false });
  try {
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      for (const [name, rows] of dump) {
        const columns = tx.unsafe(await givenColumns(tx, name));
        await tx`insert into ${tx(name)} (${columns})
          select ${columns} from json_populate_recordset(null::${tx(name)}, ${rows}::text::json)`;
      }
    });
  } finally {
    await sql.end();
  }
}
