import type { Failure, NextAction } from "../../domain/payment.js";
import type { ChargeStatus, ProviderCharge, ProviderFee } from "../../domain/provider.js";
import { fromStripeAmount } from "./currencies.js";
import { shownText, text, time } from "./wire-answer.js";

/** The keys of a PaymentIntent's metadata that are ours; nothing else of ours is in it. */
export const ATTEMPT_METADATA_KEY = "payment_attempt_id";
export const TENANT_METADATA_KEY = "tenant_id";

export type Fields = Readonly<Record<string, unknown>>;

/**
 * A PaymentIntent as the port has it, or null where what was read is none: no id, status, currency, mode or integer
 * amounts. Amounts that are no whole number of our minor unit leave `amount` null, which no payment's amount equals.
 * Source of the statuses: docs.stripe.com/payments/paymentintents/lifecycle.
 */
export function toProviderCharge(value: unknown): ProviderCharge | null {
  if (!isFields(value)) return null;
  const { livemode } = value;
  const [id, status, currency] = [text(value["id"]), text(value["status"]), text(value["currency"])];
  const stripeAmounts = [value["amount"], value["amount_capturable"], value["amount_received"]];
  if (id === null || status === null || currency === null || typeof livemode !== "boolean") return null;
  if (!stripeAmounts.every(isAmount)) return null;

  const exact = stripeAmounts.map((stripeAmount) => fromStripeAmount(stripeAmount, currency));
  const [amount = null, capturable = null, captured = null] = exact.includes(null) ? [] : exact;
  const chargeStatus = toChargeStatus(status, value);
  return {
    id,
    status: chargeStatus,
    amount,
    currency,
    amountCapturable: capturable ?? 0,
    amountCaptured: captured ?? 0,
    livemode,
    ...marksOn(value),
    nextAction: chargeStatus === "requires_action" ? toNextAction(value) : null,
    failure: chargeStatus === "declined" ? toFailure(value["last_payment_error"]) : null,
    authorizedUntil: chargeStatus === "authorized" ? captureBefore(value) : null,
    lapsed: chargeStatus === "canceled" && hasLapsed(value),
    fee: toFee(value),
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
    code: shownText(fields["code"]) ?? shownText(fields["type"]) ?? "card_declined",
    decline_code: shownText(fields["decline_code"]),
    message: shownText(fields["message"]),
    advice_code: shownText(fields["advice_code"]),
    retry: "new_key",
  };
}

// Both are Stripe's own, never a caller's (the SDK's typings of PaymentIntent.cancellation_reason). An authorisation
// that ran out has been seen with the first; the second is younger (the SDK's changelog).
const LAPSE_REASONS: readonly unknown[] = ["automatic", "expired"];

/** Stripe also ends what was never authorised for these reasons: then there is no charge, or only a failed one. */
function hasLapsed(intent: Fields): boolean {
  const charge = intent["latest_charge"];
  const wasHeld = charge !== null && !(isFields(charge) && charge["status"] === "failed");
  return wasHeld && LAPSE_REASONS.includes(intent["cancellation_reason"]);
}

/** The charge of the last attempt, where it was expanded: it may be an id, or missing in older versions. */
function latestCharge(intent: Fields): Fields {
  const charge = intent["latest_charge"];
  return isFields(charge) ? charge : {};
}

/** Source: the SDK's typings of Charge.PaymentMethodDetails.Card.capture_before, Unix seconds. */
function captureBefore(intent: Fields): Date | null {
  const details = latestCharge(intent)["payment_method_details"];
  const card = isFields(details) && isFields(details["card"]) ? details["card"] : {};
  return time(card["capture_before"]);
}

/** In the currency of the balance, which need not be the payment's. Known once the money is booked. */
function toFee(intent: Fields): ProviderFee | null {
  const transaction = latestCharge(intent)["balance_transaction"];
  if (!isFields(transaction)) return null;
  const transactionId = text(transaction["id"]);
  const currency = text(transaction["currency"]);
  const stripeFee = transaction["fee"];
  if (transactionId === null || currency === null || !isAmount(stripeFee)) return null;
  const amount = fromStripeAmount(stripeFee, currency);
  return amount === null ? null : { transactionId, amount, currency };
}

/** What an object's metadata says of whose it is. */
export function marksOn(object: Fields): {
  readonly attemptId: string | null;
  readonly tenantId: string | null;
} {
  const metadata = isFields(object["metadata"]) ? object["metadata"] : {};
  return { attemptId: text(metadata[ATTEMPT_METADATA_KEY]), tenantId: text(metadata[TENANT_METADATA_KEY]) };
}

/** Whether an object's metadata names this attempt. */
export function bearsMark(value: unknown, attemptId: string): boolean {
  return isFields(value) && marksOn(value).attemptId === attemptId;
}

/** The id of what may be shown as an id or as the object itself. */
export function idOf(value: unknown): string | null {
  return isFields(value) ? text(value["id"]) : text(value);
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An amount as Stripe tells it, in its own unit. */
export function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
