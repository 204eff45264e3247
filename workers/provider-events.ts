import type { Worker } from "./worker.js";

/**
 * Applies what the provider told and receiving has stored. Woken when one is stored in this process or announced by
 * another; the interval is the safety net, and finds what was deferred.
 */
export const providerEvents: Worker = {
  name: "provider-events",
  intervalMs: (deps) => deps.settings.providerEventIntervalMs,
  runOnce: (deps) => deps.providerEvents.claim(),
};
