import type Stripe from "stripe";
import type { Call } from "./call.js";
import { invalidRequest, resourceMissing } from "./errors.js";
import type { Params } from "./form.js";
import { booleanOf, customerOf, descriptorSuffixOf, enumOf, namesOf, textOf } from "./parameters.js";
import type { AttemptOptions } from "./payment-attempt.js";
import { behaviourOf, newPaymentMethod, type StoredPaymentMethod } from "./payment-methods.js";

const SETUP_USAGES = ["off_session", "on_session"] as const;

/** Members that several calls may set and that nothing depends on. An empty value unsets. */
export function descriptiveChanges(params: Params): Partial<Stripe.PaymentIntent> {
  const changes: Partial<Stripe.PaymentIntent> = {};
  if (params["customer"] !== undefined) changes.customer = customerOf(params);
  if (params["description"] !== undefined) changes.description = textOf(params, "description");
  if (params["receipt_email"] !== undefined) changes.receipt_email = textOf(params, "receipt_email");
  if (params["setup_future_usage"] !== undefined) {
    changes.setup_future_usage = enumOf(params, "setup_future_usage", SETUP_USAGES);
  }
  if (params["statement_descriptor"] !== undefined) {
    throw invalidRequest(
      "statement_descriptor is for charges that are not by card: set statement_descriptor_suffix instead.",
      undefined,
      "statement_descriptor",
    );
  }
  if (params["statement_descriptor_suffix"] !== undefined) {
    changes.statement_descriptor_suffix = descriptorSuffixOf(params);
  }
  if (params["transfer_group"] !== undefined) changes.transfer_group = textOf(params, "transfer_group");
  return changes;
}

/** The payment method that the call names: a test token, or one of the account's own. Throws 400. */
export function givenMethod(call: Call): StoredPaymentMethod | null {
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

export function presentMethod(call: Call, paymentIntent: Stripe.PaymentIntent): StoredPaymentMethod | null {
  const id = paymentIntent.payment_method;
  return typeof id === "string" ? (call.realm.paymentMethods.get(id) ?? null) : null;
}

/** Since this version `payment_method_types` can only be read (docs.stripe.com/changelog/endive/2026-09-30). */
const METHOD_TYPES_READ_ONLY_SINCE = "2026-09-30";

// docs.stripe.com/changelog/dahlia/2026-07-29/allowed-payment-method-types-parameter
const EXCLUDED_BY_ALLOWED_TYPES = [
  "automatic_payment_methods",
  "excluded_payment_method_types",
  "payment_method_configuration",
  "payment_method_types",
] as const;

type MethodTypes = Pick<
  Stripe.PaymentIntent,
  "allowed_payment_method_types" | "automatic_payment_methods" | "payment_method_types"
>;

/** Which payment methods the object takes. Throws 400 for a combination that Stripe refuses. */
export function methodTypesOf(call: Call): MethodTypes {
  const { params } = call;
  checkMethodTypes(call);
  const allowed = namesOf(params, "allowed_payment_method_types");
  const types = namesOf(params, "payment_method_types");
  const given = params["automatic_payment_methods"];
  const redirects = given === undefined || typeof given === "string" ? undefined : given["allow_redirects"];
  const listed = allowed.length > 0 || types.length > 0;
  return {
    allowed_payment_method_types: allowed.length > 0 ? allowed : null,
    automatic_payment_methods: listed
      ? null
      : { allow_redirects: redirects === "never" ? "never" : "always", enabled: true },
    // Only cards are compatible with the sandbox.
    payment_method_types: ["card"],
  };
}

export function checkMethodTypes(call: Call): void {
  const { params, stripeVersion } = call;
  if (
    params["payment_method_types"] !== undefined &&
    stripeVersion.slice(0, 10) >= METHOD_TYPES_READ_ONLY_SINCE
  ) {
    throw invalidRequest(
      "payment_method_types can no longer be set: use dynamic payment methods or allowed_payment_method_types.",
      "payment_method_types_no_longer_supported",
      "payment_method_types",
    );
  }
  if (params["allowed_payment_method_types"] === undefined) return;
  const other = EXCLUDED_BY_ALLOWED_TYPES.find((name) => params[name] !== undefined);
  if (other === undefined) return;
  throw invalidRequest(
    `allowed_payment_method_types is mutually exclusive with ${other}: see ` +
      "https://docs.stripe.com/changelog/dahlia/2026-07-29/allowed-payment-method-types-parameter",
    undefined,
    "allowed_payment_method_types",
  );
}

export function attemptOptions(params: Params): AttemptOptions {
  const offSession = params["off_session"];
  return {
    offSession: offSession !== undefined && offSession !== "" && offSession !== "false",
    errorOnRequiresAction: booleanOf(params, "error_on_requires_action"),
    returnUrl: returnUrlOf(params),
  };
}

function returnUrlOf(params: Params): string | null {
  const url = textOf(params, "return_url");
  if (url === null || URL.canParse(url)) return url;
  throw invalidRequest("Not a valid URL", "url_invalid", "return_url");
}

export function checkReturnUrl(paymentIntent: Stripe.PaymentIntent, params: Params): void {
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
