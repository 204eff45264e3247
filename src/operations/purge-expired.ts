import { withDatabase } from "../store/db.js";
import { purgeExpiredKeys } from "../store/idempotency-keys.js";
import type { Deps } from "./deps.js";

/**
 * Deletes one batch of finished keys past their expiry and tells how many. Expiry itself is decided inside the claim,
 * so nothing depends on when this runs.
 */
export async function purgeExpired(deps: Pick<Deps, "db" | "settings" | "log">): Promise<number> {
  const purged = await withDatabase(() => purgeExpiredKeys(deps.db.sql, deps.settings.purgeBatchSize));
  if (purged > 0) deps.log.info({ purged }, "expired idempotency keys purged");
  return purged;
}
