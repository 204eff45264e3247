import { join } from "node:path";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import type { Logger } from "../lib/log.js";
import { packageRoot } from "../lib/package-root.js";

/** Any fixed number: the lock that one migrating process at a time holds ("pawl" in ASCII). */
const MIGRATION_LOCK = 0x7061776c;

/**
 * Brings the schema up to date. Safe when many processes start at once: one holds a transaction-scoped advisory
 * lock (which a transaction pooler keeps apart, unlike a session's) while its second connection migrates.
 */
export async function migrate(databaseUrl: string, log?: Logger): Promise<void> {
  const options = { max: 1, prepare: false, fetch_types: false, onnotice: () => undefined };
  const guard = postgres(databaseUrl, options);
  const worker = postgres(databaseUrl, options);
  try {
    await guard.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`;
      await applyMigrations(drizzle(worker), { migrationsFolder: join(packageRoot(), "drizzle") });
    });
    log?.debug("migrations applied");
  } finally {
    await Promise.all([guard.end({ timeout: 5 }), worker.end({ timeout: 5 })]);
  }
}
