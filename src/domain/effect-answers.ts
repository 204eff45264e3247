import { nothingNew } from "./charge-answers.js";
import type { Change, ChargeView, Question, TimelineNote } from "./charge-change.js";
import { provenByRow, unchanged } from "./charge-change.js";
import { OBJECT_MISSING } from "./charge-decisions.js";
import { describeLookup, describeSend } from "./describe-outcome.js";
import {
  effectNotPerformedByRow,
  effectRefused,
  effectUnderReview,
  effectWaiting,
  STATE_CONFLICT,
  sendAgain,
} from "./effect-decisions.js";
import { adoptEffect, adoptRefund } from "./effect-facts.js";
import { effectCallOf, questionOf } from "./effect-view.js";
import type { Failure } from "./payment.js";
import type { LookupOutcome, RefundLookupOutcome, RefundSendOutcome, SendOutcome } from "./provider.js";

/** What follows from the answer to a capture, cancel or refund, or from its absence. */
export function afterEffectSend(view: ChargeView, outcome: SendOutcome | RefundSendOutcome): Change {
  const note: TimelineNote = {
    kind: "send",
    call: effectCallOf(view),
    outcome: describeSend(outcome),
    evidence: outcome.evidence,
  };
  switch (outcome.type) {
    case "object":
      // A replay describes the past: the object is fetched before it is believed.
      return outcome.replayed
        ? askNext(view, "replayed", note, { unresolved: true, keySpent: true })
        : adoptEffect(view, outcome.charge, note);
    case "refund":
      return outcome.replayed
        ? withRefundId(askNext(view, "replayed", note, { unresolved: true }), outcome.refund.id)
        : adoptRefund(view, outcome.refund, note);
    case "declined":
      return outcome.replayed || view.attempt.unresolved || view.attempt.kind === "cancel"
        ? askNext(view, "declined", note, { unresolved: true, keySpent: true })
        : refusedByProvider(view, "payment_declined", outcome.failure, note);
    case "rejected":
      return refusedByProvider(view, "payment_rejected", outcome.failure, note);
    case "not_performed": {
      // A refusal says nothing of an earlier unknown send.
      const wait = { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs };
      return view.attempt.unresolved
        ? effectWaiting(view, { ...wait, ...leftUnknown(view) })
        : effectWaiting(view, { ...wait, events: ["REFUSED_UNEXECUTED"] });
    }
    case "unknown":
      if (outcome.keySpent) {
        return askNext(view, outcome.reason, note, { unresolved: true, keySpent: true });
      }
      // Refused for the object's state: this send had no effect, and the object tells why.
      if (outcome.reason === "state_conflict") return askNext(view, STATE_CONFLICT, note, {});
      return effectWaiting(view, {
        reason: outcome.reason,
        note,
        retryAfterMs: outcome.retryAfterMs,
        ...leftUnknown(view),
      });
  }
}

/** What follows from the answer to a question: about a refund, or about the charge of a capture or cancel. */
export function afterEffectLookup(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): Change {
  const note: TimelineNote = {
    kind: "question",
    call: question,
    outcome: describeLookup(outcome),
    evidence: outcome.evidence,
  };
  switch (outcome.type) {
    case "found":
      return "charge" in outcome
        ? adoptEffect(view, outcome.charge, note)
        : adoptRefund(view, outcome.refund, note);
    case "absent":
      return afterAbsence(view, note);
    case "missing":
      return effectUnderReview(view, OBJECT_MISSING, note);
    case "unanswered":
      if (provenByRow(view)) return effectNotPerformedByRow(view, outcome.reason, note);
      return effectWaiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs });
  }
}

/** A complete list of the charge's refunds is without this one. */
function afterAbsence(view: ChargeView, note: TimelineNote): Change {
  const { attempt } = view;
  if (attempt.state === "completed") {
    return nothingNew(view);
  }
  // Its one send was refused since the provider has no more to give back, and no other can be under way.
  if (attempt.waitReason === STATE_CONFLICT && !attempt.unresolved) {
    const message = "The provider has less left to refund than this.";
    const failure: Failure = {
      code: "amount_too_large",
      decline_code: null,
      advice_code: null,
      message,
      retry: "new_key",
    };
    return effectRefused(view, { type: "refused", code: "amount_too_large", detail: message }, failure, note);
  }
  return sendAgain(view, note);
}

/** What the provider calls a charge that its holder disputes, in answer to a refund (docs.stripe.com/error-codes). */
const DISPUTED: ReadonlySet<string> = new Set(["charge_disputed", "refund_disputed_payment"]);

function refusedByProvider(
  view: ChargeView,
  code: "payment_declined" | "payment_rejected",
  failure: Failure,
  note: TimelineNote,
): Change {
  const isDisputed = DISPUTED.has(failure.code);
  const detail = isDisputed
    ? "The payment is disputed: the provider refunds nothing of it."
    : (failure.message ?? "The provider gave no reason.");
  const answer = { type: "refused", code: isDisputed ? "invalid_state" : code, detail } as const;
  return effectRefused(view, answer, failure, note);
}

function leftUnknown({ attempt, now }: ChargeView) {
  return {
    events: ["OUTCOME_UNKNOWN"] as const,
    attempt: { unresolved: true, unknownSince: attempt.unknownSince ?? now },
  };
}

function askNext(
  view: ChargeView,
  reason: string,
  note: TimelineNote,
  patch: { readonly unresolved?: boolean; readonly keySpent?: boolean },
): Change {
  const { attempt, now } = view;
  return {
    attemptEvents: ["OUTCOME_UNKNOWN"],
    attempt: {
      ...unchanged(attempt),
      ...patch,
      waitReason: reason,
      unknownSince: attempt.unknownSince ?? now,
    },
    paymentEvent: null,
    payment: {},
    reason,
    review: null,
    note,
    then: { type: "ask", question: questionOf(view) },
  };
}

/** Its id is known from here on: it is what is asked about, also after a crash. */
function withRefundId(change: Change, providerRefundId: string): Change {
  return {
    ...change,
    refund: { event: null, providerRefundId },
    then: { type: "ask", question: "get_refund" },
  };
}
