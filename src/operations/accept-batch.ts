import { MicroBatch } from "../lib/micro-batch.js";
import { type Accepted, type AcceptRow, acceptPayments } from "../store/accept.js";
import { type Database, databaseIsBusy, failedByItsRows, withDatabase } from "../store/db.js";
import type { RecoveryWatch } from "./recovery-watch.js";

/** More rows a statement gains nothing more (measured: npm run bench); two in flight keep the connection busy. */
const MOST_ROWS = 64;
const MOST_IN_FLIGHT = 2;
/** What a healthy database takes in a fraction of a second; beyond it callers are better told at once. */
const MOST_WAITING = 1_024;

export interface Accepter {
  add(row: AcceptRow): Promise<Accepted>;
  /** Rows were lost here once, so an unknown key is searched for with all its runs; as far as this process has heard. */
  readonly searchesRuns: boolean;
}

/** Requests that wait together share one commit; each still gets its own answer, after that commit. */
export function createAccepter(db: Database, recovery: Pick<RecoveryWatch, "tells">): Accepter {
  let searchesRuns = false;
  const batch = new MicroBatch<AcceptRow, Accepted>({
    run: async (rows) => {
      const outcomes = await withDatabase(() => acceptPayments(db.sql, rows, recovery.tells));
      if (outcomes.some(({ type }) => type === "unsearched")) searchesRuns = true;
      return outcomes;
    },
    mostItems: MOST_ROWS,
    mostInFlight: MOST_IN_FLIGHT,
    mostWaiting: MOST_WAITING,
    refusal: databaseIsBusy,
    namesOf: (row) => {
      const names = [JSON.stringify(["key", row.tenant_id, row.operation, row.key])];
      if (row.merchant_order_id !== null)
        names.push(JSON.stringify(["order", row.tenant_id, row.merchant_order_id]));
      return names;
    },
    // One row lost a race for its order id or attempt; the statement rolled back whole.
    runsAlone: failedByItsRows,
  });
  return {
    add: (row) => batch.add(row),
    get searchesRuns() {
      return searchesRuns;
    },
  };
}
