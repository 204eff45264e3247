import type { Worker } from "./worker.js";

/**
 * Claims due attempts and drives them against the provider. Woken when one is accepted in this process or announced
 * by another; the interval is only the safety net.
 */
export const attempts: Worker = {
  name: "attempts",
  intervalMs: (deps) => deps.settings.pollIntervalMs,
  runOnce: (deps) => deps.pool.claim("due"),
};
