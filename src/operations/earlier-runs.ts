import type { Attempt } from "../domain/attempt.js";
import { isBeforeObject } from "../domain/charge-decisions.js";
import { type EarlierRuns, judgeEarlierRuns, mindsEarlierRuns } from "../domain/earlier-runs.js";
import { hurryEarlierRuns } from "../store/attempts.js";
import { withDatabase } from "../store/db.js";
import { attemptIdsOf } from "./attempt-id.js";
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
  const all = attemptIdsOf(deps.installationSecret, { tenantId, operation, key });
  const ids = all.filter((_, at) => at + 1 !== own);
  const earlier = judgeEarlierRuns(await withDatabase(() => hurryEarlierRuns(deps.db.sql, tenantId, ids)));
  if (earlier === "open") deps.due.dueNow();
  return earlier;
}
