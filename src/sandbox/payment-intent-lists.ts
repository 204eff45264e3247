import type Stripe from "stripe";
import type { Call } from "./call.js";
import { invalidRequest, resourceMissing } from "./errors.js";
import type { Params } from "./form.js";
import { limitOf, textOf } from "./parameters.js";
import { parseSearch } from "./search-query.js";

/** Seconds since 1970, both ends included; null is open. */
export interface CreatedWindow {
  readonly from: number | null;
  readonly to: number | null;
}

export interface ListBody<T> {
  readonly object: "list";
  readonly data: T[];
  readonly has_more: boolean;
  readonly url: string;
}

/** `created=…`, `created[gte|gt|lte|lt]=…`. Throws 400. */
export function createdWindowOf(params: Params): CreatedWindow {
  const given = params["created"];
  if (given === undefined) return { from: null, to: null };
  if (typeof given === "string") {
    const at = seconds(given, "created");
    return { from: at, to: at };
  }
  let from: number | null = null;
  let to: number | null = null;
  for (const [bound, value] of Object.entries(given)) {
    const at = seconds(value, `created[${bound}]`);
    if (bound === "gte") from = Math.max(from ?? at, at);
    else if (bound === "gt") from = Math.max(from ?? at + 1, at + 1);
    else if (bound === "lte") to = Math.min(to ?? at, at);
    else if (bound === "lt") to = Math.min(to ?? at - 1, at - 1);
    else
      throw invalidRequest(
        `Received unknown parameter: created[${bound}]`,
        "parameter_unknown",
        `created[${bound}]`,
      );
  }
  return { from, to };
}

/** `GET /v1/payment_intents`: newest first, immediately consistent. */
export function listPaymentIntents(call: Call): ListBody<Stripe.PaymentIntent> {
  const { params, realm } = call;
  const limit = limitOf(params);
  const window = createdWindowOf(params);
  const customer = textOf(params, "customer");
  const after = cursorOf(call, "starting_after");
  const before = cursorOf(call, "ending_before");
  if (after !== null && before !== null) {
    throw invalidRequest("You may only specify one of these parameters: ending_before, starting_after.");
  }
  const order = realm.paymentIntentOrder;
  const matches = (id: string | undefined): Stripe.PaymentIntent | null => {
    const found = id === undefined ? undefined : realm.paymentIntents.get(id);
    if (found === undefined || (customer !== null && found.customer !== customer)) return null;
    if (window.from !== null && found.created < window.from) return null;
    return window.to !== null && found.created > window.to ? null : found;
  };
  const data: Stripe.PaymentIntent[] = [];
  let hasMore = false;
  if (before !== null) {
    const end = window.to === null ? order.length : positionAfter(call, window.to);
    for (let at = before + 1; at < end && !hasMore; at += 1) {
      const found = matches(order[at]);
      if (found === null) continue;
      if (data.length === limit) hasMore = true;
      else data.unshift(found);
    }
    return { object: "list", data, has_more: hasMore, url: "/v1/payment_intents" };
  }
  const start = Math.min(
    after ?? order.length,
    window.to === null ? order.length : positionAfter(call, window.to),
  );
  for (let at = start - 1; at >= 0 && !hasMore; at -= 1) {
    const found = matches(order[at]);
    if (found === null) {
      if (window.from !== null && createdAt(call, at) < window.from) break;
      continue;
    }
    if (data.length === limit) hasMore = true;
    else data.push(found);
  }
  return { object: "list", data, has_more: hasMore, url: "/v1/payment_intents" };
}

export interface SearchBody {
  readonly object: "search_result";
  readonly data: Stripe.PaymentIntent[];
  readonly has_more: boolean;
  readonly next_page: string | null;
  readonly url: string;
}

/** `GET /v1/payment_intents/search`: an object shows up only when the search lag has passed since it was made. */
export function searchPaymentIntents(call: Call): SearchBody {
  const { params, realm } = call;
  const query = textOf(params, "query");
  if (query === null) throw invalidRequest("Missing required param: query.", "parameter_missing", "query");
  const limit = limitOf(params);
  const matches = parseSearch(query);
  const page = textOf(params, "page");
  if (page !== null && !/^\d+$/.test(page)) throw invalidRequest("Invalid page.", undefined, "page");
  const indexedUntil = call.nowSeconds - call.settings.search_lag_ms / 1000;
  let skip = page === null ? 0 : Number(page);
  const data: Stripe.PaymentIntent[] = [];
  let hasMore = false;
  for (let at = realm.paymentIntentOrder.length - 1; at >= 0 && !hasMore; at -= 1) {
    const found = realm.paymentIntents.get(realm.paymentIntentOrder[at] as string);
    if (found === undefined || found.created > indexedUntil || !matches(found)) continue;
    if (skip > 0) skip -= 1;
    else if (data.length === limit) hasMore = true;
    else data.push(found);
  }
  const next = hasMore ? String((page === null ? 0 : Number(page)) + data.length) : null;
  return {
    object: "search_result",
    data,
    has_more: hasMore,
    next_page: next,
    url: "/v1/payment_intents/search",
  };
}

function cursorOf(call: Call, name: "starting_after" | "ending_before"): number | null {
  const id = textOf(call.params, name);
  if (id === null) return null;
  const found = call.realm.paymentIntents.get(id);
  if (found === undefined) throw resourceMissing(400, "payment_intent", id, name);
  // The ids of one second lie together: at most those are looked through.
  let at = positionAfter(call, found.created) - 1;
  while (at >= 0 && call.realm.paymentIntentOrder[at] !== id) at -= 1;
  return at;
}

/** How many objects were created in that second or before: the list is sorted by `created`. */
function positionAfter(call: Call, second: number): number {
  let low = 0;
  let high = call.realm.paymentIntentOrder.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (createdAt(call, middle) <= second) low = middle + 1;
    else high = middle;
  }
  return low;
}

function createdAt(call: Call, at: number): number {
  const id = call.realm.paymentIntentOrder[at];
  return (id === undefined ? undefined : call.realm.paymentIntents.get(id))?.created ?? 0;
}

function seconds(value: string | Params, name: string): number {
  if (typeof value !== "string" || !/^\d+$/.test(value)) {
    throw invalidRequest(
      `Invalid integer: ${typeof value === "string" ? value : "object"}`,
      "parameter_invalid_integer",
      name,
    );
  }
  return Number(value);
}
