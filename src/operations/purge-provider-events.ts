import { withDatabase } from "../store/db.js";
import { purgeAppliedEvents } from "../store/provider-events.js";
import type { Deps } from "./deps.js";

/**
 * Deletes one batch of events that were applied long ago and tells how many: past the time in which the provider can
 * send one again, its id needs no remembering. Parked events stay until they are replayed.
 */
export async function purgeProviderEvents(deps: Pick<Deps, "db" | "settings" | "log">): Promise<number> {
  const { providerEventRetentionMs, purgeBatchSize } = deps.settings;
  const purged = await withDatabase(() =>
    purgeAppliedEvents(deps.db.sql, providerEventRetentionMs, purgeBatchSize),
  );
  if (purged > 0) deps.log.info({ purged }, "applied provider events purged");
  return purged;
}
