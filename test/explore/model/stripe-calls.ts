import type { ProviderCall } from "../../../src/domain/provider.js";
import { readChargeParameters, readEffectParameters } from "../shipped.js";
import type { Request } from "./request.js";
import type { Answer, Intent, Reply, Stripe, StripeRefund } from "./stripe-objects.js";

export interface Effect {
  readonly stripe: Stripe;
  readonly reply: Reply;
}

function ok(body: Reply["body"]): Reply {
  return { status: 200, replayed: false, error: null, body };
}

function refused(status: number, type: string, code: string | null, param: string | null = null): Reply {
  return { status, replayed: false, error: { type, code, declineCode: null, param }, body: null };
}

const MISSING = refused(404, "invalid_request_error", "resource_missing");
const UNEXPECTED_STATE = refused(400, "invalid_request_error", "payment_intent_unexpected_state");
const DECLINED = refused(402, "card_error", "card_declined");
/** A decline whose card may have been charged all the same: one of those to look at first (docs.stripe.com/declines). */
const MISLEADING = refused(402, "card_error", "processing_error");
const DISPUTED = refused(400, "invalid_request_error", "charge_disputed");
const NOT_THAT_MUCH = refused(400, "invalid_request_error", null, "amount");

/** Executes a call whose key is new. */
export function performCall(
  stripe: Stripe,
  request: Request,
  call: ProviderCall,
  answer: Answer | null,
  nowMs: number,
): Effect {
  switch (call) {
    case "create":
      return create(stripe, request, nowMs);
    case "confirm":
      return onIntent(stripe, request, (intent) => confirm(intent, answer));
    case "fence":
    case "cancel":
      return onIntent(stripe, request, cancel);
    case "capture":
      return onIntent(stripe, request, (intent) => capture(intent, amountToCapture(request)));
    case "refund":
      return refund(stripe, request, answer);
  }
}

function create(stripe: Stripe, { account, parameters }: Request, nowMs: number): Effect {
  const { create: asked } = readChargeParameters(parameters ?? "");
  const intent: Intent = {
    id: `pi_${stripe.intents.length + 1}`,
    account,
    createdAtMs: nowMs,
    status: "requires_confirmation",
    amount: asked.amount,
    currency: asked.currency,
    captureMethod: asked.capture_method ?? "automatic",
    received: 0,
    capturable: 0,
    failed: false,
    cancellationReason: null,
    metadata: asked.metadata as Record<string, string>,
    charges: 0,
  };
  return { stripe: { ...stripe, intents: [...stripe.intents, intent] }, reply: ok(intent) };
}

type IntentCall = (intent: Intent) => { readonly intent: Intent; readonly refusal: Reply | null };

function onIntent(stripe: Stripe, { account, target }: Request, call: IntentCall): Effect {
  const intent = stripe.intents.find((one) => one.id === target && one.account === account);
  if (intent === undefined) return { stripe, reply: MISSING };
  const done = call(intent);
  return { stripe: withIntent(stripe, done.intent), reply: done.refusal ?? ok(done.intent) };
}

export function withIntent(stripe: Stripe, intent: Intent): Stripe {
  return { ...stripe, intents: stripe.intents.map((one) => (one.id === intent.id ? intent : one)) };
}

function confirm(intent: Intent, answer: Answer | null): ReturnType<IntentCall> {
  if (intent.status !== "requires_confirmation") return { intent, refusal: UNEXPECTED_STATE };
  switch (answer) {
    case "pays":
      return { intent: paid(intent), refusal: null };
    case "misleads":
      return { intent: paid(intent), refusal: MISLEADING };
    case "declines":
      return { intent: { ...intent, status: "requires_payment_method", failed: true }, refusal: DECLINED };
    case "asks":
      return { intent: { ...intent, status: "requires_action" }, refusal: null };
    case "pends":
      return { intent: { ...intent, status: "processing" }, refusal: null };
    case "refunds":
    case "refund_pends":
    case null:
      throw new Error(`a card answered ${String(answer)}`);
  }
}

/** Money was taken, or held where the capture is manual. */
export function paid(intent: Intent): Intent {
  const held = intent.captureMethod === "manual";
  return {
    ...intent,
    status: held ? "requires_capture" : "succeeded",
    received: held ? 0 : intent.amount,
    capturable: held ? intent.amount : 0,
    failed: false,
    charges: intent.charges + 1,
  };
}

const CANCELABLE = [
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "requires_capture",
];

function cancel(intent: Intent): ReturnType<IntentCall> {
  if (!CANCELABLE.includes(intent.status)) return { intent, refusal: UNEXPECTED_STATE };
  return { intent: { ...intent, status: "canceled", capturable: 0 }, refusal: null };
}

function amountToCapture({ parameters }: Request): number {
  return readEffectParameters(parameters ?? "", "capture").parameters.amount_to_capture ?? 0;
}

/** Once, all or part: the rest is released. */
export function capture(intent: Intent, amount: number): ReturnType<IntentCall> {
  if (intent.status !== "requires_capture") return { intent, refusal: UNEXPECTED_STATE };
  return { intent: { ...intent, status: "succeeded", received: amount, capturable: 0 }, refusal: null };
}

function refund(stripe: Stripe, { account, parameters }: Request, answer: Answer | null): Effect {
  const asked = readEffectParameters(parameters ?? "", "refund").parameters;
  const intent = stripe.intents.find((one) => one.id === asked.payment_intent && one.account === account);
  if (intent === undefined) return { stripe, reply: { ...MISSING, status: 400 } };
  if (isDisputed(stripe, intent.id)) return { stripe, reply: DISPUTED };
  if (asked.amount > intent.received - refundedOf(stripe, intent.id)) return { stripe, reply: NOT_THAT_MUCH };
  const made: StripeRefund = {
    id: `re_stripe_${stripe.refunds.length + 1}`,
    account,
    intentId: intent.id,
    amount: asked.amount,
    currency: intent.currency,
    status: answer === "refund_pends" ? "pending" : "succeeded",
    metadata: asked.metadata as Record<string, string>,
  };
  return { stripe: { ...stripe, refunds: [...stripe.refunds, made] }, reply: ok(made) };
}

/** Nothing is refunded while a dispute has the money, nor once it was lost (docs.stripe.com/error-codes). */
export function isDisputed(stripe: Stripe, intentId: string): boolean {
  return stripe.disputes.some((one) => one.intentId === intentId && one.status !== "won");
}

/** What was given back of an intent, or is on its way. */
export function refundedOf(stripe: Stripe, intentId: string): number {
  return stripe.refunds
    .filter((one) => one.intentId === intentId && one.status !== "failed")
    .reduce((sum, one) => sum + one.amount, 0);
}

/** Answers a question. v1 lists are immediately consistent (docs.stripe.com/api-v2-overview). */
export function readObject(stripe: Stripe, request: Request): Reply {
  const { account, call, target, createdFromMs } = request;
  switch (call) {
    case "get":
      return okOrMissing(stripe.intents.find((one) => one.id === target && one.account === account));
    case "get_refund":
      return okOrMissing(stripe.refunds.find((one) => one.id === target && one.account === account));
    case "find":
      return ok(
        stripe.intents.filter((one) => one.account === account && one.createdAtMs >= (createdFromMs ?? 0)),
      );
    case "find_refund":
      return ok(stripe.refunds.filter((one) => one.account === account && one.intentId === target));
    case "create":
    case "confirm":
    case "fence":
    case "capture":
    case "cancel":
    case "refund":
      throw new Error(`${call} is no question`);
  }
}

function okOrMissing(object: Intent | StripeRefund | undefined): Reply {
  return object === undefined ? MISSING : ok(object);
}
