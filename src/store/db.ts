import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { PawlError } from "../domain/errors.js";

export type Sql = postgres.Sql;
/** A pool or a transaction: what every function of the store takes first. */
export type Queryable = postgres.Sql | postgres.TransactionSql;

/**
 * Drizzle shares the client and turns its date and json serializers off, so raw statements pass and get text for
 * both: times as PostgreSQL prints them in UTC, JSON as a string.
 */
export interface Database {
  readonly sql: Sql;
  readonly read: PostgresJsDatabase;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  readonly poolMax: number;
  readonly prepare: boolean;
}

const CONNECT_TIMEOUT_SECONDS = 5;
const CLOSE_TIMEOUT_SECONDS = 5;
/** Connections are remade now and then, so that a failover behind one name is noticed; idle ones stay. */
const CONNECTION_LIFETIME_SECONDS = 30 * 60;

/**
 * Every statement here finds its rows by key. A plan that was made while the tables were small would scan them whole,
 * and a prepared statement keeps it until the next ANALYZE: so the ways of scanning whole tables are off from the start,
 * and a look-up costs what it touches, not four pages from a disk, which a small table that is read whole costs less than.
 */
const SESSION = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  random_page_cost: 0.1,
  jit: "off",
  // Just under the deadline below: what nobody waits for any more is not done later, and gives its connection back.
  statement_timeout: 7_500,
};
/**
 * One statement at a time on a connection to a pooler. The client would send a second one behind the first, and a pooler
 * that gives the server connection on as soon as the first has ended (PgBouncer before 1.21) sends what was begun of the
 * second to whoever has it next. An option of postgres.js that its types leave out; `begin` does not work with it.
 */
const ONE_AT_A_TIME = { max_pipeline: 0 };
/** A pooler's answer to start-up parameters that it does not pass on. */
const UNSUPPORTED_PARAMETER = "08P01";

/** Connects once, so that a database that cannot be had is an error here. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const sql = connect(options, SESSION);
  try {
    await sql`select 1`;
    return databaseOf(sql);
  } catch (error) {
    await sql.end({ timeout: 0 });
    if (errorCode(error) !== UNSUPPORTED_PARAMETER) throw error;
    return databaseOf(connect(options, {}));
  }
}

function connect(options: DatabaseOptions, session: Partial<typeof SESSION>): Sql {
  const sql = postgres(options.url, {
    max: options.poolMax,
    prepare: options.prepare,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    max_lifetime: CONNECTION_LIFETIME_SECONDS,
    // The client would ask each new connection for its array types, and a session that ends during that question is an
    // error that nobody can catch: the process dies. So no statement passes or returns an array.
    fetch_types: false,
    ...(options.prepare ? {} : ONE_AT_A_TIME),
    connection: { application_name: "pawl", TimeZone: "UTC", ...session },
    onnotice: () => undefined,
    // A delay of its own before reconnecting would keep requests waiting after the database is back.
    backoff: () => RECONNECT_SECONDS,
  });
  return withWholeResults(sql);
}

/** What postgres.js has of a statement that was called and not sent yet. */
interface PendingQuery {
  resolve: (result: unknown) => void;
}

/**
 * postgres.js 3.4.9 counts on after a statement that failed with rows on their way: the rows of the connection's next
 * statement come behind as many holes (porsager/postgres#1181), and a row that is there reads as none. Holes are taken out.
 */
function withWholeResults(sql: Sql): Sql {
  const mended = (made: unknown): unknown => {
    if (!(made instanceof Promise) || !("resolve" in made)) return made;
    const query = made as unknown as PendingQuery;
    const { resolve } = query;
    query.resolve = (result) => resolve(withoutHoles(result));
    return made;
  };
  const unsafe = (...args: Parameters<Sql["unsafe"]>) => mended(sql.unsafe(...args));
  return new Proxy(sql, {
    apply: (target, self, args) => mended(Reflect.apply(target, self, args)),
    get: (target, name) => (name === "unsafe" ? unsafe : (Reflect.get(target, name) as unknown)),
  });
}

function withoutHoles(result: unknown): unknown {
  if (!Array.isArray(result) || result.length === 0 || 0 in result) return result;
  result.splice(
    0,
    result.findIndex((_, at) => at in result),
  );
  return result;
}

function databaseOf(sql: Sql): Database {
  return { sql, read: drizzle(sql), close: () => sql.end({ timeout: CLOSE_TIMEOUT_SECONDS }) };
}

const RECONNECT_SECONDS = 0.2;

/** SQLSTATE, or the client's own code for a lost connection; from the cause where Drizzle wraps it. */
function errorCode(error: unknown): string | null {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = (at as { code?: unknown }).code;
    if (typeof code === "string") return code;
  }
  return null;
}

export function violatedConstraint(error: unknown): string | null {
  if (errorCode(error) !== "23505") return null;
  const named = error as { constraint_name?: unknown };
  return typeof named.constraint_name === "string" ? named.constraint_name : null;
}

/** The statement was rolled back for one of its rows: a key that is taken, or a value that cannot be stored. */
export function failedByItsRows(error: unknown): boolean {
  return violatedConstraint(error) !== null || errorCode(error)?.startsWith("22") === true;
}

/** Errors of a connection and of a server that stops, starts, is full or is a standby: not this request's fault. */
const UNAVAILABLE = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
  "57014",
  "57P01",
  "57P02",
  "57P03",
  "53100",
  "53200",
  "53300",
  "25006",
]);

function isUnavailable(error: unknown): boolean {
  const code = errorCode(error);
  return code !== null && (UNAVAILABLE.has(code) || code.startsWith("08"));
}

const RETRYABLE = new Set(["40001", "40P01"]);
/** A deadlock or serialization failure costs both sides little; more than this many in a row is a bug to see. */
const TRANSIENT_TRIES = 4;
const DEADLINE_MS = 8_000;
const RETRY_AFTER_SECONDS = 1;

/**
 * Runs one unit of database work: retries what PostgreSQL rolled back as transient, and turns a database that is
 * not there (or does not answer within 8 s) into `service_unavailable`. After a lost connection the work may or
 * may not have been committed: the caller's idempotency decides, never a blind repeat here.
 */
export async function withDatabase<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await withDeadline(work());
    } catch (error) {
      const code = errorCode(error);
      if (code !== null && RETRYABLE.has(code) && tries < TRANSIENT_TRIES) continue;
      if (isUnavailable(error)) throw unavailable(error);
      throw error;
    }
  }
}

export function databaseIsBusy(): PawlError {
  return unavailable(new Error("too much is waiting for the database"));
}

function unavailable(cause: unknown): PawlError {
  return new PawlError(
    "service_unavailable",
    "The database cannot be reached; the same key is safe to send again.",
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause,
    },
  );
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable(new Error("no answer within the deadline"))), DEADLINE_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
