import type { Question } from "../../../src/domain/charge-change.js";
import type {
  Evidence,
  LookupOutcome,
  ProviderCharge,
  ProviderRefund,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import type { Logger } from "../../../src/lib/log.js";
import type { WireAnswer } from "../../../src/providers/stripe/wire-answer.js";
import type * as Shipped from "../shipped.js";
import { ACCEPTED, dateAt } from "./clock.js";
import type { Request } from "./request.js";
import { isSend } from "./stripe.js";
import type { Intent, Reply, StripeRefund } from "./stripe-objects.js";

export type Outcome = SendOutcome | RefundSendOutcome | LookupOutcome | RefundLookupOutcome;

/** How long an authorisation holds here. */
export const HELD_MS = 7 * 24 * 3_600_000;
const FEE = 3;
const SILENT = { error: () => undefined } as unknown as Logger;

/** What the adapter makes of the reply, by the shipped classification; null: nothing came before the deadline. */
export async function outcomeOf(
  shipped: typeof Shipped,
  request: Request,
  reply: Reply | null,
): Promise<Outcome> {
  const answer = wireAnswer(reply);
  const { call } = request;
  if (isSend(call)) {
    const outcome = shipped.classifySend(answer, { call, resend: request.resend });
    if (outcome !== "object") return outcome;
    return call === "refund" ? refundOf(shipped, answer) : chargeOf(shipped, answer);
  }
  return answerTo(shipped, call, request, answer);
}

function answerTo(
  shipped: typeof Shipped,
  question: Question,
  request: Request,
  answer: WireAnswer,
): Promise<Outcome> | Outcome {
  const { evidence } = answer;
  switch (question) {
    case "get": {
      const refusal = shipped.refusalOf(answer);
      return refusal ?? { type: "found", charge: chargeOf(shipped, answer).charge, evidence };
    }
    case "get_refund": {
      const refusal = shipped.refusalOf(answer);
      return refusal ?? { type: "found", refund: refundOf(shipped, answer).refund, evidence };
    }
    case "find": {
      const reference = { attemptId: marker(request), createdFrom: dateAt(0), createdTo: dateAt(0) };
      return shipped.findCharge(async () => answer, reference, SILENT);
    }
    case "find_refund":
      return shipped.findRefund(async () => answer, { attemptId: marker(request) }, SILENT);
  }
}

function marker({ attemptId }: Request): string {
  if (attemptId === null) throw new Error("nothing is looked for without a marker");
  return attemptId;
}

function chargeOf(shipped: typeof Shipped, answer: WireAnswer) {
  const charge = shipped.toProviderCharge(answer.body);
  if (charge === null) throw new Error("the adapter could not read a PaymentIntent");
  return { type: "object", charge, replayed: answer.replayed, evidence: answer.evidence } as const;
}

/** The object as a list shows it. */
export function listedCharge(shipped: typeof Shipped, intent: Intent): ProviderCharge {
  const charge = shipped.toProviderCharge(intentBody(intent));
  if (charge === null) throw new Error("the adapter could not read a PaymentIntent");
  return charge;
}

/** The refund as a list shows it. */
export function listedRefund(shipped: typeof Shipped, refund: StripeRefund): ProviderRefund {
  const read = shipped.toProviderRefund(refundBody(refund));
  if (read === null) throw new Error("the adapter could not read a refund");
  return read;
}

function refundOf(shipped: typeof Shipped, answer: WireAnswer) {
  const refund = shipped.toProviderRefund(answer.body);
  if (refund === null) throw new Error("the adapter could not read a refund");
  return { type: "refund", refund, replayed: answer.replayed, evidence: answer.evidence } as const;
}

function wireAnswer(reply: Reply | null): WireAnswer {
  const error = reply?.error ?? null;
  const evidence: Evidence = {
    httpStatus: reply?.status ?? null,
    code: error?.code ?? null,
    requestId: null,
  };
  return {
    fault: reply === null ? "timeout" : null,
    status: reply?.status ?? null,
    replayed: reply?.replayed ?? false,
    retryAfterMs: null,
    error: error === null ? null : { ...error, adviceCode: null, message: null },
    body: reply === null ? null : bodyOf(reply),
    evidence,
  };
}

function bodyOf({ body }: Reply): unknown {
  if (body === null) return null;
  return isList(body) ? { object: "list", data: body.map(objectOf), has_more: false } : objectOf(body);
}

function isList(body: object): body is readonly (Intent | StripeRefund)[] {
  return Array.isArray(body);
}

function objectOf(object: Intent | StripeRefund): object {
  return "intentId" in object ? refundBody(object) : intentBody(object);
}

/** The members that the adapter reads, named as Stripe names them. */
function intentBody(intent: Intent): object {
  const waits = intent.status === "requires_action";
  return {
    id: intent.id,
    object: "payment_intent",
    status: intent.status,
    amount: intent.amount,
    amount_capturable: intent.capturable,
    amount_received: intent.received,
    currency: intent.currency,
    livemode: false,
    metadata: intent.metadata,
    payment_method: "pm_1",
    last_payment_error: intent.failed ? { type: "card_error", code: "card_declined" } : null,
    cancellation_reason: intent.cancellationReason,
    client_secret: `${intent.id}_secret`,
    next_action: waits
      ? { type: "redirect_to_url", redirect_to_url: { url: "https://bank.test/3ds" } }
      : null,
    latest_charge: intent.charges === 0 ? null : latestCharge(intent),
  };
}

function latestCharge(intent: Intent): object {
  const transaction = { id: `txn_${intent.id}`, currency: intent.currency, fee: FEE };
  return {
    id: `ch_${intent.id}`,
    status: "succeeded",
    payment_method_details: { card: { capture_before: dateAt(ACCEPTED.atMs + HELD_MS).getTime() / 1_000 } },
    balance_transaction: intent.received > 0 ? transaction : null,
  };
}

function refundBody(refund: StripeRefund): object {
  return {
    id: refund.id,
    object: "refund",
    payment_intent: refund.intentId,
    status: refund.status,
    amount: refund.amount,
    currency: refund.currency,
    metadata: refund.metadata,
    failure_reason: refund.status === "failed" ? "lost_or_stolen_card" : null,
    balance_transaction: `txn_${refund.id}`,
  };
}
