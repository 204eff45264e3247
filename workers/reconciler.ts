import type { Worker } from "./worker.js";

/**
 * Looks for what a crash left: attempts whose lease ended in somebody's hands. They are asked about, then adopted,
 * sent again under the same key, or fenced, by the same code that drives every attempt.
 */
export const reconciler: Worker = {
  name: "reconciler",
  intervalMs: (deps) => deps.settings.reconcileIntervalMs,
  runOnce: (deps) => deps.pool.claim("left"),
};
