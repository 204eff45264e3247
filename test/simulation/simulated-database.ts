import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { type Database, openDatabase, type Sql } from "../../src/store/db.js";
import { givenColumns } from "../support/given-columns.js";
import { EPOCH_MS, really } from "./host.js";

/** A real database whose `now()` is the simulation's: `simulation.now()` stands before PostgreSQL's own in the search path. */
export interface SimulatedDatabase {
  /** Past the simulation: for the harness's own statements. */
  readonly sql: Sql;
  /** Empties every table. */
  reset(): Promise<void>;
  /** Runs one unit of work of the product's at this moment of simulated time. */
  at<T>(nowMs: number, work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Keeps every row of every table as it is now, in place of what was kept before. */
  keep(): Promise<void>;
  /** All rows are again as they were kept; in one step, as for whoever looks at the database. */
  putBack(): Promise<void>;
  close(): Promise<void>;
}

/** `url`: a migrated database that nobody else uses. It is changed for good. */
export async function openSimulatedDatabase(url: string): Promise<SimulatedDatabase> {
  const setUp = postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
  try {
    await setUp.unsafe(OWN_CLOCK);
  } finally {
    await setUp.end();
  }
  // One connection: what runs is a statement or a transaction at a time, in the order of the simulation's steps.
  const database = await openDatabase({ url, poolMax: 1, prepare: true });
  const { sql } = database;
  const names = await parentsFirst(sql);
  const empty = `truncate ${names.map((name) => `public.${name}`).join(", ")}`;
  // In the order of their places: what is equal in what it is sorted by comes in the same order again.
  const columns = new Map<string, string>();
  for (const name of names) columns.set(name, await givenColumns(sql, name));
  const copies = (to: string, from: string) =>
    [...columns].map(
      ([name, given]) =>
        `insert into ${to}.${name} (${given}) select ${given} from ${from}.${name} order by ctid`,
    );
  const emptyKept = `truncate ${names.map((name) => `kept.${name}`).join(", ")}`;
  let micros = 0;
  return {
    sql,
    reset: async () => {
      micros = 0;
      await sql.unsafe(empty);
    },
    at: async (nowMs, work) => {
      // No two statements at the same time, as on a real clock: what is sorted by time has an order.
      micros = Math.max(micros + 1, Math.round(nowMs * 1_000));
      const moment = new Date(EPOCH_MS + Math.floor(micros / 1_000)).toISOString().slice(0, -1);
      const text = `${moment}${String(micros % 1_000).padStart(3, "0")}Z`;
      // Both go out together on the one connection: a text without parameters is one message, so it is the first.
      const clock = `set simulation.now to '${text}'`;
      const [, result] = await really(() => Promise.all([sql.unsafe(clock).execute(), work(sql)]));
      return result;
    },
    keep: () => inOneStep([emptyKept, ...copies("kept", "public")]),
    putBack: () => inOneStep([empty, ...copies("public", "kept")]),
    close: () => database.close(),
  };

  /** Texts without parameters that go out as one are one transaction. */
  async function inOneStep(statements: readonly string[]): Promise<void> {
    await really(() => sql.unsafe(statements.join("; ")).simple());
  }
}

/** Every table, those that are referred to before those that refer to them. */
async function parentsFirst(sql: Sql): Promise<readonly string[]> {
  const tables = await sql<{ name: string; parents: string | null }[]>`
    select t.relname as name, string_agg(p.relname, ',') as parents
      from pg_class t
      left join pg_constraint c on c.conrelid = t.oid and c.contype = 'f'
      left join pg_class p on p.oid = c.confrelid
     where t.relnamespace = 'public'::regnamespace and t.relkind = 'r'
     group by t.relname order by t.relname`;
  const placed = new Set<string>();
  while (placed.size < tables.length) {
    const free = tables.filter(
      ({ name, parents }) =>
        !placed.has(name) && (parents ?? "").split(",").every((one) => one === "" || placed.has(one)),
    );
    if (free.length === 0) throw new Error("tables refer to each other in a circle");
    for (const { name } of free) placed.add(name);
  }
  return [...placed];
}

/**
 * Also: no vacuum in the background, which would change plans and places of rows from one run to the next; and a table
 * beside each, for the rows that a restore puts back.
 */
const OWN_CLOCK = `
  create schema if not exists simulation;
  create schema if not exists kept;
  create or replace function simulation.now() returns timestamptz language sql stable
    as $$ select current_setting('simulation.now')::timestamptz $$;
  do $$
  declare one record;
  begin
    for one in select table_name, column_name from information_schema.columns
                where table_schema = 'public' and column_default in ('now()', 'pg_catalog.now()') loop
      execute format('alter table public.%I alter column %I set default simulation.now()', one.table_name, one.column_name);
    end loop;
    for one in select table_name from information_schema.tables
                where table_schema = 'public' and table_type = 'BASE TABLE' loop
      execute format('alter table public.%I set (autovacuum_enabled = false)', one.table_name);
      execute format('create table if not exists kept.%1$I (like public.%1$I) with (autovacuum_enabled = false)', one.table_name);
    end loop;
    execute format('alter database %I set search_path = simulation, public, pg_catalog', current_database());
  end $$`;

/** Runs a statement, or a whole transaction, of the product's when and as the simulation wants; `what` names it. */
export type Statement = <T>(what: string, run: (sql: Sql) => Promise<T>) => Promise<T>;

/** The product's database: every statement goes through `statement`. */
export function gatedDatabase(sql: Sql, statement: Statement): Database {
  const gated = gatedSql(sql, statement);
  return { sql: gated, read: drizzle(gated), close: () => Promise.resolve() };
}

function gatedSql(sql: Sql, statement: Statement): Sql {
  return new Proxy(sql, {
    apply: (target, self, parts: unknown[]) => gatedQuery(Reflect.apply(target, self, parts), statement),
    get: (target, name) => {
      if (name === "unsafe") {
        return (...parts: Parameters<Sql["unsafe"]>) => gatedQuery(target.unsafe(...parts), statement);
      }
      // A transaction is one step: its statements hold locks, and whoever waited for one would stop the simulation.
      if (name === "begin") {
        return (work: (tx: postgres.TransactionSql) => Promise<unknown>) =>
          statement(callerInStore(), () => target.begin(work));
      }
      return Reflect.get(target, name) as unknown;
    },
  });
}

/** A query runs when it is first awaited; one that is part of another query never is. */
function gatedQuery(query: unknown, statement: Statement): unknown {
  if (!(query instanceof Promise)) return query;
  const what = callerInStore();
  const runs = query.then.bind(query) as PromiseLike<unknown>["then"];
  query.then = ((ok, fail) =>
    statement(what, () => new Promise<unknown>((resolve, reject) => void runs(resolve, reject))).then(
      ok,
      fail,
    )) as typeof query.then;
  return query;
}

/** The function of the store, or of an operation, that makes the statement. */
function callerInStore(): string {
  const before = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace");
  const holder: { stack?: unknown } = {};
  // As places and not as text, which would be looked up in source maps: this runs for every statement.
  Error.prepareStackTrace = (_error, sites) => sites;
  Error.captureStackTrace(holder, callerInStore);
  const sites = holder.stack as NodeJS.CallSite[];
  if (before === undefined) Reflect.deleteProperty(Error, "prepareStackTrace");
  else Object.defineProperty(Error, "prepareStackTrace", before);
  const site = sites.find((one) => /\/src\/(store|operations)\//.test(one.getFileName() ?? ""));
  return site?.getFunctionName() ?? "statement";
}
