import { withDatabase } from "../store/db.js";
import {
  type Finding,
  listFindingsOfRun,
  listOpenFindings,
  type Run,
  readRun,
} from "../store/reconciliation.js";
import { readUnfinished, type Unfinished } from "../store/unfinished.js";
import type { Deps } from "./deps.js";

export interface ReconciliationReport {
  readonly run: Run;
  /** What the run has seen or closed, and everything else that is still open. */
  readonly findings: readonly Finding[];
  /** False: there are more, and every count of these says "at least". */
  readonly isComplete: boolean;
  readonly unfinished: Unfinished;
}

/** More in one report nobody reads. */
const MOST_FINDINGS = 10_000;
const MOST_PAST_BOUND = 100;
/** Several leases: by then a worker would have come, if there were one. */
const OVERDUE_LEASES = 5;

/** What a comparison came to, with what is unfinished on our own side. Null: there is no such run. */
export async function reportOf(
  deps: Pick<Deps, "db" | "provider" | "settings">,
  runId: string,
): Promise<ReconciliationReport | null> {
  const { settings } = deps;
  const { sql } = deps.db;
  const provider = deps.provider.name;
  const run = await withDatabase(() => readRun(sql, provider, runId));
  if (run === null) return null;
  const seen = await withDatabase(() => listFindingsOfRun(sql, provider, runId, MOST_FINDINGS));
  const open = await withDatabase(() =>
    listOpenFindings(sql, provider, { unseen: null, limit: MOST_FINDINGS }),
  );
  const others = open.filter(({ lastRun }) => lastRun !== runId);
  const unfinished = await withDatabase(() =>
    readUnfinished(sql, {
      unknownMs: settings.unknownReviewAfterMs,
      overdueMs: settings.attemptLeaseMs * OVERDUE_LEASES,
      limit: MOST_PAST_BOUND,
    }),
  );
  const isComplete = seen.length < MOST_FINDINGS && open.length < MOST_FINDINGS;
  return { run, findings: [...seen, ...others], isComplete, unfinished };
}
