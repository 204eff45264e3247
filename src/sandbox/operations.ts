import type Stripe from "stripe";
import { AFTER_CHARGE_OPERATIONS } from "./after-charge-operations.js";
import { type Call, paymentIntentOf } from "./call.js";
import { resourceMissing } from "./errors.js";
import { listed, pageOf } from "./object-lists.js";
import { names, type Operation } from "./operation.js";
import { namesOf, PAGE_PARAMETERS, textOf } from "./parameters.js";
import { type ListBody, listPaymentIntents, searchPaymentIntents } from "./payment-intent-lists.js";
import {
  cancelPaymentIntent,
  capturePaymentIntent,
  confirmPaymentIntent,
  createPaymentIntent,
  updatePaymentIntent,
} from "./payment-intent-operations.js";
import { renderPaymentMethod } from "./payment-methods.js";

// Parameter names of stripe@23.1.0's PaymentIntent*Params.
const SHARED =
  "allowed_payment_method_types payment_method_types amount_details capture_method excluded_payment_method_types expand hooks payment_details " +
  "payment_method payment_method_data payment_method_options receipt_email setup_future_usage shipping";
const DESCRIBING =
  "amount application_fee_amount currency customer customer_account description metadata payment_method_configuration " +
  "statement_descriptor statement_descriptor_suffix transfer_data transfer_group";
const CONFIRMING =
  "confirmation_token error_on_requires_action mandate mandate_data off_session radar_options return_url use_stripe_sdk";

const OPERATIONS: readonly Operation[] = [
  {
    name: "payment_intents.create",
    method: "POST",
    path: "payment_intents",
    known: names(
      SHARED,
      DESCRIBING,
      CONFIRMING,
      "automatic_payment_methods confirm confirmation_method on_behalf_of",
    ),
    client: false,
    run: createPaymentIntent,
  },
  {
    name: "payment_intents.confirm",
    method: "POST",
    path: "payment_intents/:id/confirm",
    known: names(SHARED, CONFIRMING, "amount_to_confirm client_secret key"),
    client: true,
    run: confirmPaymentIntent,
  },
  {
    name: "payment_intents.update",
    method: "POST",
    path: "payment_intents/:id",
    known: names(SHARED, DESCRIBING),
    client: false,
    run: updatePaymentIntent,
  },
  {
    name: "payment_intents.cancel",
    method: "POST",
    path: "payment_intents/:id/cancel",
    known: names("cancellation_reason expand"),
    client: false,
    run: cancelPaymentIntent,
  },
  {
    name: "payment_intents.capture",
    method: "POST",
    path: "payment_intents/:id/capture",
    known: names(
      "amount_details amount_to_capture application_fee_amount expand final_capture hooks metadata payment_details " +
        "statement_descriptor statement_descriptor_suffix transfer_data",
    ),
    client: false,
    run: capturePaymentIntent,
  },
  {
    name: "payment_intents.search",
    method: "GET",
    path: "payment_intents/search",
    known: names("query expand limit page"),
    client: false,
    run: searchPaymentIntents,
  },
  {
    name: "payment_intents.retrieve",
    method: "GET",
    path: "payment_intents/:id",
    known: names("client_secret expand key"),
    client: true,
    run: paymentIntentOf,
  },
  {
    name: "payment_intents.list",
    method: "GET",
    path: "payment_intents",
    known: new Set([...PAGE_PARAMETERS, "created", "customer", "customer_account"]),
    client: false,
    run: listPaymentIntents,
  },
  {
    name: "charges.retrieve",
    method: "GET",
    path: "charges/:id",
    known: names("expand"),
    client: false,
    run: (call) => found(call, call.realm.charges.get(call.objectId ?? ""), "charge"),
  },
  {
    name: "payment_methods.retrieve",
    method: "GET",
    path: "payment_methods/:id",
    known: names("expand"),
    client: false,
    run: (call) =>
      renderPaymentMethod(found(call, call.realm.paymentMethods.get(call.objectId ?? ""), "PaymentMethod")),
  },
  {
    name: "events.list",
    method: "GET",
    path: "events",
    known: new Set([...PAGE_PARAMETERS, "created", "type", "types", "delivery_success"]),
    client: false,
    run: listEvents,
  },
  {
    name: "events.retrieve",
    method: "GET",
    path: "events/:id",
    known: names("expand"),
    client: false,
    run: (call) =>
      found(call, call.realm.events.find(({ event }) => event.id === call.objectId)?.event, "event"),
  },
  {
    name: "account.retrieve",
    method: "GET",
    path: "account",
    known: names("expand"),
    client: false,
    run: ownAccount,
  },
  ...AFTER_CHARGE_OPERATIONS,
];

interface Route {
  readonly operation: Operation;
  readonly objectId: string | null;
}

const EXACT = new Map(
  OPERATIONS.map((operation) => [`${operation.method} /v1/${operation.path}`, operation]),
);

/** The operation of a path, without its query; null where Stripe's API (as far as the sandbox has it) has none. */
export function routeOf(method: string, path: string): Route | null {
  const exact = EXACT.get(`${method} ${path}`);
  if (exact !== undefined) return { operation: exact, objectId: null };
  const [empty, version, collection, id, action, ...more] = path.split("/");
  if (empty !== "" || version !== "v1" || id === undefined || id === "" || more.length > 0) return null;
  const pattern = `${collection ?? ""}/:id${action === undefined ? "" : `/${action}`}`;
  const operation = EXACT.get(`${method} /v1/${pattern}`);
  return operation === undefined ? null : { operation, objectId: id };
}

function found<T>(call: Call, object: T | undefined, kind: string): T {
  if (object === undefined) throw resourceMissing(404, kind, call.objectId ?? "", "id");
  return object;
}

function listEvents(call: Call): ListBody<Stripe.Event> {
  const type = textOf(call.params, "type");
  const types = namesOf(call.params, "types");
  return pageOf(call, listed(call.realm.events.map(({ event }) => event)), {
    kind: "event",
    url: "/v1/events",
    matches: (event) =>
      (type === null || matchesType(event.type, type)) &&
      (types.length === 0 || types.some((each) => matchesType(event.type, each))),
  });
}

function matchesType(type: string, wanted: string): boolean {
  return wanted.endsWith("*") ? type.startsWith(wanted.slice(0, -1)) : type === wanted;
}

function ownAccount(call: Call): Stripe.Account {
  return {
    id: call.caller.account,
    object: "account",
    business_profile: null,
    capabilities: { card_payments: "active" },
    charges_enabled: true,
    country: "US",
    created: 1_700_000_000,
    default_currency: "usd",
    details_submitted: true,
    email: null,
    payouts_enabled: true,
    type: "standard",
  };
}
