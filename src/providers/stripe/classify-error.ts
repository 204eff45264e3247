import type { Failure } from "../../domain/payment.js";
import {
  EFFECT_CALLS,
  type LookupOutcome,
  type NotPerformedReason,
  type ProviderCall,
  type SendOutcome,
  type UnknownReason,
} from "../../domain/provider.js";
import type { Fault } from "./http-client.js";
import type { WireAnswer, WireError } from "./wire-answer.js";

/** Everything that a condition names must hold; what it leaves out may be anything. */
export interface Condition {
  readonly calls?: readonly ProviderCall[];
  /** false: a first send; true: an earlier send of the call is unresolved. */
  readonly resend?: boolean;
  /** Whether the answer carries `Idempotent-Replayed: true`. */
  readonly replayed?: boolean;
  readonly fault?: Fault;
  readonly status?: readonly number[] | "2xx" | "4xx" | "5xx";
  readonly type?: string;
  /** Matched against the error's `code` and its `decline_code`. */
  readonly codes?: readonly string[];
  /** The parameter that the error names. */
  readonly param?: string;
}

export type SendVerdict =
  | { readonly type: "object" | "declined" | "rejected" }
  | { readonly type: "not_performed"; readonly reason: NotPerformedReason }
  | { readonly type: "unknown"; readonly reason: UnknownReason; readonly keySpent?: true };

export interface SendRow {
  readonly when: Condition;
  readonly then: SendVerdict;
  readonly because: string;
}

const unknown = (reason: UnknownReason): SendVerdict => ({ type: "unknown", reason });
const spent = (reason: UnknownReason): SendVerdict => ({ type: "unknown", reason, keySpent: true });
const notPerformed = (reason: NotPerformedReason): SendVerdict => ({ type: "not_performed", reason });

const STATE_CODES = ["payment_intent_unexpected_state", "charge_already_captured", "charge_already_refunded"];
const EFFECT_STATE_CODES = [
  ...STATE_CODES,
  "charge_expired_for_capture",
  "capture_charge_authorization_expired",
];
const DISPUTE_CODES = ["charge_disputed", "refund_disputed_payment"];
const LOOK_FIRST_CODES = ["duplicate_transaction", "processing_error", "payment_method_provider_timeout"];

/**
 * What an answer to a send comes to: the first row that fits. The last one fits everything, so an
 * answer that nobody foresaw is unknown. Shown in docs/stripe-classification.md. Sources: docs.stripe.com/error-low-level,
 * /error-codes, /api/idempotent_requests, /rate-limits, /declines. An amount above what is left to refund comes without a
 * code, and names its parameter alone (recorded answers).
 */
export const SEND_TABLE: readonly SendRow[] = [
  {
    when: { fault: "refused", resend: true },
    then: unknown("resend_refused"),
    because: "this send was not made, which says nothing of the earlier one",
  },
  {
    when: { fault: "refused", resend: false },
    then: notPerformed("unreachable"),
    because: "no connection or no such host: no byte was sent",
  },
  {
    when: { fault: "timeout" },
    then: unknown("timeout"),
    because: "the deadline passed before the last byte of an answer",
  },
  {
    when: { fault: "lost" },
    then: unknown("connection_lost"),
    because: "reset or closed before the last byte of an answer, also on a kept-alive connection",
  },
  {
    when: { status: "5xx", replayed: true },
    then: spent("stored_error"),
    because: "a stored 500 stays indeterminate and is all that this key will ever answer",
  },
  { when: { status: "5xx" }, then: unknown("server_error"), because: "indeterminate, whatever the body is" },
  {
    when: { fault: "unreadable" },
    then: unknown("unreadable"),
    because: "an answer that is not in Stripe's form, e.g. empty, HTML, broken JSON",
  },
  { when: { status: "2xx" }, then: { type: "object" }, because: "the object says what became of it" },
  {
    when: { status: [409] },
    then: unknown("key_in_use"),
    because: "an earlier request with this key is still running",
  },
  {
    when: { status: "4xx", codes: ["idempotency_key_in_use"] },
    then: unknown("key_in_use"),
    because: "the same, should the status change",
  },
  {
    when: { status: "4xx", type: "idempotency_error" },
    then: spent("key_mismatch"),
    because: "the parameters differ from the first send's: our bug, logged as an error",
  },
  {
    when: { status: "4xx", calls: EFFECT_CALLS, codes: EFFECT_STATE_CODES, replayed: true },
    then: spent("state_conflict"),
    because: "the same as below, stored under this key",
  },
  {
    when: { status: "4xx", calls: EFFECT_CALLS, codes: EFFECT_STATE_CODES },
    then: unknown("state_conflict"),
    because: "the object is elsewhere in its life, perhaps where an earlier send wanted it",
  },
  {
    when: { status: [400], calls: ["refund"], param: "amount", replayed: true },
    then: spent("state_conflict"),
    because: "the same as below, stored under this key",
  },
  {
    when: { status: [400], calls: ["refund"], param: "amount" },
    then: unknown("state_conflict"),
    because: "less is left than the refund wants, perhaps because an earlier send made it",
  },
  {
    when: { status: [402], calls: ["refund"], codes: LOOK_FIRST_CODES, replayed: true },
    then: spent("stored_error"),
    because: "the same as below, stored under this key",
  },
  {
    when: { status: [402], calls: ["refund"], codes: LOOK_FIRST_CODES },
    then: unknown("external_dependency"),
    because: "something behind Stripe failed, before or after the refund was made",
  },
  {
    when: { status: [402], codes: LOOK_FIRST_CODES },
    then: unknown("state_conflict"),
    because: "the card may have been charged: look at the object before believing it",
  },
  { when: { status: [402] }, then: { type: "declined" }, because: "a definitive decline of this attempt" },
  {
    when: { status: [424], replayed: true },
    then: spent("stored_error"),
    because: "a stored failure is all that this key will ever answer",
  },
  {
    when: { status: [424] },
    then: unknown("external_dependency"),
    because: "something behind Stripe failed, before or after the effect",
  },
  {
    when: { status: [404], calls: ["confirm", "fence", ...EFFECT_CALLS] },
    then: unknown("object_missing"),
    because: "we committed this id: it exists, so another account or server answers",
  },
  {
    when: { status: [400], calls: EFFECT_CALLS, codes: ["resource_missing"] },
    then: unknown("object_missing"),
    because: "the same, where the id is a parameter",
  },
  {
    when: { status: [400, 401, 403, 404, 429], resend: true, replayed: false },
    then: unknown("resend_refused"),
    because: "the refusal of a re-send says nothing of the earlier send",
  },
  {
    when: { status: [400, 403], calls: ["refund"], codes: DISPUTE_CODES },
    then: { type: "rejected" },
    because: "a disputed payment cannot be refunded: the dispute gives the money back",
  },
  {
    when: { status: [401, 403, 429], replayed: true },
    then: spent("stored_error"),
    because: "a stored refusal is all that this key will ever answer",
  },
  {
    when: { status: [400], codes: STATE_CODES, replayed: true },
    then: spent("state_conflict"),
    because: "the same as below, stored under this key",
  },
  {
    when: { status: [400], codes: STATE_CODES },
    then: unknown("state_conflict"),
    because: "the object is elsewhere in its life, perhaps by our own earlier call",
  },
  {
    when: { status: [429], codes: ["lock_timeout"] },
    then: unknown("object_locked"),
    because: "another request holds the object",
  },
  {
    when: { status: [429] },
    then: notPerformed("rate_limited"),
    because: "refused before the idempotency layer",
  },
  {
    when: { status: [400], codes: ["rate_limit"] },
    then: notPerformed("rate_limited"),
    because: "the form that a rate limit has in old API versions",
  },
  {
    when: { status: [401] },
    then: notPerformed("unauthorized"),
    because: "refused before the idempotency layer",
  },
  { when: { status: [403] }, then: notPerformed("forbidden"), because: "the key lacks the permission" },
  {
    when: { status: [400, 404] },
    then: { type: "rejected" },
    because: "the request itself is wrong; refused before execution",
  },
  { when: {}, then: unknown("unreadable"), because: "anything that is not listed" },
];

export type LookupVerdict =
  | { readonly type: "answered" | "missing" }
  | { readonly type: "unanswered"; readonly reason: (LookupOutcome & { type: "unanswered" })["reason"] };

export interface LookupRow {
  readonly when: Condition;
  readonly then: LookupVerdict;
}

const unanswered = (reason: (LookupOutcome & { type: "unanswered" })["reason"]): LookupVerdict => ({
  type: "unanswered",
  reason,
});

/** What an answer to a question (GET) comes to: the first row that fits. */
export const LOOKUP_TABLE: readonly LookupRow[] = [
  { when: { fault: "refused" }, then: unanswered("unreachable") },
  { when: { fault: "timeout" }, then: unanswered("timeout") },
  { when: { fault: "lost" }, then: unanswered("connection_lost") },
  { when: { status: "5xx" }, then: unanswered("server_error") },
  { when: { fault: "unreadable" }, then: unanswered("unreadable") },
  { when: { status: "2xx" }, then: { type: "answered" } },
  { when: { status: [400, 404], codes: ["resource_missing"] }, then: { type: "missing" } },
  { when: { status: [401] }, then: unanswered("unauthorized") },
  { when: { status: [403] }, then: unanswered("forbidden") },
  { when: { status: [429] }, then: unanswered("rate_limited") },
  { when: {}, then: unanswered("refused") },
];

export interface Send {
  readonly call: ProviderCall;
  readonly resend: boolean;
}

/** The row of the table that decides. */
export function sendRow(answer: WireAnswer, send: Send): SendRow {
  return firstFit(SEND_TABLE, answer, send);
}

/** The outcome of a send that brought no readable object. An `object` row's charge is read by the caller. */
export function classifySend(
  answer: WireAnswer,
  send: Send,
): Exclude<SendOutcome, { type: "object" }> | "object" {
  const verdict = sendRow(answer, send).then;
  const { evidence, retryAfterMs, replayed } = answer;
  switch (verdict.type) {
    case "object":
      return "object";
    case "declined":
      return { type: "declined", failure: failureOf(answer.error, "card_declined"), replayed, evidence };
    case "rejected":
      return { type: "rejected", failure: failureOf(answer.error, "invalid_request_error"), evidence };
    case "not_performed":
      return { type: "not_performed", reason: verdict.reason, retryAfterMs, evidence };
    case "unknown":
      return {
        type: "unknown",
        reason: verdict.reason,
        keySpent: verdict.keySpent ?? false,
        retryAfterMs,
        evidence,
      };
  }
}

/** The row of the table of questions that decides. */
export function lookupRow(answer: WireAnswer): LookupRow {
  return firstFit(LOOKUP_TABLE, answer, null);
}

function firstFit<Row extends { readonly when: Condition }>(
  table: readonly Row[],
  answer: WireAnswer,
  send: Send | null,
): Row {
  const row = table.find(({ when }) => fits(when, answer, send));
  if (row === undefined) throw new Error("the last row of a classification table fits everything");
  return row;
}

function fits(when: Condition, answer: WireAnswer, send: Send | null): boolean {
  return (
    (when.calls === undefined || (send !== null && when.calls.includes(send.call))) &&
    (when.resend === undefined || send?.resend === when.resend) &&
    (when.replayed === undefined || answer.replayed === when.replayed) &&
    (when.fault === undefined || answer.fault === when.fault) &&
    (when.status === undefined || hasStatus(answer.status, when.status)) &&
    (when.type === undefined || answer.error?.type === when.type) &&
    (when.codes === undefined || hasCode(answer.error, when.codes)) &&
    (when.param === undefined || answer.error?.param === when.param)
  );
}

function hasStatus(status: number | null, wanted: Condition["status"] & {}): boolean {
  if (status === null) return false;
  return typeof wanted === "string" ? `${Math.floor(status / 100)}xx` === wanted : wanted.includes(status);
}

function hasCode(error: WireError | null, codes: readonly string[]): boolean {
  return [error?.code, error?.declineCode].some((code) => typeof code === "string" && codes.includes(code));
}

function failureOf(error: WireError | null, otherwise: string): Failure {
  return {
    code: error?.code ?? error?.type ?? otherwise,
    decline_code: error?.declineCode ?? null,
    message: error?.message ?? null,
    advice_code: error?.adviceCode ?? null,
    retry: "new_key",
  };
}
