import { MicroBatch } from "../lib/micro-batch.js";
import { type Advanced, type AdvanceRow, advanceAttempts } from "../store/advance.js";
import { type Database, violatedConstraint, withDatabase } from "../store/db.js";

/** As for accepts: what waits together shares a commit, and nothing waits for company. */
const MOST_ROWS = 64;
const MOST_IN_FLIGHT = 2;

export type AdvanceBatch = MicroBatch<AdvanceRow, Advanced | null>;

export function createAdvanceBatch(db: Database): AdvanceBatch {
  return new MicroBatch<AdvanceRow, Advanced | null>({
    run: (rows) => withDatabase(() => advanceAttempts(db.sql, rows)),
    mostItems: MOST_ROWS,
    mostInFlight: MOST_IN_FLIGHT,
    namesOf: (row) => [`${row.tenant_id} ${row.attempt_id}`],
    runsAlone: (error) => violatedConstraint(error) !== null,
  });
}
