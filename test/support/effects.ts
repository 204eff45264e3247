import type { EffectRequest } from "../../src/domain/admit-effect.js";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { getRefund } from "../../src/operations/read-refunds.js";
import { requestEffect } from "../../src/operations/request-effect.js";
import { documentOf, type Harness, newKey, type PayOptions, pay, until } from "./harness.js";

export interface EffectOptions {
  readonly key?: string;
  readonly waitMs?: number;
  readonly explicit?: boolean;
  readonly deps?: Harness["deps"];
}

function request(
  harness: Harness,
  paymentId: string,
  effect: EffectRequest,
  options: EffectOptions,
): Promise<KeyedAnswer> {
  const context = { requestId: `req_${newKey()}`, traceparent: null, signal: new AbortController().signal };
  return requestEffect(
    options.deps ?? harness.deps,
    { caller: harness.caller, context, key: options.key ?? newKey() },
    paymentId,
    effect,
    { waitMs: options.waitMs ?? 10_000, explicit: options.explicit ?? false },
  );
}

/** One `POST /v1/payments/{id}/capture`, past the HTTP layer. */
export function capture(harness: Harness, paymentId: string, amount?: number, options: EffectOptions = {}) {
  return request(harness, paymentId, { kind: "capture", amount: amount ?? null }, options);
}

export function cancel(harness: Harness, paymentId: string, options: EffectOptions = {}) {
  return request(harness, paymentId, { kind: "cancel", reason: null }, options);
}

export function refund(harness: Harness, paymentId: string, amount?: number, options: EffectOptions = {}) {
  const effect = { kind: "refund", amount: amount ?? null, reason: null, metadata: {} } as const;
  return request(harness, paymentId, effect, options);
}

/** A payment of 10000 whose money is held. */
export async function authorized(harness: Harness, options: PayOptions = {}): Promise<string> {
  const input = { amount: 10_000, capture_method: "manual" as const, ...options.input };
  return documentOf(await pay(harness, { ...options, input })).id;
}

/** A payment of 10000 that is paid. */
export async function paid(harness: Harness, options: PayOptions = {}): Promise<string> {
  return documentOf(await pay(harness, { ...options, input: { amount: 10_000, ...options.input } })).id;
}

/** Status and, for a problem, code of a final answer; 202 where the work goes on. */
export function outcomeOf(answer: KeyedAnswer): string {
  if (answer.type === "processing") return "202";
  const { status, body } = answer.response;
  const { code } = JSON.parse(body) as { code?: string };
  return status < 300 ? String(status) : `${status} ${code}`;
}

/** The whole document that was answered. */
export function bodyOf(answer: KeyedAnswer): Record<string, unknown> {
  if (answer.type === "processing") return answer.document;
  return JSON.parse(answer.response.body) as Record<string, unknown>;
}

/** The problem that a request is refused with by being thrown. */
export async function refusalOf(answer: Promise<KeyedAnswer>): Promise<string> {
  try {
    return outcomeOf(await answer);
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (typeof code === "string") return code;
    throw error;
  }
}

/** Waits until the refund has one of these statuses. */
export function untilRefund(harness: Harness, refundId: string, ...statuses: string[]) {
  return until(
    `${refundId} in ${statuses.join("|")}`,
    async () => (await getRefund(harness.deps, harness.caller, refundId)).refund,
    (found) => statuses.includes(found.status),
  );
}
