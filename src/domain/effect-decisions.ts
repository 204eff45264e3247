import type { Change, ChargeView, EffectAnswer, TimelineNote } from "./charge-change.js";
import { budgetIsOver, keyLifetimeIsOver, resolved, unchanged } from "./charge-change.js";
import { askedAboutAfterwards, type WaitFor, waiting } from "./charge-decisions.js";
import { EARLIER_RUN_OPEN } from "./earlier-runs.js";
import { effectCallOf } from "./effect-view.js";
import type { Failure } from "./payment.js";
import type { ReviewReason } from "./review-reason.js";
import { canRefund } from "./transition.js";

/** The provider answered that the object is not where the call expects it; asked, it did not show the effect. */
export const STATE_CONFLICT = "state_conflict";

/** Try or ask again later. Where a review opens beside it, a refund shows that. */
export function effectWaiting(view: ChargeView, wait: WaitFor): Change {
  const change = waiting(view, wait);
  return change.review === null ? change : { ...change, ...refundReview(view) };
}

/** A person must look. The attempt keeps its state and is asked about again later. */
export function effectUnderReview(view: ChargeView, reason: ReviewReason, note: TimelineNote | null): Change {
  const { attempt } = view;
  const inFlight = attempt.state === "sending";
  const change = waiting(view, {
    reason,
    note,
    events: inFlight ? ["OUTCOME_UNKNOWN"] : [],
    attempt: {
      unresolved: attempt.unresolved || inFlight,
      unknownSince: attempt.unknownSince ?? view.now,
    },
  });
  return { ...change, review: reason, ...refundReview(view) };
}

function refundReview({ refund }: ChargeView): Pick<Change, "refund"> {
  return refund !== null && canRefund(refund.status, "REVIEW") ? { refund: { event: "REVIEW" } } : {};
}

/** Nothing is left to do, and the request has its answer. */
export function effectEnded(
  view: ChargeView,
  answer: EffectAnswer,
  reason: string,
  note: TimelineNote | null,
): Change {
  return {
    attemptEvents: ["END"],
    attempt: resolved(view.attempt),
    paymentEvent: null,
    payment: { effectEnded: true },
    answer,
    reason,
    review: null,
    note,
    then: { type: "end" },
  };
}

/** A final refusal without effect: the payment stays as it is, a refund has failed. */
export function effectRefused(
  view: ChargeView,
  answer: EffectAnswer & { type: "refused" },
  failure: Failure,
  note: TimelineNote | null,
): Change {
  const change = effectEnded(view, answer, "refused", note);
  return view.refund === null ? change : { ...change, refund: { event: "FAIL", failure } };
}

/** Proven to be without effect: every send was refused before execution, and the budget is over. */
export function effectNotPerformed(view: ChargeView, reason: string, note: TimelineNote | null): Change {
  const change = effectEnded(view, { type: "not_performed" }, reason, note);
  if (view.refund === null) return change;
  const failure: Failure = {
    code: "provider_unavailable",
    decline_code: null,
    advice_code: null,
    message: "The provider did not make the refund in time; nothing was refunded.",
    retry: "same_key",
  };
  return { ...change, refund: { event: "FAIL", failure } };
}

/** As notPerformedByRow has it. A capture or cancel is not asked about: its charge's own look finds what it did. */
export function effectNotPerformedByRow(view: ChargeView, reason: string, note: TimelineNote | null): Change {
  const change = effectNotPerformed(view, reason, note);
  return view.refund === null ? change : { ...change, ...askedAboutAfterwards(view, reason) };
}

/** An earlier run of the key has given the money back after all: this one ends, and nothing is sent for it. */
function refundSuperseded(view: ChargeView, note: TimelineNote): Change {
  const detail = "An earlier refund with this Idempotency-Key was made after all; this one was not.";
  const failure: Failure = {
    code: "earlier_run_performed",
    decline_code: null,
    advice_code: null,
    message: detail,
    retry: "new_key",
  };
  const answer = { type: "refused", code: "invalid_state", detail } as const;
  return { ...effectRefused(view, answer, failure, note), reason: failure.code };
}

/** What the call came to is not told by this. */
export function stillUnknown({ attempt, now }: ChargeView) {
  const inFlight = attempt.state === "sending";
  return {
    events: inFlight ? (["OUTCOME_UNKNOWN"] as const) : [],
    attempt: { unresolved: attempt.unresolved || inFlight, unknownSince: attempt.unknownSince ?? now },
  };
}

/**
 * The effect is not visible. It is sent again under the same key while that guards it; past the budget it has failed
 * where every send was refused before execution. A stored error is the key's last word: a capture or cancel then gets
 * another key, since its object can be captured or canceled once alone; a refund never does.
 */
export function sendAgain(view: ChargeView, note: TimelineNote): Change {
  const { attempt } = view;
  // The answer to the send itself shows no effect: only a question can tell whether there is one.
  if (attempt.state === "sending") {
    return effectWaiting(view, { reason: "sent_without_effect", note, ...stillUnknown(view) });
  }
  if (attempt.state === "following" || attempt.state === "completed") {
    return effectWaiting(view, { reason: "provider_went_back", note });
  }
  if (view.earlierRuns === "performed") return refundSuperseded(view, note);
  if (!attempt.unresolved && budgetIsOver(view)) return effectNotPerformed(view, "retry_budget_over", note);
  if (view.earlierRuns === "open") return effectWaiting(view, { reason: EARLIER_RUN_OPEN, note });
  if (attempt.unresolved && keyLifetimeIsOver(view, attempt.effectFirstSentAt)) {
    return effectUnderReview(view, "provider_key_lifetime_over", note);
  }
  if (attempt.keySpent && attempt.kind === "refund") {
    return effectUnderReview(view, "provider_key_spent", note);
  }
  // The provider has just refused it for the object's state: at once it would refuse it again.
  if (attempt.waitReason === STATE_CONFLICT) {
    return effectWaiting(view, { reason: "state_conflict_unseen", note });
  }
  return {
    attemptEvents: [],
    attempt: {
      ...unchanged(attempt),
      keySpent: false,
      fenceRound: attempt.keySpent ? attempt.fenceRound + 1 : attempt.fenceRound,
      waitReason: null,
    },
    paymentEvent: null,
    payment: {},
    reason: attempt.keySpent ? "send again, next key" : "send again, same key",
    review: null,
    note,
    then: { type: "send", call: effectCallOf(view) },
  };
}
