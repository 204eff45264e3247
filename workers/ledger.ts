import { countLedger, LEDGER_BATCH_SIZE } from "../src/operations/count-ledger.js";
import type { Worker } from "./worker.js";

/** Counts new ledger entries into the balances, so that no payment has to and a balance is quickly read. */
export const ledger: Worker = {
  name: "ledger",
  intervalMs: (deps) => deps.settings.ledgerIntervalMs,
  runOnce: async (deps) => (await countLedger(deps)) >= LEDGER_BATCH_SIZE,
};
