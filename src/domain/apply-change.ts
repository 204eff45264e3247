import type { Attempt, AttemptState } from "./attempt.js";
import type { AttemptEventType } from "./attempt-machine.js";
import type { Change, ChargeView } from "./charge-change.js";
import type { EffectEventType } from "./effect-machine.js";
import type { Payment } from "./payment.js";
import type { ProviderCall } from "./provider.js";
import type { Refund, RefundStatus } from "./refund.js";
import { endOfReview } from "./review.js";
import { nextAttemptState, nextPaymentStatus, nextRefundStatus } from "./transition.js";

const ABOUT_TO: Readonly<Record<ProviderCall, AttemptEventType | EffectEventType>> = {
  create: "ABOUT_TO_CREATE",
  confirm: "ABOUT_TO_CONFIRM",
  fence: "ABOUT_TO_FENCE",
  capture: "ABOUT_TO_SEND",
  cancel: "ABOUT_TO_SEND",
  refund: "ABOUT_TO_SEND",
};

export interface Applied {
  readonly attempt: Attempt;
  readonly payment: Payment;
  /** Whether the payment's row is written. */
  readonly paymentMoved: boolean;
  readonly refund: Refund | null;
  /** Whether the refund's row is written. */
  readonly refundMoved: boolean;
}

/** Attempt, payment and refund after a change. Throws IllegalTransition where a machine has no such edge. */
export function applyChange(view: ChargeView, change: Change): Applied {
  const { attempt, now } = view;
  const sending = change.then.type === "send" ? change.then.call : null;
  const isEffect = sending === "capture" || sending === "cancel" || sending === "refund";
  const refund = refundAfter(view, change);
  return {
    attempt: {
      ...attempt,
      ...change.attempt,
      providerPaymentId: attempt.providerPaymentId ?? change.attempt.providerPaymentId ?? null,
      state: stateAfter(view, change),
      // Until its answer is recorded, a fence that was sent is asked about before it is sent again.
      unresolved: sending === "fence" ? true : change.attempt.unresolved,
      // A fact that comes first leaves nothing to carry out.
      instruction: endOfReview(view, change) === null ? attempt.instruction : null,
      createFirstSentAt: attempt.createFirstSentAt ?? (sending === "create" ? now : null),
      confirmFirstSentAt: attempt.confirmFirstSentAt ?? (sending === "confirm" ? now : null),
      fenceFirstSentAt: attempt.fenceFirstSentAt ?? (sending === "fence" ? now : null),
      effectFirstSentAt: attempt.effectFirstSentAt ?? (isEffect ? now : null),
    },
    ...paymentAfter(view, change, refund),
    refund,
    refundMoved: refund !== view.refund,
  };
}

function stateAfter(view: ChargeView, change: Change): AttemptState {
  const { kind } = view.attempt;
  let { state } = view.attempt;
  for (const event of change.attemptEvents) state = nextAttemptState(kind, state, event);
  if (change.then.type !== "send") return state;
  // A further round of a fence stays in `fencing`.
  if (change.then.call === "fence" && state === "fencing") return state;
  return nextAttemptState(kind, state, ABOUT_TO[change.then.call]);
}

function refundAfter({ refund, now }: ChargeView, { refund: found }: Change): Refund | null {
  if (refund === null || found === undefined) return refund;
  const providerRefundId = refund.providerRefundId ?? found.providerRefundId ?? null;
  if (found.event === null && providerRefundId === refund.providerRefundId) return refund;
  return {
    ...refund,
    status: found.event === null ? refund.status : nextRefundStatus(refund.status, found.event),
    version: refund.version + 1,
    providerRefundId,
    failure: found.failure === undefined ? refund.failure : found.failure,
    updatedAt: now,
  };
}

function paymentAfter(
  view: ChargeView,
  change: Change,
  refund: Refund | null,
): Pick<Applied, "payment" | "paymentMoved"> {
  const { attempt, payment, now } = view;
  const patch = change.payment;
  const providerPaymentId = attempt.providerPaymentId ?? change.attempt.providerPaymentId ?? null;
  const releases = patch.releaseOrderId === true && payment.holdsOrderId;
  const effectEnded = patch.effectEnded === true && payment.openEffect === attempt.id;
  const amounts = refundAmounts(view, refund);
  if (change.paymentEvent === null && !releases && !effectEnded && amounts === null) {
    return { payment: { ...payment, providerPaymentId }, paymentMoved: false };
  }
  const status =
    change.paymentEvent === null ? payment.status : nextPaymentStatus(payment.status, change.paymentEvent);
  const moneyMoved = status === "succeeded" || status === "authorized";
  const moved: Payment = {
    ...payment,
    status,
    version: payment.version + 1,
    providerPaymentId,
    nextAction: patch.nextAction === undefined ? payment.nextAction : patch.nextAction,
    failure: moneyMoved ? null : (patch.failure ?? payment.failure),
    resolution: null,
    amountCapturable: patch.amountCapturable ?? payment.amountCapturable,
    amountCaptured: patch.amountCaptured ?? payment.amountCaptured,
    authorizedUntil: patch.authorizedUntil === undefined ? payment.authorizedUntil : patch.authorizedUntil,
    cancellationReason: moneyMoved ? null : (patch.cancellationReason ?? payment.cancellationReason),
    openEffect: effectEnded ? null : payment.openEffect,
    ...amounts,
    holdsOrderId: payment.holdsOrderId && patch.releaseOrderId !== true,
    updatedAt: now,
  };
  return { payment: moved, paymentMoved: true };
}

/** A refund's amount is reserved until it has failed, and counts as refunded while it has succeeded. */
function refundAmounts(
  { payment, refund: before }: ChargeView,
  after: Refund | null,
): Pick<Payment, "amountRefunded" | "refundReserved"> | null {
  if (before === null || after === null || before.status === after.status) return null;
  const refunded = (status: RefundStatus) => (status === "succeeded" ? after.amount : 0);
  const reserved = (status: RefundStatus) => (status === "failed" ? 0 : after.amount);
  return {
    amountRefunded: payment.amountRefunded + refunded(after.status) - refunded(before.status),
    refundReserved: payment.refundReserved + reserved(after.status) - reserved(before.status),
  };
}
