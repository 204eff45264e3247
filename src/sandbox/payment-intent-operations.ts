import type Stripe from "stripe";
import { type Call, emit, paymentIntentOf } from "./call.js";
import { afterCapture, latestChargeOf } from "./charges.js";
import { checkedAmount, checkedCurrency } from "./currencies.js";
import { invalidRequest, type StripeFailure, unexpectedState } from "./errors.js";
import { randomText, stripeId } from "./ids.js";
import { booleanOf, enumOf, mergedMetadata, metadataOf, required, textOf } from "./parameters.js";
import { attemptPayment } from "./payment-attempt.js";
import {
  attemptOptions,
  checkMethodTypes,
  checkReturnUrl,
  descriptiveChanges,
  givenMethod,
  methodTypesOf,
  presentMethod,
} from "./payment-intent-input.js";
import { blankPaymentIntent } from "./payment-intent-object.js";
import { releaseHold } from "./refunds.js";

const CAPTURE_METHODS = ["automatic", "automatic_async", "manual"] as const;
const CONFIRMATION_METHODS = ["automatic", "manual"] as const;
const CANCELLATION_REASONS = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"] as const;

// docs.stripe.com/api/payment_intents/create, each parameter's description.
const ONLY_WITH_CONFIRM = ["return_url", "off_session", "error_on_requires_action", "mandate_data"] as const;

const CONFIRMABLE = ["requires_payment_method", "requires_confirmation", "requires_action"];
const CANCELABLE = [
  "requires_payment_method",
  "requires_capture",
  "requires_confirmation",
  "requires_action",
  "processing",
];

/** `POST /v1/payment_intents` */
export function createPaymentIntent(call: Call): Stripe.PaymentIntent {
  const { params } = call;
  const currency = checkedCurrency(required(params, "currency"));
  const blank = blankPaymentIntent({
    id: stripeId("pi"),
    secret: randomText(25),
    amount: checkedAmount(required(params, "amount"), currency),
    currency,
    created: call.nowSeconds,
    livemode: call.realm.livemode,
  });
  const method = givenMethod(call);
  const created: Stripe.PaymentIntent = {
    ...blank,
    ...descriptiveChanges(params),
    capture_method: enumOf(params, "capture_method", CAPTURE_METHODS) ?? "automatic_async",
    confirmation_method: enumOf(params, "confirmation_method", CONFIRMATION_METHODS) ?? "automatic",
    metadata: mergedMetadata({}, metadataOf(params) ?? {}),
    ...methodTypesOf(call),
    payment_method: method?.id ?? null,
    status: method === null ? "requires_payment_method" : "requires_confirmation",
  };
  const confirms = booleanOf(params, "confirm");
  const early = confirms ? undefined : ONLY_WITH_CONFIRM.find((name) => params[name] !== undefined);
  if (early !== undefined)
    throw invalidRequest(`${early} can only be used with confirm=true.`, undefined, early);
  const options = attemptOptions(params);
  if (confirms) checkReturnUrl(created, params);
  if (confirms && method === null) throw missingMethod(null);
  call.store.savePaymentIntent(call.realm, created);
  emit(call, "payment_intent.created", created);
  return confirms && method !== null ? attemptPayment(call, created, method, options) : created;
}

/** `POST /v1/payment_intents/:id/confirm` */
export function confirmPaymentIntent(call: Call): Stripe.PaymentIntent {
  const paymentIntent = paymentIntentOf(call);
  if (!CONFIRMABLE.includes(paymentIntent.status)) throw notConfirmable(paymentIntent);
  if (call.caller.publishable && paymentIntent.confirmation_method === "manual") {
    throw invalidRequest(
      "The PaymentIntent's confirmation_method is manual: confirm it with a secret key.",
      undefined,
      "confirmation_method",
    );
  }
  checkMethodTypes(call);
  const method = givenMethod(call) ?? presentMethod(call, paymentIntent);
  if (method === null) throw missingMethod(paymentIntent);
  checkReturnUrl(paymentIntent, call.params);
  const changed: Stripe.PaymentIntent = {
    ...paymentIntent,
    ...descriptiveChanges(call.params),
    capture_method: enumOf(call.params, "capture_method", CAPTURE_METHODS) ?? paymentIntent.capture_method,
    payment_method: method.id,
  };
  return attemptPayment(call, changed, method, attemptOptions(call.params));
}

/** `POST /v1/payment_intents/:id` */
export function updatePaymentIntent(call: Call): Stripe.PaymentIntent {
  const { params } = call;
  const paymentIntent = paymentIntentOf(call);
  const fixed = ["amount", "currency", "payment_method", "capture_method"].filter(
    (name) => params[name] !== undefined,
  );
  const first = fixed[0];
  if (first !== undefined && !CONFIRMABLE.includes(paymentIntent.status))
    throw notUpdatable(paymentIntent, first);
  checkMethodTypes(call);
  const method = givenMethod(call);
  const currency =
    params["currency"] === undefined ? paymentIntent.currency : checkedCurrency(required(params, "currency"));
  const amount = textOf(params, "amount");
  const metadata = metadataOf(params);
  const updated: Stripe.PaymentIntent = {
    ...paymentIntent,
    ...descriptiveChanges(params),
    currency,
    amount: amount === null ? paymentIntent.amount : checkedAmount(amount, currency),
    capture_method: enumOf(params, "capture_method", CAPTURE_METHODS) ?? paymentIntent.capture_method,
    metadata: metadata === null ? paymentIntent.metadata : mergedMetadata(paymentIntent.metadata, metadata),
    ...(method === null
      ? {}
      : { payment_method: method.id, status: "requires_confirmation", next_action: null }),
  };
  call.store.savePaymentIntent(call.realm, updated);
  return updated;
}

/** `POST /v1/payment_intents/:id/cancel`. A hold is released, its charge shown as refunded. */
export function cancelPaymentIntent(call: Call): Stripe.PaymentIntent {
  const paymentIntent = paymentIntentOf(call);
  if (!CANCELABLE.includes(paymentIntent.status)) {
    throw unexpectedState(
      `You cannot cancel this PaymentIntent because it has a status of ${paymentIntent.status}. Only a PaymentIntent ` +
        `with one of the following statuses may be canceled: ${CANCELABLE.join(", ")}.`,
      paymentIntent,
    );
  }
  const reason = enumOf(call.params, "cancellation_reason", CANCELLATION_REASONS);
  const charge = latestChargeOf(call, paymentIntent);
  if (paymentIntent.status === "requires_capture" && charge !== undefined) {
    releaseHold(call, charge, charge.amount, null);
  }
  const canceled: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "canceled",
    canceled_at: call.nowSeconds,
    cancellation_reason: reason,
    amount_capturable: 0,
    next_action: null,
  };
  call.store.savePaymentIntent(call.realm, canceled);
  emit(call, "payment_intent.canceled", canceled);
  return canceled;
}

/** `POST /v1/payment_intents/:id/capture`: once, all or part; the rest is released. */
export function capturePaymentIntent(call: Call): Stripe.PaymentIntent {
  const paymentIntent = paymentIntentOf(call);
  if (paymentIntent.status !== "requires_capture") {
    throw unexpectedState(
      `This PaymentIntent could not be captured because it has a status of ${paymentIntent.status}. Only a ` +
        "PaymentIntent with one of the following statuses may be captured: requires_capture.",
      paymentIntent,
    );
  }
  const text = textOf(call.params, "amount_to_capture");
  if (text !== null && !/^[1-9]\d*$/.test(text)) {
    throw invalidRequest(
      `Invalid positive integer: ${text}`,
      "parameter_invalid_integer",
      "amount_to_capture",
    );
  }
  const amount = text === null ? paymentIntent.amount_capturable : Number(text);
  if (amount > paymentIntent.amount_capturable) {
    throw invalidRequest(
      `The provided value ${text ?? ""} for amount_to_capture is greater than the remaining amount capturable ` +
        `${paymentIntent.amount_capturable} for this PaymentIntent.`,
      "amount_too_large",
      "amount_to_capture",
    );
  }
  const charge = latestChargeOf(call, paymentIntent);
  if (charge !== undefined) {
    const taken = { ...charge, captured: true, amount_captured: amount };
    call.store.saveCharge(call.realm, taken);
    releaseHold(call, taken, charge.amount - amount, null);
    afterCapture(call, call.realm.charges.get(charge.id) ?? taken);
  }
  const captured: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "succeeded",
    amount_received: amount,
    amount_capturable: 0,
  };
  call.store.savePaymentIntent(call.realm, captured);
  emit(call, "payment_intent.succeeded", captured);
  return captured;
}

function missingMethod(paymentIntent: Stripe.PaymentIntent | null): StripeFailure {
  const message =
    "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the " +
    "PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method.";
  return paymentIntent === null
    ? invalidRequest(message, "payment_intent_unexpected_state", "payment_method")
    : unexpectedState(message, paymentIntent);
}

function notConfirmable(paymentIntent: Stripe.PaymentIntent): StripeFailure {
  return unexpectedState(
    paymentIntent.status === "succeeded"
      ? "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed."
      : `You cannot confirm this PaymentIntent because it has a status of ${paymentIntent.status}. Only a PaymentIntent ` +
          `with one of the following statuses may be confirmed: ${CONFIRMABLE.join(", ")}.`,
    paymentIntent,
  );
}

function notUpdatable(paymentIntent: Stripe.PaymentIntent, name: string): StripeFailure {
  return unexpectedState(
    `This PaymentIntent's ${name} could not be updated because it has a status of ${paymentIntent.status}. You may only ` +
      `update the ${name} of a PaymentIntent with one of the following statuses: ${CONFIRMABLE.join(", ")}.`,
    paymentIntent,
  );
}
