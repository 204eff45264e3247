import { withDatabase } from "../store/db.js";
import { countEntries } from "../store/ledger.js";
import type { Deps } from "./deps.js";

/** A statement of some 20 ms, for which another worker may have to wait; a backlog takes several of them. */
export const LEDGER_BATCH_SIZE = 1_000;

/**
 * Counts one batch of new entries into the balances and tells how many. Balances are exact whether or when this runs:
 * what is not counted yet is added up by whoever reads.
 */
export function countLedger(deps: Pick<Deps, "db">): Promise<number> {
  return withDatabase(() => countEntries(deps.db.sql, LEDGER_BATCH_SIZE));
}
