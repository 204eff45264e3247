import type { Failure } from "../../domain/payment.js";
import type { ProviderRefund, ProviderRefundStatus } from "../../domain/provider.js";
import { fromStripeAmount } from "./currencies.js";
import { ATTEMPT_METADATA_KEY, type Fields, idOf, isFields, TENANT_METADATA_KEY } from "./outcome.js";
import { text } from "./wire-answer.js";

/**
 * A Refund as the port has it, or null where what was read is none: no id, currency or integer amount. An amount that
 * is no whole number of our minor unit is null. Source of the statuses: docs.stripe.com/api/refunds/object.
 */
export function toProviderRefund(value: unknown): ProviderRefund | null {
  if (!isFields(value)) return null;
  const { currency, amount: stripeAmount, status: stripeStatus } = value;
  const id = text(value["id"]);
  if (id === null || typeof currency !== "string" || !isStripeAmount(stripeAmount)) return null;
  const status = toRefundStatus(stripeStatus);
  const metadata = isFields(value["metadata"]) ? value["metadata"] : {};
  const attemptId = text(metadata[ATTEMPT_METADATA_KEY]);
  return {
    id,
    chargeId: idOf(value["payment_intent"]),
    status,
    amount: fromStripeAmount(stripeAmount, currency),
    currency,
    attemptId,
    tenantId: text(metadata[TENANT_METADATA_KEY]),
    failure: status === "failed" ? toFailure(stripeStatus, value["failure_reason"]) : null,
    ...(attemptId === null && releasesHold(value) ? { releasesHold: true } : {}),
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
  const code = text(reason) ?? (status === "canceled" ? "refund_canceled" : "refund_failed");
  return { code, decline_code: null, message: null, advice_code: null, retry: "new_key" };
}

function isStripeAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
