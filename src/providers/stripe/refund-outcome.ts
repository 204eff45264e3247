import type { Failure } from "../../domain/payment.js";
import type { ProviderRefund, ProviderRefundStatus } from "../../domain/provider.js";
import { fromStripeAmount } from "./currencies.js";
import { type Fields, idOf, isAmount, isFields, marksOn } from "./outcome.js";
import { shownText, text } from "./wire-answer.js";

/**
 * A Refund as the port has it, or null where what was read is none: no id, currency or integer amount. An amount that
 * is no whole number of our minor unit is null. Source of the statuses: docs.stripe.com/api/refunds/object.
 */
export function toProviderRefund(value: unknown): ProviderRefund | null {
  if (!isFields(value)) return null;
  const { amount: stripeAmount, status: stripeStatus } = value;
  const [id, currency] = [text(value["id"]), text(value["currency"])];
  if (id === null || currency === null || !isAmount(stripeAmount)) return null;
  const status = toRefundStatus(stripeStatus);
  const marks = marksOn(value);
  return {
    id,
    chargeId: idOf(value["payment_intent"]),
    status,
    amount: fromStripeAmount(stripeAmount, currency),
    currency,
    ...marks,
    failure: status === "failed" ? toFailure(stripeStatus, value["failure_reason"]) : null,
    ...(marks.attemptId === null && releasesHold(value) ? { releasesHold: true } : {}),
  };
}

/**
 * Stripe keeps the rest of a partial capture, and a canceled or lapsed authorisation, as a refund that is done at once
 * and never was in the balance. Every refund of captured money has a balance transaction once it succeeds.
 */
function releasesHold(refund: Fields): boolean {
  return refund["status"] === "succeeded" && refund["balance_transaction"] === null;
}

function toRefundStatus(status: unknown): ProviderRefundStatus {
  switch (status) {
    case "pending":
    case "requires_action":
      return "pending";
    case "succeeded":
      return "succeeded";
    case "failed":
    case "canceled":
      return "failed";
    default:
      return "unrecognized";
  }
}

function toFailure(status: unknown, reason: unknown): Failure {
  const code = shownText(reason) ?? (status === "canceled" ? "refund_canceled" : "refund_failed");
  return { code, decline_code: null, message: null, advice_code: null, retry: "new_key" };
}
