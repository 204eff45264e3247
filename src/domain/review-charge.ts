import type { Change, ChargeView, TimelineNote } from "./charge-change.js";
import { keyLifetimeIsOver, resolved } from "./charge-change.js";
import { fence, isBeforeObject, notPerformed, OBJECT_MISSING, waiting } from "./charge-decisions.js";
import { adopt, mismatchOf, takeMoney } from "./charge-facts.js";
import type { ReviewResolution } from "./instruction.js";
import type { LookupOutcome, ProviderCharge } from "./provider.js";
import { isGone } from "./review.js";
import { carriedOut, carriedOutIfEnded, movesOn, returned, returnedUnsent } from "./review-ends.js";
import { canPayment } from "./transition.js";

const FOREIGN = "provider_object_foreign";
const MISMATCH = "provider_amount_mismatch";

/** The question that a person's instruction begins with has been answered, and the machine alone would do `own`. */
export interface Answered<Outcome> {
  readonly outcome: Outcome;
  readonly own: Change;
  readonly note: TimelineNote;
}

/** What a person decided about a charge, from the provider's answer, where that does not settle the review by itself. */
export function carryOutForCharge(
  view: ChargeView,
  resolution: Exclude<ReviewResolution, "dismiss">,
  answered: Answered<LookupOutcome>,
): Change {
  const { outcome, own } = answered;
  const charge = outcome.type === "found" ? outcome.charge : null;
  switch (resolution) {
    case "adopt_provider_object":
      return charge === null ? adoptAbsent(view, own) : adoptObject(view, charge, answered);
    case "cancel_at_provider":
      return charge === null ? cancelAbsent(view, answered) : cancelObject(view, charge, answered);
    case "mark_not_performed":
      return charge === null ? markAbsent(view, answered) : markObject(view, charge, answered);
    case "retry_same_key":
      // The answered question was what it took: whether it may be sent is the machine's to say.
      return movesOn(own) ? own : returned(view, own, own.reason);
  }
}

function adoptAbsent(view: ChargeView, own: Change): Change {
  return movesOn(own) ? own : returned(view, own, own.reason);
}

function adoptObject(
  view: ChargeView,
  charge: ProviderCharge,
  { own, note }: Answered<LookupOutcome>,
): Change {
  if (movesOn(own)) return own;
  // The payment shows the object as it is already.
  if (own.then.type === "end") return carriedOut(view, own);
  const why = whyNotAdopted(view, charge);
  if (why !== null) return returned(view, own, why);
  if (charge.status === "canceled") return adoptCanceled(view, charge, { own, note });
  const event = charge.status === "succeeded" ? "SUCCEED" : "AUTHORIZE";
  return carriedOut(view, withObject(view, charge, takeMoney(view, event, charge, note)));
}

/** A person may take other money than was asked for, and a changed marker; never what our books cannot show. */
function whyNotAdopted(view: ChargeView, charge: ProviderCharge): string | null {
  const { payment } = view;
  const foreign = whyNotOurs(view, charge);
  if (foreign !== null) return foreign;
  if (charge.amount === null || charge.currency !== payment.currency) return MISMATCH;
  const mismatch = mismatchOf(view, charge);
  const isFinal = charge.status === "succeeded" || charge.status === "canceled";
  // A hold that is not this payment's would be in doubt again at the next look.
  if (!isFinal && (charge.status !== "authorized" || mismatch !== null)) {
    return mismatch ?? `provider_object_${charge.status}`;
  }
  return payment.status === "succeeded" ? (mismatch ?? "payment_succeeded") : null;
}

/** An object of ours whose marker was changed is ours by its id, where the person names it; of the other mode never. */
function whyNotOurs({ attempt }: ChargeView, charge: ProviderCharge): string | null {
  const isCommitted = attempt.providerPaymentId === null || attempt.providerPaymentId === charge.id;
  if (!isCommitted || charge.livemode !== attempt.livemode) return FOREIGN;
  const marked =
    (charge.attemptId === null || charge.attemptId === attempt.id) &&
    (charge.tenantId === null || charge.tenantId === attempt.tenantId);
  return marked || attempt.instruction?.providerObjectId === charge.id ? null : FOREIGN;
}

/**
 * Whether an object that only a person knows of may be the attempt's own: it must have been made for it. Null: it may,
 * and what it shows is judged as if the machine had found it. Of another amount, too, it can be canceled.
 */
export function whyNotNamed({ attempt }: ChargeView, charge: ProviderCharge): string | null {
  const isMarked = charge.attemptId === attempt.id && charge.tenantId === attempt.tenantId;
  return isMarked && charge.livemode === attempt.livemode ? null : FOREIGN;
}

/** Read back canceled: nothing can charge it any more, whatever else it shows. */
function adoptCanceled(
  view: ChargeView,
  charge: ProviderCharge,
  { own, note }: Pick<Answered<LookupOutcome>, "own" | "note">,
): Change {
  const { attempt, payment } = view;
  const asOurs = { ...charge, attemptId: attempt.id, tenantId: attempt.tenantId, amount: payment.amount };
  return carriedOutIfEnded(view, adopt(view, { ...asOurs, currency: payment.currency }, note), own);
}

/** Nothing is there to cancel. A create that may still be under way has until its budget ends, and is not sent again. */
function cancelAbsent(view: ChargeView, { outcome, own, note }: Answered<LookupOutcome>): Change {
  if (outcome.type !== "absent" || own.then.type !== "send") return returned(view, own, own.reason);
  return waiting(view, { reason: "cancel_at_provider", note });
}

/** What the answer to a fence leaves as its reason; a cancel that had one of these and no effect is not sent for ever. */
const FENCE_ANSWERED: ReadonlySet<string | null> = new Set([
  "read_back",
  "declined",
  "fence_refused",
  "state_conflict",
]);

function cancelObject(
  view: ChargeView,
  charge: ProviderCharge,
  { own, note }: Answered<LookupOutcome>,
): Change {
  const { attempt } = view;
  const foreign = whyNotOurs(view, charge);
  if (foreign !== null) return returnedUnsent(view, own, foreign, note);
  if (charge.status === "canceled") return adoptCanceled(view, charge, { own, note });
  if (charge.status === "succeeded") return returned(view, own, "provider_object_succeeded");
  if (own.then.type === "send" && own.then.call === "fence") return own;
  const isAnswered = attempt.state === "fencing" && FENCE_ANSWERED.has(attempt.waitReason);
  if (isAnswered && !attempt.keySpent) return returned(view, own, "cancel_without_effect");
  const events = isBeforeObject(attempt.state) ? (["OBJECT_KNOWN"] as const) : [];
  return withObject(view, charge, fence(view, events, note, "cancel_at_provider"));
}

/** A complete list has none, at a time when no key of ours can make one any more. */
function markAbsent(view: ChargeView, { outcome, own, note }: Answered<LookupOutcome>): Change {
  const { attempt, payment } = view;
  // It had one, which the provider does not know any more; that is no proof for a second run of the key.
  if (outcome.type === "absent" && !isBeforeObject(attempt.state) && isGone(view)) {
    return carriedOut(view, closedWithoutObject(view, note));
  }
  const isProven =
    outcome.type === "absent" &&
    isBeforeObject(attempt.state) &&
    keyLifetimeIsOver(view, attempt.createFirstSentAt) &&
    canPayment(payment.status, "NOT_PERFORMED");
  if (!isProven) return returnedUnsent(view, own, own.reason, note);
  return carriedOut(view, notPerformed(view, "mark_not_performed", note));
}

/** Failed for good, and the order id stays held: should the object come back paid, the payment can still show it. */
function closedWithoutObject(view: ChargeView, note: TimelineNote): Change {
  const isOpen = canPayment(view.payment.status, "REJECT");
  return {
    attemptEvents: ["END"],
    attempt: resolved(view.attempt),
    paymentEvent: isOpen ? "REJECT" : null,
    payment: {
      nextAction: null,
      amountCapturable: 0,
      authorizedUntil: null,
      failure: {
        code: OBJECT_MISSING,
        decline_code: null,
        advice_code: null,
        message: "The provider does not know the payment's object any more; a person has ended the payment.",
        retry: "new_key",
      },
    },
    reason: OBJECT_MISSING,
    review: null,
    note,
    then: { type: "end" },
  };
}

function markObject(view: ChargeView, charge: ProviderCharge, answered: Answered<LookupOutcome>): Change {
  const { own, note } = answered;
  if (charge.status === "canceled" && whyNotOurs(view, charge) === null) {
    return adoptCanceled(view, charge, answered);
  }
  if (own.then.type === "send" && own.then.call === "fence") return own;
  return returnedUnsent(view, own, `provider_object_${charge.status}`, note);
}

/** With the object's id, where it is not committed yet. */
function withObject({ attempt }: ChargeView, charge: ProviderCharge, change: Change): Change {
  if (attempt.providerPaymentId !== null) return change;
  return { ...change, attempt: { ...change.attempt, providerPaymentId: charge.id } };
}
