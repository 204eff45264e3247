import type { Worker } from "./worker.js";

/** Sends what is due to endpoints and to the broker. A delivery that ends makes the next round begin at once. */
export const webhooks: Worker = {
  name: "webhooks",
  intervalMs: (deps) => deps.settings.webhookIntervalMs,
  runOnce: (deps) => deps.deliveries.claim(),
};
