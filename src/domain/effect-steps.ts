import type { Change, ChargeView, Then, TimelineNote } from "./charge-change.js";
import { keyLifetimeIsOver, provenByRow, unchanged } from "./charge-change.js";
import { type AccountView, accountDiffers, waitsForEarlierRun } from "./charge-steps.js";
import { EARLIER_RUN_OPEN } from "./earlier-runs.js";
import { effectNotPerformedByRow, effectUnderReview, effectWaiting } from "./effect-decisions.js";
import { effectCallOf, questionOf } from "./effect-view.js";

/**
 * What a worker does first with a claimed capture, cancel or refund. `markedNow`: the claim itself recorded that the
 * call is about to be sent; without it, `sending` was left by a worker that died or lost its lease.
 */
export function firstEffectStep(view: ChargeView, account: AccountView, markedNow: boolean): Then | Change {
  const { attempt } = view;
  const barred = barredByAccount(view, account);
  if (barred !== null) return barred;
  switch (attempt.state) {
    case "sending":
      return markedNow ? { type: "send", call: effectCallOf(view) } : effectLeftUnknown(view);
    case "started":
      return waitsForEarlierRun(view)
        ? effectWaiting(view, { reason: EARLIER_RUN_OPEN, note: null })
        : { type: "ask", question: questionOf(view) };
    case "send_unknown":
    case "following":
    case "completed":
      return { type: "ask", question: questionOf(view) };
    case "creating":
    case "create_unknown":
    case "charge_created":
    case "confirming":
    case "confirm_unknown":
    case "fencing":
      throw new Error(`attempt ${attempt.id} of a ${attempt.kind} is in ${attempt.state}`);
  }
}

/** Another account or mode never sends and never asks, save for an object's own account under a rotated key. */
function barredByAccount(view: ChargeView, account: AccountView): Change | Then | null {
  const { attempt } = view;
  if (account.type === "known") {
    const difference = accountDiffers(view, account);
    if (difference === "none") return null;
    if (difference === "credential") {
      return attempt.state === "sending"
        ? effectLeftUnknown(view)
        : { type: "ask", question: questionOf(view) };
    }
    return effectUnderReview(view, "provider_account_changed", null);
  }
  if (provenByRow(view)) return effectNotPerformedByRow(view, account.reason, null);
  const { reason } = account;
  return attempt.state === "sending"
    ? effectWaiting(view, {
        reason,
        note: null,
        events: ["OUTCOME_UNKNOWN"],
        attempt: { unresolved: true, unknownSince: attempt.unknownSince ?? view.now },
      })
    : effectWaiting(view, { reason, note: null });
}

/**
 * A pause came between the decision to send and the send: the key may have been forgotten since its first use, and an
 * earlier request have landed. Left unknown, it is asked about instead.
 */
export function effectIsLate(view: ChargeView): boolean {
  return keyLifetimeIsOver(view, view.attempt.effectFirstSentAt);
}

export function effectLeftUnknown(view: ChargeView): Change {
  const note: TimelineNote = {
    kind: "send",
    call: effectCallOf(view),
    outcome: "unknown: worker_lost",
    evidence: null,
  };
  return {
    attemptEvents: ["OUTCOME_UNKNOWN"],
    attempt: {
      ...unchanged(view.attempt),
      unresolved: true,
      waitReason: "worker_lost",
      unknownSince: view.attempt.unknownSince ?? view.now,
    },
    paymentEvent: null,
    payment: {},
    reason: "worker_lost",
    review: null,
    note,
    then: { type: "ask", question: questionOf(view) },
  };
}
