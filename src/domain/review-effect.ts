import type { Change, ChargeView } from "./charge-change.js";
import { keyLifetimeIsOver, unchanged } from "./charge-change.js";
import { OBJECT_MISSING } from "./charge-decisions.js";
import { effectNotPerformed, effectRefused } from "./effect-decisions.js";
import { adoptEffect, adoptRefund } from "./effect-facts.js";
import { effectCallOf } from "./effect-view.js";
import type { ReviewResolution } from "./instruction.js";
import type {
  ChargeStatus,
  LookupOutcome,
  ProviderCharge,
  ProviderRefund,
  RefundLookupOutcome,
} from "./provider.js";
import { isGone } from "./review.js";
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

/**
 * Of a capture or cancel: what became of its object, also where its amount or marker was changed. Of a refund: what it is,
 * also where its marker was changed; its amount must match.
 */
function adoptTruth(view: ChargeView, { outcome, own, note }: Answer): Change {
  if (movesOn(own)) return own;
  if (own.then.type === "end") return carriedOut(view, own);
  const refund = ownRefundOf(view, outcome);
  if (refund !== null) return carriedOutIfEnded(view, adoptRefund(view, refund, note), own);
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
  const wasMade = (view.refund?.providerRefundId ?? null) !== null;
  return carriedOut(
    view,
    wasMade ? refundGone(view, note) : effectNotPerformed(view, "mark_not_performed", note),
  );
}

/** The provider had it, and does not know it any more: failed for good, since that is no proof for a second run. */
function refundGone(view: ChargeView, note: Answer["note"]): Change {
  const message = "The provider does not know the refund any more; a person has ended it.";
  const failure = {
    code: OBJECT_MISSING,
    decline_code: null,
    advice_code: null,
    message,
    retry: "new_key",
  } as const;
  return effectRefused(view, { type: "refused", code: "refund_failed", detail: message }, failure, note);
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
  if (attempt.kind === "refund") {
    return outcome.type === "absent" && (isGone(view) || (refund?.providerRefundId ?? null) === null);
  }
  if (outcome.type === "missing") return true;
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

/** Of this charge by its id, whatever its marker says by now: as this attempt's own. Its amount must still match. */
function ownRefundOf({ attempt, refund }: ChargeView, outcome: Answer["outcome"]): ProviderRefund | null {
  if (outcome.type !== "found" || !("refund" in outcome)) return null;
  const { refund: found } = outcome;
  const isOwn = found.id === refund?.providerRefundId && found.chargeId === attempt.providerPaymentId;
  return isOwn ? { ...found, attemptId: attempt.id, tenantId: attempt.tenantId } : null;
}

/** By its id; where its marker was changed too, the person need not name it: money is what it shows. */
function isOwnObject({ attempt, payment }: ChargeView, charge: ProviderCharge): boolean {
  const isOwn = charge.id === attempt.providerPaymentId && charge.livemode === attempt.livemode;
  return isOwn && charge.amount !== null && charge.currency === payment.currency;
}
