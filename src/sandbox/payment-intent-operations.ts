import type Stripe from "stripe";
import { type Call, emit, paymentIntentOf } from "./call.js";
import { checkedAmount, checkedCurrency } from "./currencies.js";
import { invalidRequest, resourceMissing, unexpectedState } from "./errors.js";
import type { Params } from "./form.js";
import { randomText, stripeId } from "./ids.js";
import {
  booleanOf,
  customerOf,
  descriptorSuffixOf,
  enumOf,
  mergedMetadata,
  metadataOf,
  namesOf,
  required,
  textOf,
} from "./parameters.js";
import { type AttemptOptions, attemptPayment } from "./payment-attempt.js";
import { blankPaymentIntent } from "./payment-intent-object.js";
import { behaviourOf, newPaymentMethod, type StoredPaymentMethod } from "./payment-methods.js";

const CAPTURE_METHODS = ["automatic", "automatic_async", "manual"] as const;
const CONFIRMATION_METHODS = ["automatic", "manual"] as const;
const SETUP_USAGES = ["off_session", "on_session"] as const;
const CANCELLATION_REASONS = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"] as const;

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
  const types = namesOf(params, "payment_method_types");
  const created: Stripe.PaymentIntent = {
    ...blank,
    ...descriptiveChanges(params),
    capture_method: enumOf(params, "capture_method", CAPTURE_METHODS) ?? "automatic_async",
    confirmation_method: enumOf(params, "confirmation_method", CONFIRMATION_METHODS) ?? "automatic",
    metadata: mergedMetadata({}, metadataOf(params) ?? {}),
    payment_method_types: types.length > 0 ? types : ["card"],
    automatic_payment_methods: types.length > 0 ? null : automaticMethodsOf(params),
    payment_method: method?.id ?? null,
    status: method === null ? "requires_payment_method" : "requires_confirmation",
  };
  const confirms = booleanOf(params, "confirm");
  if (confirms) checkReturnUrl(created, params);
  if (confirms && method === null) throw missingMethod(null);
  call.store.savePaymentIntent(call.realm, created);
  emit(call, "payment_intent.created", created);
  return confirms && method !== null
    ? attemptPayment(call, created, method, attemptOptions(params))
    : created;
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
  const charge =
    typeof paymentIntent.latest_charge === "string"
      ? call.realm.charges.get(paymentIntent.latest_charge)
      : undefined;
  if (paymentIntent.status === "requires_capture" && charge !== undefined) {
    call.store.saveCharge(call.realm, { ...charge, refunded: true, amount_refunded: charge.amount });
  }
  const canceled: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "canceled",
    canceled_at: call.nowSeconds,
    cancellation_reason: enumOf(call.params, "cancellation_reason", CANCELLATION_REASONS),
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
  const charge =
    typeof paymentIntent.latest_charge === "string"
      ? call.realm.charges.get(paymentIntent.latest_charge)
      : undefined;
  if (charge !== undefined) {
    call.store.saveCharge(call.realm, {
      ...charge,
      captured: true,
      amount_captured: amount,
      amount_refunded: charge.amount - amount,
    });
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

/** Members that several calls may set and that nothing depends on. An empty value unsets. */
function descriptiveChanges(params: Params): Partial<Stripe.PaymentIntent> {
  const changes: Partial<Stripe.PaymentIntent> = {};
  if (params["customer"] !== undefined) changes.customer = customerOf(params);
  if (params["description"] !== undefined) changes.description = textOf(params, "description");
  if (params["receipt_email"] !== undefined) changes.receipt_email = textOf(params, "receipt_email");
  if (params["setup_future_usage"] !== undefined) {
    changes.setup_future_usage = enumOf(params, "setup_future_usage", SETUP_USAGES);
  }
  if (params["statement_descriptor"] !== undefined) {
    changes.statement_descriptor = textOf(params, "statement_descriptor");
  }
  if (params["statement_descriptor_suffix"] !== undefined) {
    changes.statement_descriptor_suffix = descriptorSuffixOf(params);
  }
  if (params["transfer_group"] !== undefined) changes.transfer_group = textOf(params, "transfer_group");
  return changes;
}

/** The payment method that the call names: a test token, or one of the account's own. Throws 400. */
function givenMethod(call: Call): StoredPaymentMethod | null {
  const named = textOf(call.params, "payment_method") ?? tokenOfData(call.params);
  if (named === null) return null;
  const own = call.realm.paymentMethods.get(named);
  if (own !== undefined) return own;
  if (behaviourOf(named) === null) throw resourceMissing(400, "PaymentMethod", named, "payment_method");
  const method = newPaymentMethod(named, call.nowSeconds, call.realm.livemode);
  call.store.savePaymentMethod(call.realm, method);
  return method;
}

/** `payment_method_data[type]=card` with `[card][token]=tok_…`. Card numbers are not taken by a sandbox. */
function tokenOfData(params: Params): string | null {
  const data = params["payment_method_data"];
  if (data === undefined) return null;
  const card = typeof data === "string" ? undefined : data["card"];
  const token = card === undefined || typeof card === "string" ? undefined : card["token"];
  if (typeof token !== "string" || !token.startsWith("tok_")) {
    throw invalidRequest(
      "The sandbox takes payment_method_data[card][token]=tok_… and no card numbers.",
      "parameter_missing",
      "payment_method_data[card][token]",
    );
  }
  return `pm_card_${token.slice("tok_".length)}`;
}

function presentMethod(call: Call, paymentIntent: Stripe.PaymentIntent): StoredPaymentMethod | null {
  const id = paymentIntent.payment_method;
  return typeof id === "string" ? (call.realm.paymentMethods.get(id) ?? null) : null;
}

function automaticMethodsOf(params: Params): Stripe.PaymentIntent.AutomaticPaymentMethods {
  const given = params["automatic_payment_methods"];
  const redirects = given === undefined || typeof given === "string" ? undefined : given["allow_redirects"];
  return { allow_redirects: redirects === "never" ? "never" : "always", enabled: true };
}

function attemptOptions(params: Params): AttemptOptions {
  const offSession = params["off_session"];
  return {
    offSession: offSession !== undefined && offSession !== "" && offSession !== "false",
    errorOnRequiresAction: booleanOf(params, "error_on_requires_action"),
    returnUrl: textOf(params, "return_url"),
  };
}

function checkReturnUrl(paymentIntent: Stripe.PaymentIntent, params: Params): void {
  const automatic = paymentIntent.automatic_payment_methods;
  if (automatic === null || automatic.allow_redirects === "never" || textOf(params, "return_url") !== null)
    return;
  throw invalidRequest(
    "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these " +
      "payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't " +
      "want to accept redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and " +
      "`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.",
    undefined,
    "return_url",
  );
}

function missingMethod(paymentIntent: Stripe.PaymentIntent | null) {
  const message =
    "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the " +
    "PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method.";
  return paymentIntent === null
    ? invalidRequest(message, "payment_intent_unexpected_state", "payment_method")
    : unexpectedState(message, paymentIntent);
}

function notConfirmable(paymentIntent: Stripe.PaymentIntent) {
  return unexpectedState(
    paymentIntent.status === "succeeded"
      ? "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed."
      : `You cannot confirm this PaymentIntent because it has a status of ${paymentIntent.status}. Only a PaymentIntent ` +
          `with one of the following statuses may be confirmed: ${CONFIRMABLE.join(", ")}.`,
    paymentIntent,
  );
}

function notUpdatable(paymentIntent: Stripe.PaymentIntent, name: string) {
  return unexpectedState(
    `This PaymentIntent's ${name} could not be updated because it has a status of ${paymentIntent.status}. You may only ` +
      `update the ${name} of a PaymentIntent with one of the following statuses: ${CONFIRMABLE.join(", ")}.`,
    paymentIntent,
  );
}
