import type { Attempt, AttemptKind, AttemptState } from "./attempt.js";
import type { Payment, PaymentStatus } from "./payment.js";
import type { RefundStatus } from "./refund.js";

/**
 * What the runs of a key before this one came to. Each has ended as "not performed", or there would be no later one; but
 * one that ended on the word of its row alone may have been sent after all, where the row came from a restored backup,
 * and one whose row was lost and made again by a recovery may have been paid.
 * `harmless`: the provider has said of each that it moves no money and never will. `performed`: one of them did.
 */
export type EarlierRuns = "harmless" | "open" | "performed";

/**
 * No key runs more often, so that all its runs can be looked for where its record is gone. Each run without effect lasts
 * as long as a retry budget: by default an outage of more than three hours under one key.
 */
export const MOST_RUNS = 100;

/** Why a run waits: one before it has not been answered yet. */
export const EARLIER_RUN_OPEN = "earlier_run_open";

/** An earlier run as its rows show it. */
export interface EarlierRun extends Pick<Attempt, "kind" | "state" | "unresolved"> {
  readonly paymentStatus: PaymentStatus;
  /** Of a refund. */
  readonly refundStatus: RefundStatus | null;
}

export function judgeEarlierRuns(runs: readonly EarlierRun[]): EarlierRuns {
  if (runs.some(isPerformed)) return "performed";
  return runs.every(isHarmless) ? "harmless" : "open";
}

function isPerformed({ kind, paymentStatus, refundStatus }: EarlierRun): boolean {
  return kind === "refund"
    ? refundStatus === "succeeded"
    : paymentStatus === "succeeded" || paymentStatus === "authorized";
}

function isHarmless({ kind, state, unresolved, paymentStatus, refundStatus }: EarlierRun): boolean {
  const isOver =
    kind === "refund"
      ? refundStatus === "failed"
      : paymentStatus === "failed" || paymentStatus === "canceled";
  return isOver && state === "completed" && !unresolved;
}

/**
 * Whether a run has to know what came of those before it. A capture or cancel need not: its object is captured or
 * canceled once alone, whoever asks.
 */
export function mindsEarlierRuns({ kind, run }: Pick<Attempt, "kind" | "run">): boolean {
  return run > 1 && (kind === "charge" || kind === "refund");
}

/** A run that stands though its key's record is gone: purged, or lost with a backup. */
export interface FormerRun {
  readonly run: number;
  readonly kind: AttemptKind;
  readonly state: AttemptState;
  readonly unresolved: boolean;
  /** A recovery made it again from its object, so nobody has purged its key's record: it was lost. */
  readonly isRebuilt: boolean;
  readonly payment: Pick<Payment, "status" | "failure">;
}

/** What becomes of a request whose key has no record. */
export type FormerKey<Run extends FormerRun> =
  /** The key is new. */
  | { readonly type: "unknown" }
  /** It has had its effect, or its time. */
  | { readonly type: "used"; readonly run: Run }
  /** What its last run comes to is not known yet. */
  | { readonly type: "open"; readonly run: Run }
  /** Each run is proven to be without effect, as its record would say: this is the next one. */
  | { readonly type: "free"; readonly next: number };

/** A lost record is no reason to hold off a client whose payment is proven not to have been performed. */
export function judgeFormerKey<Run extends FormerRun>(runs: readonly Run[]): FormerKey<Run> {
  const inOrder = runs.toSorted((one, other) => one.run - other.run);
  const last = inOrder.at(-1);
  if (last === undefined) return { type: "unknown" };
  const used = inOrder.findLast((run) => !isOpenAgain(run) && !isFree(run));
  if (used !== undefined) return { type: "used", run: used };
  const open = inOrder.findLast((run) => !isFree(run));
  if (open !== undefined) return { type: "open", run: open };
  return last.run < MOST_RUNS ? { type: "free", next: last.run + 1 } : { type: "used", run: last };
}

function isOpenAgain({ kind, isRebuilt, payment }: FormerRun): boolean {
  return kind === "charge" && isRebuilt && payment.status === "processing";
}

function isFree({ kind, isRebuilt, state, unresolved, payment }: FormerRun): boolean {
  const isOver = state === "completed" && !unresolved && payment.status === "failed";
  return kind === "charge" && isRebuilt && isOver && payment.failure?.retry === "same_key";
}
