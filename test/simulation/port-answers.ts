import type {
  Evidence,
  LookupOutcome,
  ProviderCharge,
  ProviderDispute,
  ProviderRefund,
  RefundSendOutcome,
  SendOutcome,
  UnknownReason,
} from "../../src/domain/provider.js";
import { EPOCH_MS } from "./host.js";
import {
  CURRENCY,
  cardFailure,
  type Intent,
  type SimulatedDispute,
  type SimulatedRefund,
  type WireAnswer,
} from "./provider-objects.js";

/** What became of one request, as its sender sees it. */
export type Arrival =
  | { readonly type: "answer"; readonly answer: WireAnswer }
  /** No connection: no byte was sent. */
  | { readonly type: "refused" }
  | { readonly type: "timeout" }
  | { readonly type: "lost" }
  | { readonly type: "unreadable" };

const STATE_CODES = ["payment_intent_unexpected_state", "charge_already_captured"];

export interface Sent {
  readonly call: "create" | "confirm" | "cancel" | "capture" | "refund";
  /** A fence and a confirm are calls of a charge: their objects' states are not their business alone. */
  readonly isEffect: boolean;
  readonly resend: boolean;
}

/** What an answer to a send comes to, by the port's own words and section 2 of the notes on Stripe. */
export function sendOutcome(arrival: Arrival, sent: Sent): SendOutcome | RefundSendOutcome {
  const evidence = evidenceOf(arrival);
  const unknown = (reason: UnknownReason, keySpent = false) =>
    ({ type: "unknown", reason, keySpent, retryAfterMs: null, evidence }) as const;
  const unexecuted = (reason: "unreachable" | "rate_limited" | "unauthorized") =>
    sent.resend
      ? unknown("resend_refused")
      : ({ type: "not_performed", reason, retryAfterMs: null, evidence } as const);
  switch (arrival.type) {
    case "refused":
      return unexecuted("unreachable");
    case "timeout":
      return unknown("timeout");
    case "lost":
      return unknown("connection_lost");
    case "unreadable":
      return unknown("unreadable");
    case "answer":
      break;
  }
  const { status, code = "", param, replayed, body, failure } = arrival.answer;
  if (status === 200 && body !== null) {
    return "intent" in body
      ? { type: "object", charge: chargeOf(body.intent, body.fee), replayed, evidence }
      : { type: "refund", refund: refundOf(body.refund), replayed, evidence };
  }
  if (status >= 500) return replayed ? unknown("stored_error", true) : unknown("server_error");
  if (status === 409) return unknown("key_in_use");
  if (code === "idempotency_error") return unknown("key_mismatch", true);
  const isState = STATE_CODES.includes(code) || param === "amount";
  if (isState && (sent.isEffect || !sent.resend || replayed)) return unknown("state_conflict", replayed);
  if (status === 402)
    return { type: "declined", failure: failure ?? cardFailure("card_declined"), replayed, evidence };
  if (status === 404) return unknown("object_missing");
  if (sent.resend && !replayed) return unknown("resend_refused");
  if (status === 429) return code === "lock_timeout" ? unknown("object_locked") : unexecuted("rate_limited");
  if (status === 401) return unexecuted("unauthorized");
  return { type: "rejected", failure: cardFailure(code), evidence };
}

/** What keeps a question from being answered; null: it is answered. */
export function unansweredOf(arrival: Arrival): (LookupOutcome & { type: "unanswered" }) | null {
  const evidence = evidenceOf(arrival);
  const unanswered = (reason: (LookupOutcome & { type: "unanswered" })["reason"]) =>
    ({ type: "unanswered", reason, retryAfterMs: null, evidence }) as const;
  switch (arrival.type) {
    case "refused":
      return unanswered("unreachable");
    case "timeout":
      return unanswered("timeout");
    case "lost":
      return unanswered("connection_lost");
    case "unreadable":
      return unanswered("unreadable");
    case "answer":
      break;
  }
  const { status } = arrival.answer;
  if (status >= 500) return unanswered("server_error");
  if (status === 429) return unanswered("rate_limited");
  return status === 401 ? unanswered("unauthorized") : null;
}

export function evidenceOf(arrival: Arrival): Evidence {
  const answer = arrival.type === "answer" ? arrival.answer : null;
  return { httpStatus: answer?.status ?? null, code: answer?.code ?? null, requestId: null };
}

export function chargeOf(intent: Intent, fee: number | null): ProviderCharge {
  const status = (
    {
      requires_confirmation: "created",
      requires_payment_method: "declined",
      requires_action: "requires_action",
      processing: "pending",
      requires_capture: "authorized",
      succeeded: "succeeded",
      canceled: "canceled",
    } as const
  )[intent.status];
  return {
    id: intent.id,
    status,
    amount: intent.amount,
    currency: CURRENCY,
    amountCapturable: intent.capturable,
    amountCaptured: intent.captured,
    livemode: false,
    attemptId: intent.marks.attemptId,
    tenantId: intent.marks.tenantId,
    nextAction:
      status === "requires_action"
        ? { type: "redirect_to_url", redirect_url: `https://bank.example/${intent.id}`, client_secret: null }
        : null,
    failure: status === "declined" ? intent.failure : null,
    authorizedUntil:
      status === "authorized" && intent.authorizedUntilMs !== null
        ? new Date(EPOCH_MS + intent.authorizedUntilMs)
        : null,
    lapsed: intent.lapsed,
    fee: fee === null ? null : { transactionId: `txn_${intent.id}`, amount: fee, currency: CURRENCY },
  };
}

export function refundOf(refund: SimulatedRefund): ProviderRefund {
  return {
    id: refund.id,
    chargeId: refund.intentId,
    status: refund.status,
    amount: refund.amount,
    currency: CURRENCY,
    attemptId: refund.attemptId,
    tenantId: refund.tenantId,
    failure: refund.status === "failed" ? cardFailure("expired_or_canceled_card") : null,
  };
}

export function disputeOf(dispute: SimulatedDispute): ProviderDispute {
  return {
    id: dispute.id,
    chargeId: dispute.intentId,
    status: dispute.status,
    amount: dispute.amount,
    currency: CURRENCY,
    reason: "fraudulent",
    livemode: false,
    movements: [...dispute.movements],
  };
}
