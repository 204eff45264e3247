import { PROBLEM_TYPE, paymentPath, problemDocument, refundPath } from "../domain/documents.js";
import { ERROR_CODES, type ErrorCode, PawlError } from "../domain/errors.js";
import type { Logger } from "../lib/log.js";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A 5xx says no more than its request id, so its detail is a fixed text and never the error's own. */
const SERVER_FAULT_DETAILS: Readonly<Partial<Record<ErrorCode, string>>> = {
  internal_error: "Something went wrong on our side. Quote the request id when you report it.",
  service_unavailable:
    "Send the same request again, with the same key where it has one: it takes effect at most once.",
  provider_webhooks_closed:
    "This installation has no webhook secret configured, so no event can be verified.",
  provider_unavailable: "The payment provably had no effect. Send the request again later with the same key.",
};
const RETRY_AFTER_SECONDS: Readonly<Partial<Record<ErrorCode, number>>> = {
  rate_limited: 1,
  service_unavailable: 1,
  provider_unavailable: 5,
  provider_webhooks_closed: 60,
  idempotency_key_in_progress: 1,
  operation_in_progress: 1,
};

/** What is no PawlError is a 500. */
export function pawlErrorOf(error: unknown): PawlError {
  return error instanceof PawlError ? error : new PawlError("internal_error", "", { cause: error });
}

/**
 * The only map from an error to an answer. What is no PawlError is a 500, logged with the request id and told to
 * nobody else. Retry-After goes with 429, 503 and the keys in progress alone.
 */
export function problemAnswer(error: unknown, requestId: string, log: Logger): Answer {
  const known = pawlErrorOf(error);
  const { code, extra } = known;
  const { status } = ERROR_CODES[code];
  if (code === "internal_error") {
    log.error({ request_id: requestId, code, err: extra.cause ?? error }, "request failed");
  } else if (status >= 500 && extra.cause !== undefined) {
    log.warn({ request_id: requestId, code, err: extra.cause }, "request failed");
  }
  const detail = status >= 500 ? (SERVER_FAULT_DETAILS[code] ?? "") : known.message;
  const document = problemDocument(code, detail, {
    requestId,
    payment: extra.payment,
    refund: extra.refund,
    faults: extra.faults,
  });
  const headers: Record<string, string> = { "Content-Type": PROBLEM_TYPE };
  const retryAfter = RETRY_AFTER_SECONDS[code];
  if (retryAfter !== undefined)
    headers["Retry-After"] = String(Math.ceil(extra.retryAfterSeconds ?? retryAfter));
  if (status === 401) headers["WWW-Authenticate"] = 'Bearer realm="pawl"';
  if (extra.preferenceApplied !== undefined) headers["Preference-Applied"] = extra.preferenceApplied;
  if (extra.allow !== undefined) headers["Allow"] = extra.allow.join(", ");
  if (extra.refund !== undefined) headers["Location"] = refundPath(extra.refund.id);
  else if (extra.payment !== undefined) headers["Location"] = paymentPath(extra.payment.id);
  return { status, headers, body: JSON.stringify(document) };
}
