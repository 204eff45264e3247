import postgres from "postgres";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "../../src/store/migrate.js";
import { databaseOf, type OldDatabase } from "../support/migrations.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

/** Tables that no request and no worker reads by a key that grows with payments. */
const NOT_OF_THE_DATA_PATH = [
  "api_keys",
  "installation",
  "provider_accounts",
  "reconciliation_findings",
  "reconciliation_runs",
  "tenants",
];

let database: TestDatabase;
let sql: postgres.Sql;
let old: OldDatabase | undefined;
beforeEach(async () => {
  database = await createTestDatabase();
  sql = postgres(database.url, { max: 1, fetch_types: false });
});
afterEach(async () => {
  await sql.end();
  await database.drop();
  await old?.drop();
  old = undefined;
});

interface Belief {
  readonly name: string;
  /** -1: nothing is known of it; 0: it is believed to be empty, and to stay so. */
  readonly rows: number;
  readonly key: string;
  /** Columns of its primary key of which there are no statistics. */
  readonly unknown: number;
}

/** What the planner believes of each table of the data path. */
function beliefs(of: postgres.Sql): Promise<readonly Belief[]> {
  return of<Belief[]>`
    select c.relname as name, c.reltuples::float8 as rows, string_agg(a.attname, ',' order by a.attnum) as key,
           count(*) filter (where not exists (
             select from pg_stats s where s.schemaname = 'public' and s.tablename = c.relname and s.attname = a.attname))::int as unknown
      from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
      join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
     where c.relnamespace = 'public'::regnamespace and c.relname <> all(string_to_array(${NOT_OF_THE_DATA_PATH.join(",")}, ','))
     group by c.relname, c.reltuples order by c.relname`;
}

test("no table of the data path is believed to stay empty in a new database", async () => {
  const tables = await beliefs(sql);
  expect(tables.map(({ name }) => name)).toEqual([
    "attempts",
    "deliveries",
    "idempotency_keys",
    "ledger_balances",
    "ledger_entries",
    "ledger_uncounted",
    "order_ids",
    "outbox",
    "payments",
    "provider_events",
    "refunds",
    "reviews",
    "timeline",
    "webhook_endpoints",
  ]);
  expect(tables.filter(({ rows, unknown }) => rows !== -1 || unknown > 0)).toEqual([]);
});

test("a table of the data path that is empty is looked into by its whole primary key", async () => {
  for (const { name, key } of await beliefs(sql)) {
    const columns = key.split(",");
    const isIt = columns.map((column) => `${column} = ${column === "leg" ? "1" : "'one'"}`).join(" and ");
    const plan = await sql.unsafe<{ "QUERY PLAN": string }[]>(
      `explain (costs off) select 1 from ${name} where ${isIt}`,
    );
    const lines = plan.map((line) => line["QUERY PLAN"]).join("\n");
    const primary = await sql<{ name: string }[]>`
      select indexrelid::regclass::text as name from pg_index where indrelid = ${name}::text::regclass and indisprimary`;
    expect(lines).toMatch(new RegExp(`^Index (Only )?Scan using ${primary[0]?.name} `));
    for (const column of columns) expect(lines).toContain(`(${column} = `);
  }
});

test("an upgrade mends what an earlier version made its empty tables be taken for", async () => {
  old = await databaseOf("0005_reviews-of-attempts");
  await old.admin`insert into tenants (id, name) values ('ten_1', 'one')`;
  expect((await beliefs(old.admin)).map(({ rows }) => rows)).toContain(0);
  await migrate(old.url);
  expect((await beliefs(old.admin)).filter(({ rows }) => rows !== -1)).toEqual([]);
});
