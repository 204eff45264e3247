import type { Change, ChargeView, Then, TimelineNote } from "./charge-change.js";
import { budgetIsOver, provenByRow, resolved, unchanged } from "./charge-change.js";
import {
  isBeforeObject,
  isKeyMismatch,
  KEY_MISMATCH,
  notPerformed,
  notPerformedByRow,
  OBJECT_MISSING,
  supersededByEarlierRun,
  underReview,
  waiting,
} from "./charge-decisions.js";
import { adopt } from "./charge-facts.js";
import { describeLookup, describeSend } from "./describe-outcome.js";
import { EARLIER_RUN_OPEN } from "./earlier-runs.js";
import type { Failure } from "./payment.js";
import type { ChargeCall, LookupOutcome, SendOutcome } from "./provider.js";

/** What follows from the answer to a send, or from its absence. */
export function afterSend(view: ChargeView, call: ChargeCall, outcome: SendOutcome): Change {
  const note: TimelineNote = {
    kind: "send",
    call,
    outcome: describeSend(outcome),
    evidence: outcome.evidence,
  };
  switch (outcome.type) {
    case "object":
      return afterObject(view, call, outcome, note);
    case "declined":
      // A fence cannot be declined, and a replay describes the past: look at the object before believing either.
      if (call === "fence" || outcome.replayed)
        return askNext(view, call, outcome.type, note, outcome.replayed);
      return refused(view, "DECLINE", outcome.failure, note);
    case "rejected":
      return call === "fence"
        ? lookAgain(view, call, "fence_refused", note)
        : refused(view, "REJECT", outcome.failure, note);
    case "not_performed": {
      // A refusal says nothing of an earlier unknown send, and each further fence is asked about first.
      const inDoubt = view.attempt.unresolved || call === "fence";
      const left = inDoubt ? sentAndUnknown(view, call) : { events: ["REFUSED_UNEXECUTED"] as const };
      return waiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs, ...left });
    }
    case "unknown": {
      if (outcome.keySpent) return askNext(view, call, outcome.reason, note, true);
      if (outcome.reason === "state_conflict") return lookAgain(view, call, outcome.reason, note);
      const left = sentAndUnknown(view, call);
      return waiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs, ...left });
    }
  }
}

function afterObject(
  view: ChargeView,
  call: ChargeCall,
  outcome: SendOutcome & { type: "object" },
  note: TimelineNote,
): Change {
  // A fence is believed only when the object, read back, is canceled.
  if (call === "fence") return askNext(view, call, "read_back", note, outcome.replayed);
  if (call === "confirm" && outcome.replayed) return askNext(view, call, "replayed", note, true);
  if (call === "confirm" || !outcome.replayed) return adopt(view, outcome.charge, note);
  return {
    attemptEvents: ["OBJECT_KNOWN"],
    attempt: {
      ...resolved(view.attempt),
      unresolved: true,
      providerPaymentId: outcome.charge.id,
      waitReason: "replayed",
    },
    paymentEvent: null,
    payment: {},
    reason: "create replayed",
    review: null,
    note,
    then: { type: "ask", question: "get" },
  };
}

/** A final refusal. What the provider has of this payment is then closed, since a declined object can be paid later. */
function refused(
  view: ChargeView,
  event: "DECLINE" | "REJECT",
  failure: Failure,
  note: TimelineNote,
): Change {
  const hasObject = view.attempt.providerPaymentId !== null;
  const reason = event === "DECLINE" ? "declined" : "rejected";
  const then: Then = hasObject ? { type: "send", call: "fence" } : { type: "end" };
  return {
    attemptEvents: hasObject ? [] : ["END"],
    attempt: resolved(view.attempt),
    paymentEvent: event,
    payment: { failure, nextAction: null, ...(hasObject ? {} : { releaseOrderId: true as const }) },
    reason,
    review: null,
    note,
    then,
  };
}

/** `spendsKey`: the answer is all that this call's key will ever bring. */
function sentAndUnknown(view: ChargeView, call: ChargeCall, spendsKey = false) {
  const { attempt, now } = view;
  return {
    events: call === "fence" ? [] : (["OUTCOME_UNKNOWN"] as const),
    attempt: {
      unresolved: true,
      keySpent: attempt.keySpent || spendsKey,
      unknownSince: attempt.unknownSince ?? now,
    },
  };
}

/** The object is not where the call expects it. A fence for which that is not the first time waits, so that none spins. */
function lookAgain(view: ChargeView, call: ChargeCall, reason: string, note: TimelineNote): Change {
  if (call !== "fence" || view.attempt.waits === 0) return askNext(view, call, reason, note);
  return waiting(view, { reason, note, ...sentAndUnknown(view, call) });
}

function askNext(
  view: ChargeView,
  call: ChargeCall,
  reason: string,
  note: TimelineNote,
  spendsKey = false,
): Change {
  const unknown = sentAndUnknown(view, call, spendsKey);
  return {
    attemptEvents: unknown.events,
    attempt: { ...unchanged(view.attempt), ...unknown.attempt, waitReason: reason },
    paymentEvent: null,
    payment: {},
    reason,
    review: null,
    note,
    then: { type: "ask", question: call === "create" ? "find" : "get" },
  };
}

/** What follows from the answer to a question. */
export function afterLookup(view: ChargeView, question: "find" | "get", outcome: LookupOutcome): Change {
  const note: TimelineNote = {
    kind: "question",
    call: question,
    outcome: describeLookup(outcome),
    evidence: outcome.evidence,
  };
  switch (outcome.type) {
    case "found":
      return adopt(view, outcome.charge, note);
    case "absent":
      return afterAbsence(view, note);
    case "missing":
      return underReview(view, OBJECT_MISSING, note);
    case "unanswered":
      if (provenByRow(view)) return notPerformedByRow(view, outcome.reason, note);
      return waiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs });
  }
}

/** A complete list does not have it: a create that is still under way can only leave an object that nobody confirms. */
function afterAbsence(view: ChargeView, note: TimelineNote): Change {
  const { attempt } = view;
  if (attempt.state === "completed") return nothingNew(view);
  if (!isBeforeObject(attempt.state)) return underReview(view, OBJECT_MISSING, note);
  // The provider has just said that this key was used for other parameters: an object of ours exists somewhere.
  if (isKeyMismatch(attempt.waitReason)) return underReview(view, KEY_MISMATCH, note);
  if (view.earlierRuns === "performed") return supersededByEarlierRun(view, note);
  if (budgetIsOver(view) || attempt.keySpent) {
    return notPerformed(view, attempt.keySpent ? "provider_key_spent" : "retry_budget_over", note);
  }
  if (view.earlierRuns === "open") return waiting(view, { reason: EARLIER_RUN_OPEN, note });
  return {
    attemptEvents: [],
    attempt: { ...unchanged(attempt), waitReason: null },
    paymentEvent: null,
    payment: {},
    reason: "create again, same key",
    review: null,
    note,
    then: { type: "send", call: "create" },
  };
}

/** Looked at again, and there is nothing to add. */
export function nothingNew(view: ChargeView): Change {
  return {
    attemptEvents: [],
    attempt: resolved(view.attempt),
    paymentEvent: null,
    payment: {},
    reason: "nothing_new",
    review: null,
    note: null,
    then: { type: "end" },
  };
}
