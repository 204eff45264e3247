import type { FindingKind, FindingState } from "../domain/finding.js";
import { withDatabase } from "../store/db.js";
import { type Finding, type FindingName, type Run, readRun } from "../store/reconciliation.js";
import { countReported, listReported } from "../store/reported-findings.js";
import { readUnfinished, type Unfinished } from "../store/unfinished.js";
import type { Deps } from "./deps.js";

export interface FindingCounts {
  readonly byState: ReadonlyMap<FindingState, number>;
  readonly byKind: ReadonlyMap<FindingKind, number>;
}

export interface ReconciliationReport {
  readonly run: Run;
  /** All there are, however many are shown. */
  readonly counts: FindingCounts;
  /** Everything that is open, and what the run has closed; the open ones first. */
  readonly findings: readonly Finding[];
  /** False: there are more than these. */
  readonly isComplete: boolean;
  readonly unfinished: Unfinished;
}

/** More in one document nobody reads. */
const MOST_SHOWN = 10_000;
const READ_AT_ONCE = 1_000;
const MOST_PAST_BOUND = 100;
/** Several leases: by then a worker would have come, if there were one. */
const OVERDUE_LEASES = 5;

type Reporting = Pick<Deps, "db" | "provider" | "settings">;

/** What a comparison came to, with what is unfinished on our own side. Null: there is no such run. */
export async function reportOf(deps: Reporting, runId: string): Promise<ReconciliationReport | null> {
  const { settings } = deps;
  const { sql } = deps.db;
  const provider = deps.provider.name;
  const run = await withDatabase(() => readRun(sql, provider, runId));
  if (run === null) return null;
  const counts = countsOf(await withDatabase(() => countReported(sql, provider, runId)));
  const findings: Finding[] = [];
  for await (const finding of findingsOf(deps, runId)) {
    if (findings.push(finding) === MOST_SHOWN) break;
  }
  const unfinished = await withDatabase(() =>
    readUnfinished(sql, {
      unknownMs: settings.unknownReviewAfterMs,
      overdueMs: settings.attemptLeaseMs * OVERDUE_LEASES,
      limit: MOST_PAST_BOUND,
    }),
  );
  const all = [...counts.byState.values()].reduce((sum, count) => sum + count, 0);
  return { run, counts, findings, isComplete: findings.length >= all, unfinished };
}

/** Every finding that a report tells of, one by one: however many there are, few are in memory. */
export async function* findingsOf(deps: Reporting, runId: string): AsyncGenerator<Finding> {
  for (const part of ["open", "closed"] as const) {
    let after: FindingName | null = null;
    do {
      const page: Finding[] = await nextFindings(deps, { part, runId, after, limit: READ_AT_ONCE });
      yield* page;
      after = page.length < READ_AT_ONCE ? null : (page.at(-1) ?? null);
    } while (after !== null);
  }
}

function nextFindings(
  { db, provider }: Reporting,
  wanted: Parameters<typeof listReported>[2],
): Promise<Finding[]> {
  return withDatabase(() => listReported(db.sql, provider.name, wanted));
}

function countsOf(rows: Awaited<ReturnType<typeof countReported>>): FindingCounts {
  const byState = new Map<FindingState, number>();
  const byKind = new Map<FindingKind, number>();
  for (const { kind, state, count } of rows) {
    byState.set(state, (byState.get(state) ?? 0) + count);
    byKind.set(kind, (byKind.get(kind) ?? 0) + count);
  }
  return { byState, byKind };
}
