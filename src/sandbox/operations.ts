import type Stripe from "stripe";
import { type Call, paymentIntentOf } from "./call.js";
import { resourceMissing } from "./errors.js";
import { limitOf, namesOf, PAGE_PARAMETERS, textOf } from "./parameters.js";
import {
  createdWindowOf,
  type ListBody,
  listPaymentIntents,
  searchPaymentIntents,
} from "./payment-intent-lists.js";
import { clientView } from "./payment-intent-object.js";
import {
  cancelPaymentIntent,
  capturePaymentIntent,
  confirmPaymentIntent,
  createPaymentIntent,
  updatePaymentIntent,
} from "./payment-intent-operations.js";
import { renderPaymentMethod } from "./payment-methods.js";

/** Names of the calls, as fault rules and the request log use them. */
export const CALL_NAMES = [
  "payment_intents.create",
  "payment_intents.confirm",
  "payment_intents.update",
  "payment_intents.cancel",
  "payment_intents.capture",
  "payment_intents.retrieve",
  "payment_intents.list",
  "payment_intents.search",
  "charges.retrieve",
  "payment_methods.retrieve",
  "events.list",
  "events.retrieve",
  "account.retrieve",
] as const;
export type CallName = (typeof CALL_NAMES)[number];

export interface Operation {
  readonly name: CallName;
  readonly method: "GET" | "POST";
  /** Path below `/v1/`; `:id` is the object's id. */
  readonly path: string;
  readonly known: ReadonlySet<string>;
  /** Open to a publishable key that shows the object's client secret. */
  readonly client: boolean;
  readonly run: (call: Call) => object;
}

// Parameter names of stripe@23.1.0's PaymentIntent*Params.
const SHARED =
  "allowed_payment_method_types payment_method_types amount_details capture_method excluded_payment_method_types expand hooks payment_details " +
  "payment_method payment_method_data payment_method_options receipt_email setup_future_usage shipping";
const DESCRIBING =
  "amount application_fee_amount currency customer customer_account description metadata payment_method_configuration " +
  "statement_descriptor statement_descriptor_suffix transfer_data transfer_group";
const CONFIRMING =
  "confirmation_token error_on_requires_action mandate mandate_data off_session radar_options return_url use_stripe_sdk";

function names(...groups: string[]): ReadonlySet<string> {
  return new Set(groups.flatMap((group) => group.split(" ")));
}

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

/** What goes out: the client's view for a publishable key, with `expand` applied where it was asked for. */
export function presented(call: Call, body: object): object {
  const view = call.caller.publishable ? clientView(body as Stripe.PaymentIntent) : body;
  if (call.params["expand"] === undefined) return view;
  const wanted = namesOf(call.params, "expand");
  if ("data" in view && Array.isArray(view.data)) {
    const inner = wanted.filter((name) => name.startsWith("data.")).map((name) => name.slice("data.".length));
    return { ...view, data: view.data.map((each: object) => expanded(call, each, inner)) };
  }
  return expanded(call, view, wanted);
}

function expanded(call: Call, body: object, wanted: readonly string[]): object {
  const changes: Record<string, unknown> = {};
  const members = body as Record<string, unknown>;
  for (const name of wanted) {
    const id = members[name];
    if (typeof id !== "string") continue;
    if (name === "latest_charge") changes[name] = call.realm.charges.get(id) ?? id;
    if (name === "payment_intent") changes[name] = call.realm.paymentIntents.get(id) ?? id;
    const method = name === "payment_method" ? call.realm.paymentMethods.get(id) : undefined;
    if (method !== undefined) changes[name] = renderPaymentMethod(method);
  }
  return { ...body, ...changes };
}

function found<T>(call: Call, object: T | undefined, kind: string): T {
  if (object === undefined) throw resourceMissing(404, kind, call.objectId ?? "", "id");
  return object;
}

function listEvents(call: Call): ListBody<Stripe.Event> {
  const limit = limitOf(call.params);
  const window = createdWindowOf(call.params);
  const type = textOf(call.params, "type");
  const types = namesOf(call.params, "types");
  const after = textOf(call.params, "starting_after");
  const before = textOf(call.params, "ending_before");
  const matching = call.realm.events
    .map(({ event }) => event)
    .filter(
      (event) =>
        (window.from === null || event.created >= window.from) &&
        (window.to === null || event.created <= window.to) &&
        (type === null || matchesType(event.type, type)) &&
        (types.length === 0 || types.some((each) => matchesType(event.type, each))),
    )
    .reverse();
  const cursor = after ?? before;
  const place = cursor === null ? -1 : matching.findIndex((event) => event.id === cursor);
  if (cursor !== null && place === -1) throw resourceMissing(400, "event", cursor, "starting_after");
  const candidates = before === null ? matching.slice(place + 1) : matching.slice(0, place);
  const data = before === null ? candidates.slice(0, limit) : candidates.slice(-limit);
  return { object: "list", data, has_more: candidates.length > limit, url: "/v1/events" };
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
