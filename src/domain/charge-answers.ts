import type { Change, ChargeView, Then, TimelineNote } from "./charge-change.js";
import { budgetIsOver, resolved, rowMayBeRestored, unchanged } from "./charge-change.js";
import { isBeforeObject, notPerformed, underReview, waiting } from "./charge-decisions.js";
import { adopt } from "./charge-facts.js";
import type { Failure } from "./payment.js";
import type { LookupOutcome, ProviderCall, SendOutcome } from "./provider.js";

/** What follows from the answer to a send, or from its absence. */
export function afterSend(view: ChargeView, call: ProviderCall, outcome: SendOutcome): Change {
  const note: TimelineNote = { kind: "send", call, outcome: describeSend(outcome), evidence: outcome.evidence };
  switch (outcome.type) {
    case "object":
      return afterObject(view, call, outcome, note);
    case "declined":
      // A fence cannot be declined, and a replay describes the past: look at the object before believing either.
      if (call !== "confirm" || outcome.replayed) return askNext(view, call, outcome.type, note);
      return refused(view, "DECLINE", outcome.failure, note);
    case "rejected":
      return call === "fence" ? askNext(view, call, "fence_refused", note) : refused(view, "REJECT", outcome.failure, note);
    case "not_performed":
      return waiting(view, {
        reason: outcome.reason,
        note,
        retryAfterMs: outcome.retryAfterMs,
        ...(view.attempt.unresolved && call !== "fence" ? sentAndUnknown(view, call) : refusedUnexecuted(view, call)),
      });
    case "unknown": {
      const unknown = sentAndUnknown(view, call);
      const attempt = { ...unknown.attempt, keySpent: view.attempt.keySpent || outcome.keySpent };
      if (outcome.keySpent || outcome.reason === "state_conflict") {
        const change = askNext(view, call, outcome.reason, note);
        return { ...change, attempt: { ...change.attempt, ...attempt } };
      }
      return waiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs, events: unknown.events, attempt });
    }
  }
}

function afterObject(
  view: ChargeView,
  call: ProviderCall,
  outcome: SendOutcome & { type: "object" },
  note: TimelineNote,
): Change {
  // A fence is believed only when the object, read back, is canceled.
  if (call === "fence") return askNext(view, call, "read_back", note);
  if (call === "confirm") return outcome.replayed ? askNext(view, call, "replayed", note) : adopt(view, outcome.charge, note);
  if (!outcome.replayed) return adopt(view, outcome.charge, note);
  return {
    attemptEvents: ["OBJECT_KNOWN"],
    attempt: { ...resolved(view.attempt), unresolved: true, providerPaymentId: outcome.charge.id, waitReason: "replayed" },
    paymentEvent: null,
    payment: {},
    reason: "create replayed",
    review: null,
    note,
    then: { type: "ask", question: "get" },
  };
}

/** A final refusal. What the provider has of this payment is then closed, since a declined object can be paid later. */
function refused(view: ChargeView, event: "DECLINE" | "REJECT", failure: Failure, note: TimelineNote): Change {
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

function sentAndUnknown(view: ChargeView, call: ProviderCall) {
  return {
    events: call === "fence" ? [] : (["OUTCOME_UNKNOWN"] as const),
    attempt: { unresolved: true, unknownSince: view.attempt.unknownSince ?? view.now },
  };
}

function refusedUnexecuted(view: ChargeView, call: ProviderCall) {
  return {
    events: call === "fence" ? [] : (["REFUSED_UNEXECUTED"] as const),
    attempt: { unresolved: false, unknownSince: view.attempt.unknownSince },
  };
}

function askNext(view: ChargeView, call: ProviderCall, reason: string, note: TimelineNote): Change {
  const unknown = sentAndUnknown(view, call);
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
    outcome: outcome.type === "found" ? `found: ${outcome.charge.status}` : describeLookup(outcome),
    evidence: outcome.evidence,
  };
  switch (outcome.type) {
    case "found":
      return adopt(view, outcome.charge, note);
    case "absent":
      return afterAbsence(view, note);
    case "missing":
      return underReview(view, "provider_object_missing", note);
    case "unanswered": {
      // The row alone proves it: nothing was ever executed, unless the row itself comes from an old backup.
      const provenByRow = view.attempt.state === "started" && budgetIsOver(view) && !rowMayBeRestored(view);
      if (provenByRow) return notPerformed(view, outcome.reason, note);
      return waiting(view, { reason: outcome.reason, note, retryAfterMs: outcome.retryAfterMs });
    }
  }
}

/** A complete list does not have it: a create that is still under way can only leave an object that nobody confirms. */
function afterAbsence(view: ChargeView, note: TimelineNote): Change {
  const { attempt } = view;
  if (!isBeforeObject(attempt.state)) return underReview(view, "provider_object_missing", note);
  if (budgetIsOver(view) || attempt.keySpent) {
    return notPerformed(view, attempt.keySpent ? "provider_key_spent" : "retry_budget_over", note);
  }
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

function describeSend(outcome: SendOutcome): string {
  switch (outcome.type) {
    case "object":
      return `${outcome.replayed ? "replayed " : ""}object: ${outcome.charge.status}`;
    case "declined":
      return `${outcome.replayed ? "replayed " : ""}declined: ${outcome.failure.decline_code ?? outcome.failure.code}`;
    case "rejected":
      return `rejected: ${outcome.failure.code}`;
    case "not_performed":
      return `not performed: ${outcome.reason}`;
    case "unknown":
      return `unknown: ${outcome.reason}`;
  }
}

function describeLookup(outcome: Exclude<LookupOutcome, { type: "found" }>): string {
  return outcome.type === "unanswered" ? `unanswered: ${outcome.reason}` : outcome.type;
}

