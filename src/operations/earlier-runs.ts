import type { Attempt } from "../domain/attempt.js";
import { isBeforeObject } from "../domain/charge-decisions.js";
import { type EarlierRuns, judgeEarlierRuns, MOST_RUNS, mindsEarlierRuns } from "../domain/earlier-runs.js";
import { hurryEarlierRuns } from "../store/attempts.js";
import { withDatabase } from "../store/db.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";

/**
 * What the other runs of the attempt's key came to, also later ones: after a recovery rows may stand that the key's record
 * knows nothing of. Asks no provider. One that has no answer yet is due at once, so that a worker asks about it while
 * this run waits.
 */
export async function earlierRunsOf(
  deps: Pick<Deps, "db" | "due" | "installationSecret">,
  attempt: Attempt,
): Promise<EarlierRuns> {
  const isUnsent = attempt.kind !== "charge" || isBeforeObject(attempt.state);
  if (!mindsEarlierRuns(attempt) || !isUnsent) return "harmless";
  const { tenantId, operation, idempotencyKey: key, run: own } = attempt;
  const runs = Array.from({ length: MOST_RUNS }, (_, at) => at + 1).filter((run) => run !== own);
  const ids = runs.map((run) => attemptIdOf(deps.installationSecret, { tenantId, operation, key }, run));
  const earlier = judgeEarlierRuns(await withDatabase(() => hurryEarlierRuns(deps.db.sql, tenantId, ids)));
  if (earlier === "open") deps.due.accepted();
  return earlier;
}
