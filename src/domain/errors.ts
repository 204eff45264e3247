import type { Payment } from "./payment.js";
import type { Refund } from "./refund.js";

/**
 * Every error a caller can meet, with its HTTP status and title. The only map from code to status.
 * Each code has its page in docs/errors/<code>.md, which a problem's `type` links to.
 */
export const ERROR_CODES = {
  authentication_required: { status: 401, title: "A valid API key is required" },
  permission_denied: { status: 403, title: "The API key lacks the scope for this call" },
  not_found: { status: 404, title: "No such object" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  request_timeout: { status: 408, title: "The request body did not arrive in time" },
  body_too_large: { status: 413, title: "The request body is too large" },
  unsupported_media_type: { status: 415, title: "The content type is not supported" },
  malformed_request: { status: 400, title: "The request cannot be read" },
  validation_failed: { status: 400, title: "The request is not valid" },
  card_number_refused: { status: 400, title: "Card numbers are never accepted" },
  idempotency_key_missing: { status: 400, title: "The Idempotency-Key header is required" },
  idempotency_key_invalid: { status: 400, title: "The Idempotency-Key header is not valid" },
  idempotency_key_in_progress: { status: 409, title: "A request with this key is still running" },
  idempotency_key_reused: { status: 422, title: "The key was used for another request" },
  idempotency_key_expired: { status: 409, title: "The key has expired and its payment exists" },
  merchant_order_id_taken: { status: 409, title: "Another payment holds this order id" },
  amount_not_supported: { status: 422, title: "The provider cannot carry this amount exactly" },
  payment_declined: { status: 402, title: "The payment was declined" },
  payment_rejected: { status: 402, title: "The provider refused the request" },
  operation_in_progress: { status: 409, title: "A capture or cancel of the payment is still running" },
  authorization_expired: { status: 409, title: "The authorization has expired" },
  amount_too_large: { status: 422, title: "The amount is more than what is left" },
  refund_failed: { status: 402, title: "The provider could not make the refund" },
  review_changed: { status: 409, title: "The review is about something else by now" },
  review_closed: { status: 409, title: "The review has been decided" },
  resolution_not_allowed: { status: 409, title: "The review cannot be resolved like this now" },
  invalid_state: { status: 409, title: "The payment's state does not allow this" },
  webhook_signature_invalid: { status: 400, title: "The event is not signed by the provider" },
  rate_limited: { status: 429, title: "Too many requests" },
  provider_unavailable: { status: 503, title: "The provider did not perform the payment" },
  provider_webhooks_closed: { status: 503, title: "No secret for the provider's events is configured" },
  service_unavailable: { status: 503, title: "The service cannot do this right now" },
  internal_error: { status: 500, title: "Internal error" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** One fault of a request: an RFC 6901 pointer into the body (or `#header`/`?query` name) and what is wrong there. */
export interface FieldFault {
  readonly pointer: string;
  readonly detail: string;
}

export interface PawlErrorExtra {
  readonly faults?: readonly FieldFault[];
  /** Shown as `payment`, with `Location`. */
  readonly payment?: Payment;
  /** Shown as `refund`; `Location` is then its own. */
  readonly refund?: Refund;
  readonly retryAfterSeconds?: number;
  /** What was followed of the caller's preferences before this became the answer. */
  readonly preferenceApplied?: string;
  /** Methods that the path knows, for 405. */
  readonly allow?: readonly string[];
  readonly cause?: unknown;
}

/** The one error type that crosses layers. `message` is the problem's `detail`: it must be safe to show. */
export class PawlError extends Error {
  override readonly name = "PawlError";
  readonly code: ErrorCode;
  readonly extra: PawlErrorExtra;

  constructor(code: ErrorCode, detail: string, extra: PawlErrorExtra = {}) {
    super(detail, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.code = code;
    this.extra = extra;
  }
}
