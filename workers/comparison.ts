import type { Worker } from "./worker.js";

/**
 * Compares what the provider has with what we have, and takes in what a restored database has lost. A step a round, so
 * that a stop is prompt; a run whose process died is gone on with when its lease has ended.
 */
export const comparison: Worker = {
  name: "comparison",
  intervalMs: (deps) => deps.settings.reconcileIntervalMs,
  runOnce: (deps) => deps.comparison.round(),
};
