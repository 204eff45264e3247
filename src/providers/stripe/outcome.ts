import type { Failure, NextAction } from "../../domain/payment.js";
import type { ChargeStatus, ProviderCharge } from "../../domain/provider.js";
import { fromStripeAmount } from "./currencies.js";
import { shownMessage, text } from "./wire-answer.js";

/** The keys of a PaymentIntent's metadata that are ours; nothing else of ours is in it. */
export const ATTEMPT_METADATA_KEY = "payment_attempt_id";
export const TENANT_METADATA_KEY = "tenant_id";

type Fields = Readonly<Record<string, unknown>>;

/**
 * A PaymentIntent as the port has it, or null where what was read is none: no id, status, currency, mode or integer
 * amounts. Amounts that are no whole number of our minor unit leave `amount` null, which no payment's amount equals.
 * Source of the statuses: docs.stripe.com/payments/paymentintents/lifecycle.
 */
export function toProviderCharge(value: unknown): ProviderCharge | null {
  if (!isFields(value)) return null;
  const { id, status, currency, livemode } = value;
  const stripeAmounts = [value["amount"], value["amount_capturable"], value["amount_received"]];
  if (typeof id !== "string" || id === "" || typeof status !== "string") return null;
  if (typeof currency !== "string" || typeof livemode !== "boolean") return null;
  if (!stripeAmounts.every(isAmount)) return null;

  const exact = stripeAmounts.map((stripeAmount) => fromStripeAmount(stripeAmount, currency));
  const [amount = null, capturable = null, captured = null] = exact.includes(null) ? [] : exact;
  const chargeStatus = toChargeStatus(status, value);
  const metadata = isFields(value["metadata"]) ? value["metadata"] : {};
  return {
    id,
    status: chargeStatus,
    amount,
    currency,
    amountCapturable: capturable ?? 0,
    amountCaptured: captured ?? 0,
    livemode,
    attemptId: text(metadata[ATTEMPT_METADATA_KEY]),
    tenantId: text(metadata[TENANT_METADATA_KEY]),
    nextAction: chargeStatus === "requires_action" ? toNextAction(value) : null,
    failure: chargeStatus === "declined" ? toFailure(value["last_payment_error"]) : null,
  };
}

function toChargeStatus(status: string, intent: Fields): ChargeStatus {
  switch (status) {
    case "requires_confirmation":
      return "created";
    case "requires_payment_method":
      return withoutMethod(intent);
    case "requires_action":
      return "requires_action";
    case "processing":
      return "pending";
    case "requires_capture":
      return "authorized";
    case "succeeded":
      return "succeeded";
    case "canceled":
      return "canceled";
    default:
      return "unrecognized";
  }
}

/** A failed attempt leads back here with its error; an object made without a payment method has neither. */
function withoutMethod(intent: Fields): ChargeStatus {
  if (isFields(intent["last_payment_error"])) return "declined";
  return intent["payment_method"] === null ? "created" : "unrecognized";
}

function toNextAction(intent: Fields): NextAction | null {
  const next = isFields(intent["next_action"]) ? intent["next_action"] : {};
  const redirect = isFields(next["redirect_to_url"]) ? next["redirect_to_url"] : {};
  const url = text(redirect["url"]);
  if (url !== null) return { type: "redirect_to_url", redirect_url: url, client_secret: null };
  const secret = text(intent["client_secret"]);
  return secret === null ? null : { type: "use_client_secret", redirect_url: null, client_secret: secret };
}

function toFailure(error: unknown): Failure {
  const fields = isFields(error) ? error : {};
  return {
    code: text(fields["code"]) ?? text(fields["type"]) ?? "card_declined",
    decline_code: text(fields["decline_code"]),
    message: shownMessage(fields["message"]),
    advice_code: text(fields["advice_code"]),
    retry: "new_key",
  };
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
