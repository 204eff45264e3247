import type { Change, ChargeView } from "./charge-change.js";
import { keyLifetimeIsOver, unchanged } from "./charge-change.js";
import { effectNotPerformed } from "./effect-decisions.js";
import { adoptEffect } from "./effect-facts.js";
import { effectCallOf } from "./effect-view.js";
import type { ReviewResolution } from "./instruction.js";
import type { ChargeStatus, LookupOutcome, ProviderCharge, RefundLookupOutcome } from "./provider.js";
import type { Answered } from "./review-charge.js";
import { carriedOut, carriedOutIfEnded, movesOn, returned, returnedUnsent } from "./review-ends.js";

type Answer = Answered<LookupOutcome | RefundLookupOutcome>;

/** What a person decided about a capture, cancel or refund, where the provider's answer does not settle it by itself. */
export function carryOutForEffect(
  view: ChargeView,
  resolution: Exclude<ReviewResolution, "dismiss">,
  answer: Answer,
): Change {
  switch (resolution) {
    case "adopt_provider_object":
      return adoptTruth(view, answer);
    case "mark_not_performed":
      return markNotPerformed(view, answer);
    case "retry_same_key":
      return sendOnceMore(view, answer);
    case "cancel_at_provider":
      return returnedUnsent(view, answer.own, "only a charge is canceled", answer.note);
  }
}

/** Of a capture or cancel: what became of its object, also where its amount or marker was changed. A refund must match. */
function adoptTruth(view: ChargeView, { outcome, own, note }: Answer): Change {
  if (movesOn(own)) return own;
  if (own.then.type === "end") return carriedOut(view, own);
  const charge = chargeOf(outcome);
  const isFinal = charge?.status === "succeeded" || charge?.status === "canceled";
  if (charge === null || !isFinal || !isOwnObject(view, charge)) return returned(view, own, own.reason);
  const { attempt, payment } = view;
  const asOurs = { ...charge, attemptId: attempt.id, tenantId: attempt.tenantId, amount: payment.amount };
  return carriedOutIfEnded(view, adoptEffect(view, asOurs, note), own);
}

/**
 * The key can perform it no more, and what was read just now does not show it. For a refund that is the complete list
 * of its charge's refunds; of a capture or cancel the object, which can be captured or canceled once alone.
 */
function markNotPerformed(view: ChargeView, { outcome, own, note }: Answer): Change {
  const { attempt } = view;
  const isProven = keyLifetimeIsOver(view, attempt.effectFirstSentAt) && doesNotShow(view, outcome);
  if (!isProven) return returnedUnsent(view, own, own.reason, note);
  return carriedOut(view, effectNotPerformed(view, "mark_not_performed", note));
}

/** Statuses of an object that is not what its capture or cancel wants. */
const NOT_CAPTURED: ReadonlySet<ChargeStatus> = new Set<ChargeStatus>(["authorized"]);
const NOT_CANCELED: ReadonlySet<ChargeStatus> = new Set<ChargeStatus>([
  "created",
  "pending",
  "requires_action",
  "authorized",
  "declined",
]);

function doesNotShow(view: ChargeView, outcome: Answer["outcome"]): boolean {
  const { attempt, refund } = view;
  if (attempt.kind === "refund")
    return outcome.type === "absent" && (refund?.providerRefundId ?? null) === null;
  const charge = chargeOf(outcome);
  const without = attempt.kind === "capture" ? NOT_CAPTURED : NOT_CANCELED;
  return charge !== null && charge.id === attempt.providerPaymentId && without.has(charge.status);
}

/**
 * The machine sends a capture or cancel again by itself. A refund whose key was answered with a stored error it never
 * does: a person may have it sent once more under that same key, which still guards it.
 */
function sendOnceMore(view: ChargeView, { outcome, own, note }: Answer): Change {
  const { attempt } = view;
  if (movesOn(own)) return own;
  const waitsToBeSent = attempt.state === "started" || attempt.state === "send_unknown";
  const isGuarded = !keyLifetimeIsOver(view, attempt.effectFirstSentAt);
  const mayBeSent = attempt.kind === "refund" && waitsToBeSent && isGuarded && doesNotShow(view, outcome);
  if (!mayBeSent) return returned(view, own, own.reason);
  return {
    attemptEvents: [],
    attempt: { ...unchanged(attempt), keySpent: false, waitReason: null },
    paymentEvent: null,
    payment: {},
    reason: "retry_same_key",
    review: null,
    note,
    then: { type: "send", call: effectCallOf(view) },
  };
}

function chargeOf(outcome: Answer["outcome"]): ProviderCharge | null {
  return outcome.type === "found" && "charge" in outcome ? outcome.charge : null;
}

/** By its id; where its marker was changed too, the person need not name it: money is what it shows. */
function isOwnObject({ attempt, payment }: ChargeView, charge: ProviderCharge): boolean {
  const isOwn = charge.id === attempt.providerPaymentId && charge.livemode === attempt.livemode;
  return isOwn && charge.amount !== null && charge.currency === payment.currency;
}
