import { withDatabase } from "../store/db.js";
import { purgeEndedDeliveries } from "../store/deliveries.js";
import type { Deps } from "./deps.js";

/** Deletes one batch of deliveries that ended longer ago than they are kept, and tells how many. Events stay. */
export async function purgeDeliveries(deps: Pick<Deps, "db" | "settings" | "log">): Promise<number> {
  const { purgeBatchSize, deliveryRetentionMs } = deps.settings;
  const purged = await withDatabase(() =>
    purgeEndedDeliveries(deps.db.sql, purgeBatchSize, deliveryRetentionMs),
  );
  if (purged > 0) deps.log.info({ purged }, "ended deliveries purged");
  return purged;
}
