import type postgres from "postgres";
import { afterEach, describe, expect, test } from "vitest";
import { migrate } from "../../src/store/migrate.js";
import { databaseOf, migrationNames, type OldDatabase } from "../support/migrations.js";
import { until } from "../support/until.js";

/** Those before it came together with it: nobody had any data in between. */
const FIRST_TO_KEEP = "0003_statistics-of-new-tables";
const BEFORE_RARE_STATUS = "0005_reviews-of-attempts";

let old: OldDatabase;
afterEach(() => old.drop());

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly kind: string;
}

async function columnsOf(sql: postgres.Sql): Promise<Map<string, Column[]>> {
  const columns = await sql<Column[]>`
    select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type, t.typtype as kind
      from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
       and a.attgenerated = ''
     order by c.relname, a.attnum`;
  const tables = new Map<string, Column[]>();
  for (const column of columns) tables.set(column.table, [...(tables.get(column.table) ?? []), column]);
  return tables;
}

/** Of any type, and the same text everywhere: so each row refers to the others of its name. */
function valueOf({ type, kind }: Column): string {
  if (kind === "e") return `(enum_range(null::${type}))[1]`;
  if (type === "text") return "'one'";
  if (type === "text[]") return "'{}'";
  if (type === "json") return `'{"a":1}'`;
  if (type === "boolean") return "true";
  if (type.startsWith("timestamp")) return "'2026-01-01T00:00:00Z'";
  return "1";
}

async function fillEachTable(sql: postgres.Sql): Promise<void> {
  await sql`set session_replication_role = replica`;
  for (const [table, columns] of await columnsOf(sql)) {
    const names = columns.map(({ name }) => `"${name}"`).join(", ");
    await sql.unsafe(`insert into ${table} (${names}) values (${columns.map(valueOf).join(", ")})`);
  }
}

/** Every row, by table, in these columns. */
async function rowsOf(sql: postgres.Sql, tables: Map<string, Column[]>): Promise<Map<string, unknown>> {
  const rows = new Map<string, unknown>();
  for (const [table, columns] of tables) {
    const names = columns.map(({ name }) => `"${name}"`).join(", ");
    rows.set(table, await sql.unsafe(`select ${names} from ${table}`));
  }
  return rows;
}

const EARLIER = migrationNames().slice(migrationNames().indexOf(FIRST_TO_KEEP), -1);

describe("an upgrade keeps every row of every table", () => {
  test.each(EARLIER)("from %s", async (last) => {
    old = await databaseOf(last);
    await fillEachTable(old.admin);
    const tables = await columnsOf(old.admin);
    const before = await rowsOf(old.admin, tables);
    expect([...before.values()].flat()).toHaveLength(tables.size);
    await migrate(old.url);
    expect(await rowsOf(old.admin, tables)).toEqual(before);
  });
});

test("a row that is being written while the database is upgraded is kept", async () => {
  old = await databaseOf(BEFORE_RARE_STATUS);
  const { admin } = old;
  let upgraded: Promise<void> | undefined;
  await admin.begin(async (tx) => {
    await tx`insert into outbox (tenant_id, id, type, data) values ('ten_1', 'evt_1', 'none', '{}')`;
    let isOver = false;
    upgraded = migrate(old.url).finally(() => {
      isOver = true;
    });
    await until(
      "the upgrade over, or waiting for the writer",
      () => tx<{ waits: boolean }[]>`select exists (select from pg_locks where not granted) as waits`,
      ([row]) => isOver || row?.waits === true,
    );
  });
  await upgraded;
  expect(await admin`select id from outbox`).toEqual([{ id: "evt_1" }]);
});

test("an upgraded database lists by the status that its payments had", async () => {
  old = await databaseOf(BEFORE_RARE_STATUS);
  await old.admin`
    insert into payments (tenant_id, id, status, amount, currency, capture_method, payment_method, attempt_id, holds_order_id,
        metadata, provider, livemode)
      select 'ten_1', status, status, 1, 'usd', 'automatic', 'pm', 'att', false, '{}', 'none', false
        from unnest(enum_range(null::payment_status)) status`;
  await migrate(old.url);
  expect(await old.admin`select status::text, rare_status::text from payments p order by p.status`).toEqual([
    { status: "processing", rare_status: null },
    { status: "requires_action", rare_status: "requires_action" },
    { status: "authorized", rare_status: "authorized" },
    { status: "succeeded", rare_status: null },
    { status: "failed", rare_status: "failed" },
    { status: "canceled", rare_status: "canceled" },
    { status: "needs_review", rare_status: "needs_review" },
  ]);
});
