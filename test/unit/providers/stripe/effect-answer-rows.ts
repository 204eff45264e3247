import type { EffectCall } from "../../../../src/domain/provider.js";

/** One answer of Stripe's to an effect, and what it comes to. */
export interface EffectRow {
  readonly what: string;
  readonly status: number;
  readonly error: Record<string, unknown>;
  /** On a first send, on a re-send, and where the answer is a replay (either). */
  readonly first: object;
  readonly again: object;
  readonly replayed: object;
  readonly calls?: readonly EffectCall[];
}

export const unknown = (reason: string, keySpent = false) => ({ type: "unknown", reason, keySpent });
export const invalid = (code?: string, more = {}) => ({
  type: "invalid_request_error",
  message: "No.",
  ...(code === undefined ? {} : { code }),
  ...more,
});
const card = (changes = {}) => ({ type: "card_error", code: "card_declined", message: "No.", ...changes });
const rejected = (code: string) => ({ type: "rejected", failure: { code, retry: "new_key" } });
const notPerformed = (reason: string) => ({ type: "not_performed", reason });
const refused = unknown("resend_refused");
const always = (outcome: object) => ({ first: outcome, again: outcome, replayed: outcome });
const conflict = {
  first: unknown("state_conflict"),
  again: unknown("state_conflict"),
  replayed: unknown("state_conflict", true),
};

// Written from docs.stripe.com/error-codes, /error-low-level and the contract, apart from the table: what each answer
// comes to, for each call, on a first send, on a re-send and replayed.
export const EFFECT_ROWS: readonly EffectRow[] = [
  {
    what: "a status that the object no longer has",
    status: 400,
    error: invalid("payment_intent_unexpected_state"),
    ...conflict,
  },
  { what: "captured already", status: 400, error: invalid("charge_already_captured"), ...conflict },
  { what: "refunded already", status: 400, error: invalid("charge_already_refunded"), ...conflict },
  { what: "a lapsed charge", status: 400, error: invalid("charge_expired_for_capture"), ...conflict },
  {
    what: "a lapsed authorisation",
    status: 400,
    error: invalid("capture_charge_authorization_expired"),
    ...conflict,
  },
  {
    what: "a lapsed authorisation, told as a card error",
    status: 402,
    error: card({ code: "capture_charge_authorization_expired" }),
    ...conflict,
  },
  {
    what: "more than is left to refund, without a code",
    status: 400,
    error: invalid(undefined, {
      param: "amount",
      message: "Refund amount ($15.00) is greater than unrefunded amount on charge ($1.00)",
    }),
    ...conflict,
    calls: ["refund"],
  },
  {
    what: "more than is left to refund, with a code",
    status: 400,
    error: invalid("amount_too_large", { param: "amount" }),
    ...conflict,
    calls: ["refund"],
  },
  {
    what: "more than was authorised",
    status: 400,
    error: invalid("amount_too_large", { param: "amount_to_capture" }),
    first: rejected("amount_too_large"),
    again: refused,
    replayed: rejected("amount_too_large"),
  },
  ...["charge_disputed", "refund_disputed_payment"].flatMap((code) =>
    [400, 403].map((status) => ({
      what: `a disputed charge (${code}, ${status})`,
      status,
      error: invalid(code),
      first: rejected(code),
      again: refused,
      replayed: rejected(code),
      calls: ["refund"] as const,
    })),
  ),
  ...[404, 400].map((status) => ({
    what: `an object that is not there, by ${status}`,
    status,
    error: invalid("resource_missing", { param: "payment_intent" }),
    ...always(unknown("object_missing")),
  })),
  {
    what: "an invalid request",
    status: 400,
    error: invalid("parameter_unknown"),
    first: rejected("parameter_unknown"),
    again: refused,
    replayed: rejected("parameter_unknown"),
  },
  {
    what: "a card error",
    status: 402,
    error: card(),
    first: { type: "declined", replayed: false },
    again: { type: "declined", replayed: false },
    replayed: { type: "declined", replayed: true, failure: { code: "card_declined" } },
  },
  ...["processing_error", "payment_method_provider_timeout"].flatMap((code) => [
    {
      what: `a doubtful failure (${code})`,
      status: 402,
      error: card({ code }),
      ...always(unknown("state_conflict")),
      calls: ["capture", "cancel"] as const,
    },
    {
      what: `a doubtful failure (${code})`,
      status: 402,
      error: card({ code }),
      first: unknown("external_dependency"),
      again: unknown("external_dependency"),
      replayed: unknown("stored_error", true),
      calls: ["refund"] as const,
    },
  ]),
  {
    what: "a wrong key",
    status: 401,
    error: invalid(),
    first: notPerformed("unauthorized"),
    again: refused,
    replayed: unknown("stored_error", true),
  },
  {
    what: "a missing permission",
    status: 403,
    error: invalid(),
    first: notPerformed("forbidden"),
    again: refused,
    replayed: unknown("stored_error", true),
  },
  {
    what: "a rate limit",
    status: 429,
    error: invalid("rate_limit"),
    first: notPerformed("rate_limited"),
    again: refused,
    replayed: unknown("stored_error", true),
  },
  {
    what: "a locked object",
    status: 429,
    error: invalid("lock_timeout"),
    first: unknown("object_locked"),
    again: refused,
    replayed: unknown("stored_error", true),
  },
  {
    what: "a key in use",
    status: 409,
    error: invalid("idempotency_key_in_use"),
    ...always(unknown("key_in_use")),
  },
  {
    what: "other parameters under the key",
    status: 400,
    error: { type: "idempotency_error", message: "Keys can only be used with the same parameters." },
    ...always(unknown("key_mismatch", true)),
  },
  {
    what: "a failed dependency",
    status: 424,
    error: { type: "api_error" },
    first: unknown("external_dependency"),
    again: unknown("external_dependency"),
    replayed: unknown("stored_error", true),
  },
  ...[500, 503].map((status) => ({
    what: `a server error (${status})`,
    status,
    error: { type: "api_error" },
    first: unknown("server_error"),
    again: unknown("server_error"),
    replayed: unknown("stored_error", true),
  })),
  { what: "a status nobody foresaw", status: 418, error: invalid(), ...always(unknown("unreadable")) },
];
