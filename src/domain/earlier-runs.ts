import type { Attempt } from "./attempt.js";
import type { PaymentStatus } from "./payment.js";
import type { RefundStatus } from "./refund.js";

/**
 * What the runs of a key before this one came to. Each has ended as "not performed", or there would be no later one; but
 * one that ended on the word of its row alone may have been sent after all, where the row came from a restored backup,
 * and one whose row was lost and made again by a recovery may have been paid.
 * `harmless`: the provider has said of each that it moves no money and never will. `performed`: one of them did.
 */
export type EarlierRuns = "harmless" | "open" | "performed";

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
