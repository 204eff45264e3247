import type { AttemptEventType } from "./attempt-machine.js";
import type { Change, ChargeView, TimelineNote } from "./charge-change.js";
import { customerIsLate, resolved } from "./charge-change.js";
import {
  confirmOrFence,
  fence,
  followMs,
  heldMs,
  isBeforeObject,
  notPerformed,
  PAID_AFTER_END,
  underReview,
  waiting,
} from "./charge-decisions.js";
import { describeObject } from "./describe-outcome.js";
import type { CancellationReason } from "./payment.js";
import type { PaymentEventType } from "./payment-machine.js";
import type { ProviderCharge, ProviderRefund } from "./provider.js";
import type { ReviewReason } from "./review-reason.js";

/**
 * What follows from the provider's object as it is now. The provider's state is the truth; ours moves to it, or a
 * person is asked where it cannot be the truth about this payment (another amount, another attempt's object).
 */
export function adopt(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const mismatch = isClosed(view, charge) ? null : mismatchOf(view, charge);
  if (mismatch !== null) {
    const moved = charge.status === "succeeded" || charge.status === "authorized";
    return underReview(view, moved && ended(view) ? PAID_AFTER_END : mismatch, showing(note, charge));
  }
  const change = adoptStatus(view, charge, note);
  if (view.attempt.providerPaymentId !== null) return change;
  return { ...change, attempt: { ...change.attempt, providerPaymentId: charge.id } };
}

/** The payment has ended, and nobody can charge its object any more: whatever else that shows is no question. */
function isClosed(view: ChargeView, charge: ProviderCharge): boolean {
  return ended(view) && charge.status === "canceled" && charge.id === view.attempt.providerPaymentId;
}

/** What came back is not shown by its status alone. */
export function showing(note: TimelineNote, object: ProviderCharge | ProviderRefund): TimelineNote {
  return { ...note, outcome: `${note.outcome} (${describeObject(object)})` };
}

function adoptStatus(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  if (wentBack(view, charge)) return waiting(view, { reason: "provider_went_back", note });
  switch (charge.status) {
    case "created":
      return notConfirmed(view, note);
    case "succeeded":
      return moneyMoved(view, "SUCCEED", charge, note);
    case "authorized":
      return moneyMoved(view, "AUTHORIZE", charge, note);
    case "pending":
      return follow(view, charge, "PEND", note);
    case "requires_action":
      if (ended(view)) return fence(view, knowing(view), note, "closing");
      return customerIsLate(view)
        ? fence(view, knowing(view), note, "customer_action_expired")
        : follow(view, charge, "REQUIRE_ACTION", note);
    case "declined":
      return declined(view, charge, note);
    case "canceled":
      return canceled(view, charge, note);
    case "unrecognized":
      return unrecognized(view, note);
  }
}

/** An object that cannot be this payment's, or whose money is not what was asked for, is shown to a person. */
export function mismatchOf(view: ChargeView, charge: ProviderCharge): ReviewReason | null {
  const { payment, attempt } = view;
  const ofAnother = charge.attemptId !== null && charge.attemptId !== attempt.id;
  if (ofAnother || foreignTo(attempt.tenantId, attempt.livemode, charge)) return "provider_object_foreign";
  if (isShownAsItIs(view, charge)) return null;
  if (charge.amount !== payment.amount || charge.currency !== payment.currency)
    return "provider_amount_mismatch";
  const short =
    charge.status === "succeeded" &&
    payment.captureMethod === "automatic" &&
    charge.amountCaptured !== payment.amount;
  return short ? "provider_amount_mismatch" : null;
}

/** A person has looked and taken the object as it is: other money than asked for, and the payment shows just that. */
function isShownAsItIs({ payment }: ChargeView, charge: ProviderCharge): boolean {
  const isOther = payment.captureMethod === "automatic" && payment.amountCaptured !== payment.amount;
  const shows = charge.status === "succeeded" && charge.amountCaptured === payment.amountCaptured;
  return payment.status === "succeeded" && isOther && shows && charge.currency === payment.currency;
}

/** Made for another tenant, or in the other mode. */
export function foreignTo(tenantId: string, livemode: boolean, charge: ProviderCharge): boolean {
  return (charge.tenantId !== null && charge.tenantId !== tenantId) || charge.livemode !== livemode;
}

/** Money that moved, or is held, does not become a question again: an answer from before that, or a fault. */
function wentBack({ payment }: ChargeView, charge: ProviderCharge): boolean {
  if (payment.status === "succeeded") return charge.status !== "succeeded";
  return payment.status === "authorized" && !["authorized", "succeeded", "canceled"].includes(charge.status);
}

/** The edge that commits the object's id, where it is not committed yet. */
function knowing(view: ChargeView): readonly AttemptEventType[] {
  return isBeforeObject(view.attempt.state) ? ["OBJECT_KNOWN"] : [];
}

/** The object is there and its id is kept; what became of it is unknown until it shows a status that we know. */
function unrecognized(view: ChargeView, note: TimelineNote): Change {
  const { attempt, now } = view;
  return waiting(view, {
    reason: "provider_status_unrecognized",
    note,
    events: attempt.state === "confirming" ? ["OUTCOME_UNKNOWN"] : knowing(view),
    attempt: { unresolved: true, unknownSince: attempt.unknownSince ?? now },
  });
}

function ended(view: ChargeView): boolean {
  return view.payment.status === "failed" || view.payment.status === "canceled";
}

/** The object exists and nothing has been charged: go on, or close it. */
function notConfirmed(view: ChargeView, note: TimelineNote): Change {
  const { attempt } = view;
  if (attempt.state === "fencing" || ended(view)) return fence(view, knowing(view), note, "closing");
  if (attempt.state === "following" || attempt.state === "completed")
    return waiting(view, { reason: "provider_went_back", note });
  if (attempt.state === "confirming") {
    return waiting(view, {
      reason: "confirm_without_effect",
      note,
      events: ["OUTCOME_UNKNOWN"],
      attempt: { unresolved: true, unknownSince: attempt.unknownSince ?? view.now },
    });
  }
  if (attempt.state === "confirm_unknown") return confirmOrFence(view, [], note);
  // No confirm was ever executed: what was unknown concerned the create.
  const fresh = { ...view, attempt: { ...attempt, unresolved: false, keySpent: false } };
  const change = confirmOrFence(fresh, knowing(view), note);
  return { ...change, attempt: { ...change.attempt, unknownSince: null, waits: 0 } };
}

/** A fact that money moved, or is held. It leaves even a terminal state, where the order id allows it. */
function moneyMoved(
  view: ChargeView,
  event: "SUCCEED" | "AUTHORIZE",
  charge: ProviderCharge,
  note: TimelineNote,
): Change {
  const { payment } = view;
  const orderIdIsOurs = payment.merchantOrderId === null || payment.holdsOrderId;
  // What a person has taken without the order id stays taken.
  const isTaken = payment.status === "succeeded" || payment.status === "authorized";
  if (!orderIdIsOurs && !isTaken) return underReview(view, PAID_AFTER_END, showing(note, charge));
  return takeMoney(view, event, charge, note);
}

/** The payment shows the money that moved, or is held, whoever holds its order id by now. */
export function takeMoney(
  view: ChargeView,
  event: "SUCCEED" | "AUTHORIZE",
  charge: ProviderCharge,
  note: TimelineNote,
): Change {
  const { attempt } = view;
  const paymentEvent = eventWhereLegal(view, event);
  const isHeld = event === "AUTHORIZE";
  return {
    attemptEvents: isHeld ? following(view) : ["END"],
    attempt: resolved(attempt),
    paymentEvent,
    payment: {
      amountCapturable: charge.amountCapturable,
      amountCaptured: charge.amountCaptured,
      nextAction: null,
      authorizedUntil: isHeld ? charge.authorizedUntil : null,
    },
    fee: charge.fee,
    reason: ended(view) ? PAID_AFTER_END : charge.status,
    review: null,
    note: paymentEvent === null ? null : note,
    // An authorisation that nobody captures lapses: it is looked at when it should have.
    then: isHeld ? { type: "wait", ms: heldMs(view, charge.authorizedUntil) } : { type: "end" },
  };
}

/** The edges into `following`, from wherever the attempt is. */
function following(view: ChargeView): readonly AttemptEventType[] {
  return view.attempt.state === "following" ? [] : [...knowing(view), "FOLLOW"];
}

function follow(
  view: ChargeView,
  charge: ProviderCharge,
  event: "PEND" | "REQUIRE_ACTION",
  note: TimelineNote,
): Change {
  const { attempt, payment } = view;
  const shown = event === "REQUIRE_ACTION" ? "requires_action" : "processing";
  const stays = payment.status === shown || ended(view);
  const first = attempt.state !== "following";
  const waits = first ? 0 : attempt.waits + 1;
  return {
    attemptEvents: following(view),
    attempt: { ...resolved(attempt), waits, waitReason: charge.status },
    paymentEvent: stays ? null : event,
    payment: { nextAction: event === "REQUIRE_ACTION" ? charge.nextAction : null },
    reason: charge.status,
    review: null,
    // A look that finds nothing new leaves no row: hundreds a day would hide the ones that matter.
    note: first || !stays ? note : null,
    then: { type: "wait", ms: waitForCustomerMs(view, followMs(view, waits + 1)) },
  };
}

/** Ends when the customer is late, whatever the clock of looking says. */
function waitForCustomerMs({ attempt, policy, now }: ChargeView, ms: number): number {
  const leftMs = attempt.createdAt.getTime() + policy.customerActionExpiryMs - now.getTime();
  return leftMs > 0 ? Math.min(ms, leftMs) : ms;
}

/** Declined, and payable by whoever holds its client secret: the payment ends, and the object is closed. */
function declined(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const closing = fence(view, knowing(view), note, "closing");
  if (ended(view)) return closing;
  const failure = charge.failure ?? {
    code: "card_declined",
    decline_code: null,
    advice_code: null,
    message: null,
    retry: "new_key" as const,
  };
  return {
    ...closing,
    attempt: { ...resolved(view.attempt), fenceRound: closing.attempt.fenceRound, waitReason: "closing" },
    paymentEvent: eventWhereLegal(view, "DECLINE"),
    payment: { failure, nextAction: null },
    reason: "declined",
  };
}

/**
 * Read back `canceled`: no call of ours can charge it any more. Before the customer or the provider was waited for,
 * that proves the whole attempt to be without effect, whoever canceled it.
 */
function canceled(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const { attempt, payment } = view;
  const waitedFor =
    attempt.state === "following" ||
    payment.status === "requires_action" ||
    payment.status === "authorized" ||
    payment.amountCapturable > 0;
  // The capture or cancel that is under way asks too, and knows what it wanted.
  if (!ended(view) && payment.openEffect !== null)
    return waiting(view, { reason: "effect_in_flight", note: null });
  if (!ended(view) && !waitedFor) return notPerformed(view, "canceled_at_provider", note);
  const cancellationReason = cancellationReasonOf(view, charge);
  return {
    attemptEvents: ["END"],
    attempt: resolved(attempt),
    paymentEvent: ended(view) ? null : "CANCEL",
    payment: {
      nextAction: null,
      amountCapturable: 0,
      authorizedUntil: null,
      releaseOrderId: true,
      ...(ended(view) ? {} : { cancellationReason }),
    },
    reason: ended(view) ? "closed" : cancellationReason,
    review: null,
    note: ended(view) && attempt.state === "completed" ? null : note,
    then: { type: "end" },
  };
}

/** Who ended it: the lapse of the authorisation, a cancel of ours in flight, our own expiry, or somebody else. */
export function cancellationReasonOf(view: ChargeView, charge: ProviderCharge): CancellationReason {
  if (charge.lapsed) return "authorization_expired";
  if (view.attempt.kind === "cancel") return "requested";
  const { attempt, payment } = view;
  const expired = payment.status === "requires_action" && attempt.state === "fencing" && customerIsLate(view);
  return expired ? "customer_action_expired" : "canceled_at_provider";
}

/** A fact that the payment already shows is no transition. Any other illegal edge throws when it is applied. */
function eventWhereLegal(view: ChargeView, event: PaymentEventType): PaymentEventType | null {
  const shown: Partial<Record<PaymentEventType, string>> = { SUCCEED: "succeeded", AUTHORIZE: "authorized" };
  return shown[event] === view.payment.status ? null : event;
}
