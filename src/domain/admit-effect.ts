import { hasOpenDispute } from "./dispute.js";
import { refundable } from "./documents.js";
import type { ErrorCode } from "./errors.js";
import type { Payment } from "./payment.js";

/** A capture, cancel or refund as it was asked for. `amount` null: all that there is. */
export type EffectRequest =
  | { readonly kind: "capture"; readonly amount: number | null }
  | { readonly kind: "cancel"; readonly reason: string | null }
  | {
      readonly kind: "refund";
      readonly amount: number | null;
      readonly reason: string | null;
      readonly metadata: Readonly<Record<string, string>>;
    };

export type Admission =
  /** `amount`: of a capture or refund, what is to be sent. */
  | { readonly type: "admitted"; readonly amount: number | null }
  /** `passing`: true later, so it is not stored, and the key stays as it was. */
  | {
      readonly type: "refused";
      readonly code: ErrorCode;
      readonly detail: string;
      readonly passing: boolean;
    };

/** Whether the payment, as it was read, takes the request. What is admitted is written only at this version of it. */
export function admit(payment: Payment, request: EffectRequest): Admission {
  switch (request.kind) {
    case "capture":
      return admitCapture(payment, request.amount);
    case "cancel":
      return admitCancel(payment);
    case "refund":
      return admitRefund(payment, request.amount);
  }
}

function admitCapture(payment: Payment, asked: number | null): Admission {
  if (payment.cancellationReason === "authorization_expired") {
    return refused("authorization_expired", "The authorization has expired; the provider has released it.");
  }
  if (payment.status !== "authorized") return wrongState(payment, "captured");
  if (payment.openEffect !== null) return inProgress();
  const amount = asked ?? payment.amountCapturable;
  if (payment.amountCapturable === 0 || amount > payment.amountCapturable) {
    return refused("amount_too_large", `${payment.amountCapturable} can be captured, not ${amount}.`);
  }
  return { type: "admitted", amount };
}

function admitCancel(payment: Payment): Admission {
  if (payment.status !== "authorized" && payment.status !== "requires_action") {
    return wrongState(payment, "canceled");
  }
  return payment.openEffect === null ? { type: "admitted", amount: null } : inProgress();
}

function admitRefund(payment: Payment, asked: number | null): Admission {
  if (payment.status !== "succeeded") return wrongState(payment, "refunded");
  if (hasOpenDispute(payment.disputes)) {
    return refused("invalid_state", "The payment is disputed: a refund would give the money back twice.");
  }
  const left = refundable(payment);
  const amount = asked ?? left;
  if (left === 0 || amount > left) {
    return refused("amount_too_large", `${left} of the payment can still be refunded.`);
  }
  return { type: "admitted", amount };
}

function wrongState(payment: Payment, done: string): Admission {
  return refused("invalid_state", `The payment is ${payment.status}; it cannot be ${done}.`);
}

function refused(code: ErrorCode, detail: string): Admission {
  return { type: "refused", code, detail, passing: false };
}

function inProgress(): Admission {
  return {
    type: "refused",
    code: "operation_in_progress",
    detail: "A capture or cancel of this payment has no outcome yet; ask again when it has.",
    passing: true,
  };
}
