import { purgeDeliveries } from "../src/operations/purge-deliveries.js";
import { purgeExpired } from "../src/operations/purge-expired.js";
import { purgeProviderEvents } from "../src/operations/purge-provider-events.js";
import type { Worker } from "./worker.js";

/** Deletes what is past its retention, a batch of each kind a round: finished keys, applied events, ended deliveries. */
export const reaper: Worker = {
  name: "reaper",
  intervalMs: (deps) => deps.settings.purgeIntervalMs,
  runOnce: async (deps) => {
    const { purgeBatchSize } = deps.settings;
    const keys = await purgeExpired(deps);
    const events = await purgeProviderEvents(deps);
    const deliveries = await purgeDeliveries(deps);
    return [keys, events, deliveries].some((purged) => purged >= purgeBatchSize);
  },
};
