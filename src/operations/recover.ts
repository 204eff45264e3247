import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { type FoundDifference, insertRun, listRunning, type Run } from "../store/reconciliation.js";
import {
  countUnanswered,
  endRecoveryByHand,
  isComparedInRecovery,
  listUncomparedAccounts,
  readNewestTrace,
  readOldestMissing,
} from "../store/recovery.js";
import type { Deps } from "./deps.js";
import type { HeldRun, PhaseStep, Position } from "./reconcile-run.js";
import { TIMELINE_CHANGED } from "./recovery-watch.js";

/** Clocks of processes and of the provider, and statements that took long, lie within it. */
const TRACE_MARGIN_MS = 3_600_000;
/** Between the change of the database and its being noticed, processes may have accepted, and compared. */
const NOTICED_WITHIN_MS = 300_000;
/** A UUIDv7 begins with the milliseconds since 1970. */
const ID_TIME = /^[a-z]+_([0-9a-f]{12})/;
const NO_FINDINGS: readonly FoundDifference[] = [];

/**
 * Nothing is sent from here on, every open attempt is asked about, and what the provider made since then is compared and
 * taken in; yields the comparison's id. One that reaches as far back and is under way is gone on with.
 */
export async function beginRecoverySince(deps: Deps, account: string, since: Date): Promise<string> {
  await deps.recovery.begin("asked_for", null);
  return joinOrStart(deps, account, since);
}

/**
 * Where a standby was promoted, the recovery begins by itself, from the latest time before it of which the data still
 * tells: not what was written since, nor a comparison of this recovery that has failed. Data that stands in another
 * cluster or database may be a copy beside the original: there a person says `pawl recover`.
 */
export async function startDueRecovery(deps: Deps, account: string): Promise<void> {
  if (deps.recovery.current()?.reason !== TIMELINE_CHANGED) return;
  const running = await runningRecoveries(deps, account);
  if (running.length > 0) return;
  // It has done its part, and another account's is awaited.
  const named = { provider: deps.provider.name, account };
  if (await withDatabase(() => isComparedInRecovery(deps.db.sql, named))) return;
  // Another process may have ended it since this one looked last.
  await deps.recovery.check();
  const current = deps.recovery.current();
  if (current?.reason !== TIMELINE_CHANGED) return;
  await joinOrStart(deps, account, await readLatestSince(deps, current.since));
}

/**
 * What a recovery that a person asks for begins from: the time that they name, or the latest of which the data itself
 * surely tells, where they name a later one. Commits are lost from the end, so what is missing was made after that.
 * Asked while the recovery is under way.
 */
export async function sinceToldOf(deps: Deps, named: Date): Promise<Date> {
  const noticedAt = deps.recovery.current()?.since ?? deps.clock.now();
  const latest = await readLatestSince(deps, noticedAt);
  return named > latest ? latest : named;
}

/** Not from what was written since the change of the database, nor by processes that had not noticed it yet. */
async function readLatestSince(deps: Deps, noticedAt: Date): Promise<Date> {
  const noticedWithinMs = Math.max(NOTICED_WITHIN_MS, 2 * deps.settings.databaseCheckIntervalMs);
  const before = new Date(noticedAt.getTime() - noticedWithinMs);
  const trace = await withDatabase(() => readNewestTrace(deps.db.sql, before));
  const newest = Math.max(trace.at.getTime(), timeOfId(trace.paymentId));
  return new Date(newest - TRACE_MARGIN_MS);
}

async function joinOrStart(deps: Deps, account: string, since: Date): Promise<string> {
  const running = await runningRecoveries(deps, account);
  const joined = running.find(({ windowFrom }) => windowFrom.getTime() <= since.getTime());
  if (joined !== undefined) return joined.id;
  const id = newId("rec");
  const named = { provider: deps.provider.name, account };
  const missing = await withDatabase(() => readOldestMissing(deps.db.sql, named));
  await withDatabase(() =>
    insertRun(deps.db.sql, {
      ...named,
      id,
      trigger: "recover",
      // With what earlier comparisons have found missing, so that what was done about it since is taken in behind it.
      windowFrom: missing !== null && missing < since ? missing : since,
      windowTo: new Date(deps.clock.now().getTime() + TRACE_MARGIN_MS),
      phase: "charges",
    }),
  );
  return id;
}

/** Those of the present recovery: an older one's came with the data. */
async function runningRecoveries(deps: Deps, account: string): Promise<Run[]> {
  const running = await withDatabase(() => listRunning(deps.db.sql, deps.provider.name, account));
  const since = deps.recovery.current()?.since.getTime() ?? 0;
  return running.filter(({ trigger, startedAt }) => trigger === "recover" && startedAt.getTime() >= since);
}

/** A step of a recovery that waits until every open attempt has been asked about, and has had an answer. */
export async function waitForAttempts({ deps }: HeldRun, position: Position): Promise<PhaseStep> {
  const unanswered = await withDatabase(() => countUnanswered(deps.db.sql));
  if (unanswered === 0) return { objects: 0, findings: NO_FINDINGS, position: null };
  deps.log.info({ unanswered }, "recovering: attempts that have had no answer yet");
  const since = position.since ?? deps.clock.now().toISOString();
  return { objects: 0, findings: NO_FINDINGS, position: { ...position, since, failures: 0 }, waits: true };
}

/** Accounts that the recovery under way waits for: a process with the credential of each has to compare what it has. */
export async function accountsAwaited(deps: Pick<Deps, "db" | "account">): Promise<readonly string[]> {
  const own = deps.account.current();
  if (own.type !== "known") return [];
  return withDatabase(() => listUncomparedAccounts(deps.db.sql, own.accountId));
}

/** For the operator who knows better. False: no recovery was under way. */
export async function endRecoveryNow(deps: Pick<Deps, "db" | "log">, reason: string): Promise<boolean> {
  const ended = await withDatabase(() => endRecoveryByHand(deps.db.sql, reason));
  if (ended) deps.log.warn({ reason }, "recovery ended by hand");
  return ended;
}

function timeOfId(id: string | null): number {
  const digits = id === null ? null : ID_TIME.exec(id);
  return digits?.[1] === undefined ? 0 : Number.parseInt(digits[1], 16);
}
