import type { Attempt } from "./attempt.js";
import type { AttemptEventType } from "./attempt-machine.js";
import type { Change, ChargeView } from "./charge-change.js";
import type { Payment } from "./payment.js";
import type { ProviderCall } from "./provider.js";
import { nextAttemptState, nextPaymentStatus } from "./transition.js";

const ABOUT_TO: Readonly<Record<ProviderCall, AttemptEventType>> = {
  create: "ABOUT_TO_CREATE",
  confirm: "ABOUT_TO_CONFIRM",
  fence: "ABOUT_TO_FENCE",
};

export interface Applied {
  readonly attempt: Attempt;
  readonly payment: Payment;
  /** Whether the payment's row is written. */
  readonly paymentMoved: boolean;
}

/** The attempt and the payment after a change. Throws IllegalTransition where a machine has no such edge. */
export function applyChange(view: ChargeView, change: Change): Applied {
  const { attempt, now } = view;
  let state = attempt.state;
  for (const event of change.attemptEvents) state = nextAttemptState(state, event);
  const sending = change.then.type === "send" ? change.then.call : null;
  // A further round of a fence stays in `fencing`.
  if (sending !== null && !(sending === "fence" && state === "fencing"))
    state = nextAttemptState(state, ABOUT_TO[sending]);
  return {
    attempt: {
      ...attempt,
      ...change.attempt,
      providerPaymentId: attempt.providerPaymentId ?? change.attempt.providerPaymentId ?? null,
      state,
      // Until its answer is recorded, a fence that was sent is asked about before it is sent again.
      unresolved: sending === "fence" ? true : change.attempt.unresolved,
      createFirstSentAt: attempt.createFirstSentAt ?? (sending === "create" ? now : null),
      confirmFirstSentAt: attempt.confirmFirstSentAt ?? (sending === "confirm" ? now : null),
      fenceFirstSentAt: attempt.fenceFirstSentAt ?? (sending === "fence" ? now : null),
    },
    ...applyToPayment(view, change),
  };
}

function applyToPayment(view: ChargeView, change: Change): Pick<Applied, "payment" | "paymentMoved"> {
  const { attempt, payment, now } = view;
  const providerPaymentId = attempt.providerPaymentId ?? change.attempt.providerPaymentId ?? null;
  const releases = change.payment.releaseOrderId === true && payment.holdsOrderId;
  if (change.paymentEvent === null && !releases) {
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
    nextAction: change.payment.nextAction === undefined ? payment.nextAction : change.payment.nextAction,
    failure: moneyMoved ? null : (change.payment.failure ?? payment.failure),
    resolution: null,
    amountCapturable: change.payment.amountCapturable ?? payment.amountCapturable,
    amountCaptured: change.payment.amountCaptured ?? payment.amountCaptured,
    holdsOrderId: payment.holdsOrderId && change.payment.releaseOrderId !== true,
    updatedAt: now,
  };
  return { payment: moved, paymentMoved: true };
}
