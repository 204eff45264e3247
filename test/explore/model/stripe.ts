import type { ProviderCall } from "../../../src/domain/provider.js";
import { KEY_KEPT_MS } from "./clock.js";
import type { Request } from "./request.js";
import { type Effect, performCall, readObject } from "./stripe-calls.js";
import type { Reply, SavedAnswer, Stripe, Way } from "./stripe-objects.js";

/**
 * Stripe, from its documentation and not from the sandbox: objects, idempotency keys and what a request does when it
 * is executed. When that happens, and whether anybody hears of it, is not decided here.
 */

const RATE_LIMITED: Reply = failed(429, "rate_limit_error", "rate_limit");
const OBJECT_LOCKED: Reply = failed(429, "invalid_request_error", "lock_timeout");
const KEY_IN_USE: Reply = failed(409, "invalid_request_error", "idempotency_key_in_use");
const SERVER_ERROR: Reply = failed(500, "api_error", null);
const MISMATCH: Reply = failed(400, "idempotency_error", null);

function failed(status: number, type: string, code: string | null): Reply {
  return { status, replayed: false, error: { type, code, declineCode: null, param: null }, body: null };
}

export function savedAnswer(stripe: Stripe, request: Request): SavedAnswer | null {
  const { account, key } = request;
  return stripe.saved.find((saved) => saved.account === account && saved.key === key) ?? null;
}

export function mayBePruned(saved: SavedAnswer, nowMs: number): boolean {
  return nowMs - saved.savedAtMs >= KEY_KEPT_MS;
}

/** What the request does, and what Stripe answers to it. */
export function execute(
  stripe: Stripe,
  request: Request,
  way: Way,
  nowMs: number,
): { readonly stripe: Stripe; readonly reply: Reply } {
  if (way.type === "rate_limited") return { stripe, reply: RATE_LIMITED };
  if (way.type === "key_in_use") return { stripe, reply: KEY_IN_USE };
  if (way.type === "object_locked") return { stripe, reply: OBJECT_LOCKED };
  const { call } = request;
  if (!isSend(call)) {
    const shown = way.type === "lagging_list" ? { ...stripe, intents: [], refunds: [] } : stripe;
    return { stripe, reply: readObject(shown, request) };
  }
  const saved = savedAnswer(stripe, request);
  if (saved !== null && !way.pruned) {
    if (saved.request !== usedFor(request)) return { stripe, reply: MISMATCH };
    return { stripe, reply: { ...saved.reply, replayed: true } };
  }
  const done: Effect =
    way.type === "error_before_effect"
      ? { stripe, reply: SERVER_ERROR }
      : performCall(stripe, request, call, way.answer, nowMs);
  const reply = way.type === "as_asked" ? done.reply : SERVER_ERROR;
  return { stripe: withAnswer(done.stripe, request, reply, nowMs), reply };
}

export function isSend(call: Request["call"]): call is ProviderCall {
  return !["get", "find", "get_refund", "find_refund"].includes(call);
}

function withAnswer(stripe: Stripe, request: Request, reply: Reply, nowMs: number): Stripe {
  const { account, key } = request;
  if (key === null) throw new Error(`a ${request.call} went out without an idempotency key`);
  const others = stripe.saved.filter((saved) => saved.account !== account || saved.key !== key);
  const saved = [...others, { account, key, request: usedFor(request), savedAtMs: nowMs, reply }];
  saved.sort((one, other) => (`${one.account} ${one.key}` < `${other.account} ${other.key}` ? -1 : 1));
  return { ...stripe, saved };
}

function usedFor({ call, target, parameters }: Request): string {
  const endpoint = call === "fence" ? "cancel" : call;
  return `${endpoint} ${target ?? ""} ${parameters ?? ""}`;
}
