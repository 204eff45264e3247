import Stripe from "stripe";
import type { Evidence } from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { redactText } from "../../lib/log.js";
import { type AnswerHead, type Fault, TransportError } from "./http-client.js";

/** The members of Stripe's error object that are looked at (docs.stripe.com/api/errors). */
export interface WireError {
  readonly type: string | null;
  readonly code: string | null;
  readonly declineCode: string | null;
  readonly adviceCode: string | null;
  /** The parameter that is wrong. */
  readonly param: string | null;
  /** Redacted and cut: it is shown to the client. */
  readonly message: string | null;
}

/** What came back for one request, whether it is an answer or not. */
export interface WireAnswer {
  /** Null: a complete answer in Stripe's form. */
  readonly fault: Fault | null;
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  /** `Idempotent-Replayed: true`: the stored answer to an earlier request with this key. */
  readonly replayed: boolean;
  readonly retryAfterMs: number | null;
  /** Set with a status of 400 and more, without a fault. */
  readonly error: WireError | null;
  /** The parsed body of a 2xx. */
  readonly body: unknown;
  readonly evidence: Evidence;
}

const LONGEST_MESSAGE = 500;
// An odd header must not park a payment for a day.
const LONGEST_RETRY_AFTER_MS = 3_600_000;

/** Waits for one SDK call and tells what came back. Never throws. */
export async function readAnswer(
  call: Promise<{ readonly lastResponse: unknown }>,
  log: Logger,
): Promise<WireAnswer> {
  try {
    const body = await call;
    return answer(headOf(body.lastResponse), { body });
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) return notOurs(error, log);
    if (error.detail instanceof TransportError) {
      const { fault, detail, head } = error.detail;
      return answer(head, { fault, code: detail });
    }
    if (error.statusCode === undefined) return notOurs(error, log);
    return answer({ status: error.statusCode, headers: error.headers ?? {} }, { error: wireError(error) });
  }
}

/** The answer to give where a deadline over several requests has passed before the next one. */
export function deadlinePassed(): WireAnswer {
  return answer({ status: null, headers: {} }, { fault: "timeout", code: "deadline" });
}

/** A bug here or in the SDK. The request may have been sent, so its outcome is as unknown as that of a lost answer. */
function notOurs(error: unknown, log: Logger): WireAnswer {
  log.error({ err: error }, "the Stripe SDK failed in an unexpected way");
  return answer({ status: null, headers: {} }, { fault: "unreadable", code: "client_error" });
}

interface Parts {
  readonly fault?: Fault;
  readonly code?: string;
  readonly error?: WireError;
  readonly body?: unknown;
}

function answer(head: AnswerHead, { fault, code, error, body = null }: Parts): WireAnswer {
  return {
    fault: fault ?? null,
    status: head.status,
    replayed: head.headers["idempotent-replayed"]?.toLowerCase() === "true",
    retryAfterMs: retryAfterMs(head.headers["retry-after"]),
    error: error ?? null,
    body,
    evidence: {
      httpStatus: head.status,
      code: code ?? error?.code ?? error?.type ?? null,
      requestId: head.headers["request-id"] ?? null,
    },
  };
}

function headOf(lastResponse: unknown): AnswerHead {
  const { statusCode, headers } = lastResponse as { statusCode: number; headers: Record<string, string> };
  return { status: statusCode, headers };
}

function wireError(error: InstanceType<typeof Stripe.errors.StripeError>): WireError {
  return {
    type: text(error.rawType),
    code: text(error.code),
    declineCode: text(error.decline_code),
    adviceCode: text(error.advice_code),
    param: text(error.param),
    message: shownMessage(error.message),
  };
}

/** Stripe's own words, fit to be stored and shown: no control characters, and no half of a pair that the cut divides. */
export function shownMessage(message: unknown): string | null {
  const words = text(message);
  if (words === null) return null;
  const clean = redactText(words).replaceAll(/[\p{Cc}\p{Cs}]+/gu, " ");
  return clean.slice(0, LONGEST_MESSAGE).replace(/\p{Cs}$/u, "");
}

/** A text that is there; Stripe and the SDK both use the empty text for "none". */
export function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** RFC 9110 section 10.2.3: seconds, or an HTTP date. */
function retryAfterMs(header: string | undefined): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}
