import type Stripe from "stripe";
import { bookRefund, bookRefundFailure } from "./balance-transactions.js";
import { type Call, emit } from "./call.js";
import { tokenOf } from "./charges.js";
import { idOf, stripeId } from "./ids.js";
import { refundBehaviourOf } from "./payment-methods.js";

export interface NewRefund {
  readonly amount: number;
  readonly reason: Stripe.Refund.Reason | null;
  readonly metadata: Record<string, string>;
}

/** What a failed card refund says unless another reason is given: that of the test card (docs.stripe.com/testing). */
export const USUAL_FAILURE = "expired_or_canceled_card";

/** Gives money back. The caller has made sure that so much is left. Status `pending` or `succeeded`, as the card has it. */
export function makeRefund(call: Call, charge: Stripe.Charge, input: NewRefund): Stripe.Refund {
  const behaviour = refundBehaviourOf(tokenOf(call, charge) ?? "");
  const bare: Stripe.Refund = {
    ...blankRefund(call, charge, input),
    ...(behaviour === "pending"
      ? { status: "pending", pending_reason: "processing" }
      : { status: "succeeded" }),
  };
  const refund = { ...bare, balance_transaction: bookRefund(call, bare) };
  const settlesAfterMs = call.settings.refund_settles_after_ms;
  if (behaviour !== "succeeds" && settlesAfterMs !== null) {
    const kind = behaviour === "pending" ? "refund_succeeds" : "refund_fails";
    call.schedule(kind, refund.id, call.nowMs + settlesAfterMs);
  }
  record(call, charge, refund);
  return refund;
}

/**
 * What of an authorisation is not captured goes back. At Stripe that is a refund too: without balance transaction,
 * metadata or request of the merchant's, and counted in the charge's `amount_refunded`.
 */
export function releaseHold(
  call: Call,
  charge: Stripe.Charge,
  amount: number,
  reason: "expired_uncaptured_charge" | null,
): void {
  if (amount === 0) return;
  const blank = blankRefund(call, charge, { amount, reason, metadata: {} });
  record(call, charge, {
    ...blank,
    status: "succeeded",
    destination_details: { type: "card", card: { type: "reversal" } },
  });
}

function record(call: Call, charge: Stripe.Charge, refund: Stripe.Refund): void {
  call.store.saveRow(call.realm, "refund", refund);
  emit(call, "refund.created", refund);
  emit(call, "charge.refunded", withRefunded(call, charge, refund.amount));
}

/** A pending refund reaches the customer. */
export function succeedRefund(call: Call, refund: Stripe.Refund): Stripe.Refund {
  const { pending_reason: _pendingReason, next_action: _nextAction, ...rest } = refund;
  return changed(call, refund, { ...rest, status: "succeeded" });
}

/** A pending refund waits for the customer. */
export function requireRefundAction(call: Call, refund: Stripe.Refund): Stripe.Refund {
  const { pending_reason: _pendingReason, ...rest } = refund;
  return changed(call, refund, {
    ...rest,
    status: "requires_action",
    next_action: { type: "display_details" },
  });
}

/** A refund fails, be it pending or believed to be done: the money is back in the balance, and can be refunded again. */
export function failRefund(call: Call, refund: Stripe.Refund, reason: string): Stripe.Refund {
  const failed = takenBack(call, refund, { status: "failed", failure_reason: reason });
  emit(call, "refund.failed", failed);
  return failed;
}

/** A refund is called off: in the dashboard, or by the API while it waits for the customer. */
export function withdrawRefund(call: Call, refund: Stripe.Refund): Stripe.Refund {
  return takenBack(call, refund, { status: "canceled", failure_reason: "merchant_request" });
}

function takenBack(
  call: Call,
  refund: Stripe.Refund,
  end: { readonly status: string; readonly failure_reason: string },
): Stripe.Refund {
  const { pending_reason: _pendingReason, next_action: _nextAction, ...rest } = refund;
  const charge = call.realm.charges.get(idOf(refund.charge));
  if (charge !== undefined) withRefunded(call, charge, -refund.amount);
  return changed(call, refund, {
    ...rest,
    ...end,
    failure_balance_transaction: bookRefundFailure(call, refund),
  });
}

/** Saves the refund, and tells of the change. `charge.refund.updated` is the older name of the same fact. */
export function changed(call: Call, old: Stripe.Refund, refund: Stripe.Refund): Stripe.Refund {
  call.store.saveRow(call.realm, "refund", refund);
  const previous = old.status === refund.status ? { metadata: old.metadata } : { status: old.status };
  emit(call, "refund.updated", refund, previous);
  emit(call, "charge.refund.updated", refund, previous);
  return refund;
}

function withRefunded(call: Call, charge: Stripe.Charge, amount: number): Stripe.Charge {
  const amountRefunded = charge.amount_refunded + amount;
  const refunded = { ...charge, amount_refunded: amountRefunded, refunded: amountRefunded === charge.amount };
  call.store.saveCharge(call.realm, refunded);
  return refunded;
}

function blankRefund(call: Call, charge: Stripe.Charge, input: NewRefund): Stripe.Refund {
  return {
    id: stripeId("re"),
    object: "refund",
    amount: input.amount,
    balance_transaction: null,
    charge: charge.id,
    created: call.nowSeconds,
    currency: charge.currency,
    customer: charge.customer,
    customer_account: null,
    destination_details: {
      type: "card",
      card: { reference_status: "pending", reference_type: "acquirer_reference_number", type: "refund" },
    },
    metadata: input.metadata,
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    reason: input.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: null,
    transfer_reversal: null,
  };
}
