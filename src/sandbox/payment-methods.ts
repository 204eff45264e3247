import type Stripe from "stripe";
import { stripeId } from "./ids.js";

/** Why the issuer (or Radar) says no, as `last_payment_error` and the 402 show it. */
export interface Decline {
  readonly code: string;
  readonly declineCode?: string;
  readonly adviceCode?: "do_not_try_again" | "try_again_later" | "confirm_card_data";
  readonly networkDeclineCode?: string;
  readonly message: string;
  /** Stopped by Radar: the network never saw it. */
  readonly blocked?: true;
}

/** What a test card does when it is charged. */
export type Behaviour =
  | { readonly type: "succeeds" }
  | { readonly type: "declines"; readonly decline: Decline }
  /** 3D Secure. `unless`: an off-session payment goes through because the card was set up for that. */
  | { readonly type: "authenticates"; readonly unless?: "off_session"; readonly after?: Decline };

const DECLINED = "Your card was declined.";

const GENERIC: Decline = {
  code: "card_declined",
  declineCode: "generic_decline",
  adviceCode: "try_again_later",
  networkDeclineCode: "01",
  message: DECLINED,
};

/** An off-session payment that would need the customer. */
export const AUTHENTICATION_REQUIRED: Decline = {
  code: "authentication_required",
  declineCode: "authentication_required",
  message: "Your card was declined. This transaction requires authentication.",
};

const SUCCEEDS: Behaviour = { type: "succeeds" };
const RADAR: Behaviour = {
  type: "declines",
  decline: { code: "card_declined", declineCode: "fraudulent", message: DECLINED, blocked: true },
};

function declines(decline: Decline): Behaviour {
  return { type: "declines", decline };
}

function cardDeclined(declineCode: string, adviceCode: Decline["adviceCode"], message = DECLINED): Behaviour {
  return declines({ ...GENERIC, declineCode, message, ...(adviceCode === undefined ? {} : { adviceCode }) });
}

const INSUFFICIENT_FUNDS = cardDeclined(
  "insufficient_funds",
  "try_again_later",
  "Your card has insufficient funds.",
);
const LOST = cardDeclined("lost_card", "do_not_try_again");
const STOLEN = cardDeclined("stolen_card", "do_not_try_again");
const VELOCITY = cardDeclined(
  "card_velocity_exceeded",
  "try_again_later",
  "Your card was declined for making repeated attempts too frequently or exceeding its amount limit.",
);

/** Test payment methods that do not simply succeed (docs.stripe.com/testing, secondary copies; see docs/sandbox.md). */
const BEHAVIOURS: ReadonlyMap<string, Behaviour> = new Map([
  ["pm_card_visa_chargeDeclined", declines(GENERIC)],
  ["pm_card_chargeDeclined", declines(GENERIC)],
  ["pm_card_visa_chargeDeclinedInsufficientFunds", INSUFFICIENT_FUNDS],
  ["pm_card_chargeDeclinedInsufficientFunds", INSUFFICIENT_FUNDS],
  ["pm_card_visa_chargeDeclinedLostCard", LOST],
  ["pm_card_visa_chargeDeclinedStolenCard", STOLEN],
  ["pm_card_visa_chargeDeclinedVelocityLimitExceeded", VELOCITY],
  ["pm_card_chargeDeclinedFraudulent", cardDeclined("fraudulent", undefined)],
  [
    "pm_card_chargeDeclinedExpiredCard",
    declines({ code: "expired_card", adviceCode: "do_not_try_again", message: "Your card has expired." }),
  ],
  [
    "pm_card_chargeDeclinedIncorrectCvc",
    declines({
      code: "incorrect_cvc",
      adviceCode: "confirm_card_data",
      message: "Your card's security code is incorrect.",
    }),
  ],
  [
    "pm_card_chargeDeclinedProcessingError",
    declines({
      code: "processing_error",
      adviceCode: "try_again_later",
      message: "An error occurred while processing your card. Try again in a little bit.",
    }),
  ],
  ["pm_card_chargeCustomerFail", declines(GENERIC)],
  ["pm_card_radarBlock", RADAR],
  ["pm_card_riskLevelHighest", RADAR],
  ["pm_card_authenticationRequired", { type: "authenticates" }],
  ["pm_card_authenticationRequiredOnSetup", { type: "authenticates" }],
  ["pm_card_authenticationRequiredSetupForOffSession", { type: "authenticates", unless: "off_session" }],
  ["pm_card_threeDSecure2Required", { type: "authenticates" }],
  ["pm_card_threeDSecureRequired", { type: "authenticates" }],
  ["pm_card_threeDSecureRequiredChargeDeclined", { type: "authenticates", after: GENERIC }],
]);

/** Brands, countries and later troubles (disputes, refunds that fail): the charge itself goes through. */
const SUCCESSFUL = new RegExp(
  "^pm_card_(visa|visa_debit|mastercard|mastercard_prefix|mastercard_debit|mastercard_prepaid|amex|discover|" +
    "discover_debit|diners|jcb|unionpay|[a-z]{2}|createDispute|createDisputeProductNotReceived|createDisputeInquiry|" +
    "createIssuerFraudRecord|createMultipleDisputes|pendingRefund|refundFail|riskLevelElevated|threeDSecureOptional|" +
    "threeDSecureNotSupported|bypassPending|bypassPendingInternational|avsFail|avsLine1Fail|avsZipFail|avsUnchecked|" +
    "cvcCheckFail)$",
);

/** What a test token does, or null for a token that Stripe does not know. */
export function behaviourOf(token: string): Behaviour | null {
  return BEHAVIOURS.get(token) ?? (SUCCESSFUL.test(token) ? SUCCEEDS : null);
}

/** What becomes of a refund to the card (docs.stripe.com/testing#refunds). */
export function refundBehaviourOf(token: string): "succeeds" | "pending" | "fails" {
  if (token === "pm_card_pendingRefund") return "pending";
  return token === "pm_card_refundFail" ? "fails" : "succeeds";
}

const DISPUTES: ReadonlyMap<string, { readonly reason: string; readonly inquiry: boolean }> = new Map([
  ["pm_card_createDispute", { reason: "fraudulent", inquiry: false }],
  ["pm_card_createMultipleDisputes", { reason: "fraudulent", inquiry: false }],
  ["pm_card_createDisputeProductNotReceived", { reason: "product_not_received", inquiry: false }],
  ["pm_card_createDisputeInquiry", { reason: "fraudulent", inquiry: true }],
]);

/** The dispute that follows every charge of the card (docs.stripe.com/testing#disputes); null: none. */
export function disputeOf(token: string): { readonly reason: string; readonly inquiry: boolean } | null {
  return DISPUTES.get(token) ?? null;
}

/** A payment method as it is kept: Stripe answers a token with a payment method of its own, `pm_1…`. */
export interface StoredPaymentMethod {
  readonly id: string;
  readonly token: string;
  readonly created: number;
  readonly livemode: boolean;
}

export function newPaymentMethod(token: string, created: number, livemode: boolean): StoredPaymentMethod {
  return { id: stripeId("pm"), token, created, livemode };
}

export function cardOf(stored: StoredPaymentMethod): Stripe.PaymentMethod.Card {
  const brand = /mastercard|amex|discover|diners|jcb|unionpay/.exec(stored.token)?.[0] ?? "visa";
  return {
    brand,
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: null },
    country: "US",
    display_brand: brand,
    exp_month: 12,
    exp_year: 2034,
    fingerprint: "sandbox000000000",
    funding: "credit",
    generated_from: null,
    last4: "4242",
    networks: { available: [brand], preferred: null },
    regulated_status: "unregulated",
    three_d_secure_usage: { supported: true },
    wallet: null,
  };
}

export function renderPaymentMethod(stored: StoredPaymentMethod): Stripe.PaymentMethod {
  return {
    id: stored.id,
    object: "payment_method",
    allow_redisplay: "unspecified",
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    card: cardOf(stored),
    created: stored.created,
    customer: null,
    customer_account: null,
    livemode: stored.livemode,
    metadata: {},
    type: "card",
  };
}
