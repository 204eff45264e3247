import type Stripe from "stripe";
import { type Call, emit } from "./call.js";
import { afterCapture } from "./charges.js";
import { StripeFailure, type WireError } from "./errors.js";
import { stripeId } from "./ids.js";
import { newCharge } from "./payment-intent-object.js";
import {
  AUTHENTICATION_REQUIRED,
  type Behaviour,
  behaviourOf,
  type Decline,
  renderPaymentMethod,
  type StoredPaymentMethod,
} from "./payment-methods.js";

/** How this attempt was asked for; nothing of it outlives the attempt. */
export interface AttemptOptions {
  readonly offSession: boolean;
  readonly errorOnRequiresAction: boolean;
  readonly returnUrl: string | null;
}

/**
 * Tries to pay the object with its payment method: it ends `succeeded`, `requires_capture` or `requires_action`.
 * Throws 402 after a decline; the object is then saved as `requires_payment_method` with `last_payment_error`.
 */
export function attemptPayment(
  call: Call,
  paymentIntent: Stripe.PaymentIntent,
  method: StoredPaymentMethod,
  options: AttemptOptions,
): Stripe.PaymentIntent {
  const behaviour = behaviourOf(method.token);
  if (behaviour === null) throw new Error(`payment method ${method.id} has no behaviour`);
  const next = nextStep(behaviour, options);
  switch (next.type) {
    case "pay":
      return pay(call, paymentIntent, method);
    case "decline":
      return decline(call, paymentIntent, method, next.decline);
    case "authenticate":
      return askCustomer(call, paymentIntent, method, options.returnUrl);
  }
}

type NextStep =
  | { readonly type: "pay" }
  | { readonly type: "decline"; readonly decline: Decline }
  | { readonly type: "authenticate" };

function nextStep(behaviour: Behaviour, options: AttemptOptions): NextStep {
  switch (behaviour.type) {
    case "succeeds":
      return { type: "pay" };
    case "declines":
      return { type: "decline", decline: behaviour.decline };
    case "authenticates":
      if (options.offSession && behaviour.unless === "off_session") return { type: "pay" };
      if (options.offSession || options.errorOnRequiresAction) {
        return { type: "decline", decline: AUTHENTICATION_REQUIRED };
      }
      return { type: "authenticate" };
  }
}

/** The customer came back from 3D Secure. Throws 402 where the bank then declines the charge. */
export function completeAuthentication(
  call: Call,
  paymentIntent: Stripe.PaymentIntent,
): Stripe.PaymentIntent {
  const method = methodOf(call, paymentIntent);
  const behaviour = behaviourOf(method.token);
  const after = behaviour?.type === "authenticates" ? behaviour.after : undefined;
  return after === undefined ? pay(call, paymentIntent, method) : decline(call, paymentIntent, method, after);
}

/** The customer failed 3D Secure: no charge was tried. */
export function failAuthentication(call: Call, paymentIntent: Stripe.PaymentIntent): Stripe.PaymentIntent {
  const method = methodOf(call, paymentIntent);
  const failed: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "requires_payment_method",
    payment_method: null,
    next_action: null,
    last_payment_error: {
      type: "invalid_request_error",
      code: "payment_intent_authentication_failure",
      doc_url: "https://stripe.com/docs/error-codes/payment-intent-authentication-failure",
      message:
        "The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new " +
        "PaymentMethod to attempt to fulfill this PaymentIntent again.",
      payment_method: renderPaymentMethod(method),
    },
  };
  call.store.savePaymentIntent(call.realm, failed);
  emit(call, "payment_intent.payment_failed", failed);
  return failed;
}

function methodOf(call: Call, paymentIntent: Stripe.PaymentIntent): StoredPaymentMethod {
  const id = paymentIntent.payment_method;
  const method = typeof id === "string" ? call.realm.paymentMethods.get(id) : undefined;
  if (method === undefined)
    throw new Error(`${paymentIntent.id} waits for its customer without a payment method`);
  return method;
}

function pay(
  call: Call,
  paymentIntent: Stripe.PaymentIntent,
  method: StoredPaymentMethod,
): Stripe.PaymentIntent {
  const captured = paymentIntent.capture_method !== "manual";
  const captureBefore = captured
    ? null
    : call.nowSeconds + Math.ceil(call.settings.authorization_lifetime_ms / 1000);
  const charge = newCharge({
    id: stripeId("ch"),
    created: call.nowSeconds,
    paymentIntent,
    paymentMethod: method,
    captured,
    captureBefore,
    decline: null,
  });
  const paid: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: captured ? "succeeded" : "requires_capture",
    amount_received: captured ? paymentIntent.amount : 0,
    amount_capturable: captured ? 0 : paymentIntent.amount,
    latest_charge: charge.id,
    payment_method: method.id,
    last_payment_error: null,
    next_action: null,
  };
  call.store.saveCharge(call.realm, charge);
  call.store.savePaymentIntent(call.realm, paid);
  if (captureBefore === null) afterCapture(call, charge);
  else call.schedule("authorization_expires", paid.id, captureBefore * 1000);
  emit(call, captured ? "payment_intent.succeeded" : "payment_intent.amount_capturable_updated", paid);
  return paid;
}

function decline(
  call: Call,
  paymentIntent: Stripe.PaymentIntent,
  method: StoredPaymentMethod,
  reason: Decline,
): never {
  const charge = newCharge({
    id: stripeId("ch"),
    created: call.nowSeconds,
    paymentIntent,
    paymentMethod: method,
    captured: false,
    captureBefore: null,
    decline: reason,
  });
  const error: WireError = {
    type: "card_error",
    code: reason.code,
    message: reason.message,
    charge: charge.id,
    ...(reason.declineCode === undefined ? {} : { decline_code: reason.declineCode }),
    ...(reason.adviceCode === undefined ? {} : { advice_code: reason.adviceCode }),
    ...(reason.networkDeclineCode === undefined ? {} : { network_decline_code: reason.networkDeclineCode }),
    payment_method: renderPaymentMethod(method),
  };
  const declined: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "requires_payment_method",
    latest_charge: charge.id,
    payment_method: null,
    next_action: null,
    last_payment_error: {
      ...error,
      doc_url: `https://stripe.com/docs/error-codes/${reason.code.replaceAll("_", "-")}`,
    },
  };
  call.store.saveCharge(call.realm, charge);
  call.store.savePaymentIntent(call.realm, declined);
  emit(call, "payment_intent.payment_failed", declined);
  throw new StripeFailure(402, { ...error, payment_intent: declined }, { saved: true });
}

function askCustomer(
  call: Call,
  paymentIntent: Stripe.PaymentIntent,
  method: StoredPaymentMethod,
  returnUrl: string | null,
): Stripe.PaymentIntent {
  const secret = paymentIntent.client_secret ?? "";
  const url = `${call.publicUrl}/_hosted/three_d_secure/${paymentIntent.id}?client_secret=${secret}`;
  const waiting: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "requires_action",
    payment_method: method.id,
    last_payment_error: null,
    next_action:
      returnUrl === null
        ? { type: "use_stripe_sdk", use_stripe_sdk: { type: "three_d_secure_redirect", stripe_js: url } }
        : { type: "redirect_to_url", redirect_to_url: { return_url: returnUrl, url } },
  };
  call.store.savePaymentIntent(call.realm, waiting);
  emit(call, "payment_intent.requires_action", waiting);
  return waiting;
}
