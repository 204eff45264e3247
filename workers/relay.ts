import { RELAY_BATCH_SIZE, relayEvents } from "../src/operations/relay-events.js";
import type { Worker } from "./worker.js";

/** Makes the deliveries of new events, a batch a round, and wakes whoever sends them in this process. */
export const relay: Worker = {
  name: "relay",
  intervalMs: (deps) => deps.settings.relayIntervalMs,
  runOnce: async (deps) => {
    const { events, deliveries } = await relayEvents(deps);
    if (deliveries > 0) deps.deliveries.wake();
    return events >= RELAY_BATCH_SIZE;
  },
};
