import { purgeExpired } from "../src/operations/purge-expired.js";
import type { Worker } from "./worker.js";

/** Deletes finished idempotency keys past their retention, a batch a round. */
export const reaper: Worker = {
  name: "reaper",
  intervalMs: (deps) => deps.settings.purgeIntervalMs,
  runOnce: async (deps) => (await purgeExpired(deps)) >= deps.settings.purgeBatchSize,
};
