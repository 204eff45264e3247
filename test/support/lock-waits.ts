import type { Sql } from "../../src/store/db.js";
import { until } from "./until.js";

interface Waiting {
  readonly pid: number;
}

/** Sessions of this database whose statement waits for a lock that another one holds. */
function waiting({ sql }: { readonly sql: Sql }): Promise<Waiting[]> {
  return sql<Waiting[]>`
    select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
}

/** Resolves when so many sessions stand at a lock. */
export async function untilWaiting(world: { readonly sql: Sql }, sessions = 1): Promise<void> {
  await until(
    "sessions at a lock",
    () => waiting(world),
    (seen) => seen.length === sessions,
  );
}

/** Ends them, as a restart or a failover of the database would. */
export async function endWaiting(world: { readonly sql: Sql }): Promise<void> {
  for (const { pid } of await waiting(world)) await world.sql`select pg_terminate_backend(${pid})`;
}

const POOL_MAX = 8;

/**
 * Resolves when a whole pool of connections works. The client gives a lost session's error once more to the statement
 * that its connection is made anew for; after that, no connection may be lost to the pool.
 */
export async function untilWholePoolWorks({ sql }: { readonly sql: Sql }): Promise<void> {
  await until(
    "a pool that works",
    () => Promise.allSettled(Array.from({ length: POOL_MAX }, () => sql`select 1`)),
    (all) => all.every(({ status }) => status === "fulfilled"),
  );
}
