import { MicroBatch } from "../lib/micro-batch.js";
import { type Advanced, type AdvanceRow, advanceAttempts } from "../store/advance.js";
import { type Database, databaseIsBusy, failedByItsRows, withDatabase } from "../store/db.js";
import type { RecoveryWatch } from "./recovery-watch.js";

/** As for accepts: what waits together shares a commit, and nothing waits for company. */
const MOST_ROWS = 64;
const MOST_IN_FLIGHT = 2;
/** More than any worker has under way: an outcome is never refused for want of room. */
const MOST_WAITING = 100_000;

export type AdvanceBatch = MicroBatch<AdvanceRow, Advanced | null>;

export function createAdvanceBatch(db: Database, recovery: Pick<RecoveryWatch, "tells">): AdvanceBatch {
  return new MicroBatch<AdvanceRow, Advanced | null>({
    run: (rows) => withDatabase(() => advanceAttempts(db.sql, rows, recovery.tells)),
    mostItems: MOST_ROWS,
    mostInFlight: MOST_IN_FLIGHT,
    mostWaiting: MOST_WAITING,
    refusal: databaseIsBusy,
    // Two writes of one payment in one statement would both be granted, and one of them lost.
    namesOf: (row) => [`${row.tenant_id} ${row.attempt_id}`, `${row.tenant_id} ${row.payment_id}`],
    runsAlone: failedByItsRows,
  });
}
