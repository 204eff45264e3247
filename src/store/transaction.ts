import type postgres from "postgres";
import { type Database, withDatabase } from "./db.js";

/** Longer than any statement of ours holds a row; whoever waits for it holds a connection that requests need. */
const LOCK_WAIT_MS = 500;

/**
 * Runs `work` in one transaction, as `withDatabase` does a unit of work: it may run more than once. A statement that
 * waits longer than a moment for a row fails (55P03), so that one held row cannot take every connection.
 */
export function inTransaction<T>(
  db: Database,
  work: (tx: postgres.TransactionSql) => Promise<T>,
): Promise<T> {
  return withDatabase(
    () =>
      db.sql.begin(async (tx) => {
        await tx`select set_config('lock_timeout', ${String(LOCK_WAIT_MS)}, true)`;
        return work(tx);
      }) as Promise<T>,
  );
}
