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
