import Stripe from "stripe";
import type { Evidence } from "../../domain/provider.js";
import { type Logger, redactText } from "../../lib/log.js";
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

const LONGEST_SHOWN = 500;
/** So much is looked at for it: what is blanked shortens a text. */
const READ_FOR_SHOWING = 8 * LONGEST_SHOWN;
/** Far beyond Stripe's ids and addresses: what is longer is none of them. */
const LONGEST_TEXT = 5_000;
/** The end of the year 9999, in Unix seconds. */
const LATEST_TIME = 253_402_300_799;
/** What PostgreSQL takes in no text: U+0000, and half of a surrogate pair. */
const NOT_STORABLE = /[\0\p{Cs}]/u;
// An odd header must not park a payment for a day.
const LONGEST_RETRY_AFTER_MS = 3_600_000;

/** What every call of the SDK yields. */
export type SdkAnswer = Promise<{ readonly lastResponse: unknown }>;

/** Waits for one SDK call and tells what came back. Never throws. */
export async function readAnswer(call: SdkAnswer, log: Logger): Promise<WireAnswer> {
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
    type: shownText(error.rawType),
    code: shownText(error.code),
    declineCode: shownText(error.decline_code),
    adviceCode: shownText(error.advice_code),
    param: shownText(error.param),
    message: shownText(error.message),
  };
}

/**
 * Stripe's own words and codes, fit to be stored and shown: redacted, without control characters, cut, and no half of a
 * pair where the cut divides one. Null where there are none.
 */
export function shownText(value: unknown): string | null {
  if (typeof value !== "string" || value === "") return null;
  const clean = redactText(value.slice(0, READ_FOR_SHOWING)).replaceAll(/[\p{Cc}\p{Cs}]+/gu, " ");
  return clean.slice(0, LONGEST_SHOWN).replace(/\p{Cs}$/u, "");
}

/**
 * A text that is there and means what it says, such as an id: Stripe and the SDK both use the empty text for "none". One
 * that no row can hold, or that is longer than any of Stripe's, is none either: what needs it is not Stripe's form.
 */
export function text(value: unknown): string | null {
  const isThere = typeof value === "string" && value !== "" && value.length <= LONGEST_TEXT;
  return isThere && !NOT_STORABLE.test(value) ? value : null;
}

/** Seconds since 1970, or null where that is no time that can be written down as one with four digits of year. */
export function time(value: unknown): Date | null {
  const isThere =
    typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= LATEST_TIME;
  return isThere ? new Date(value * 1000) : null;
}

/** A fraction is none by the RFC, and was meant for seconds all the same. */
const SECONDS = /^\d+(?:\.\d+)?$/;

/** RFC 9110 section 10.2.3: seconds, or an HTTP date. */
function retryAfterMs(header: string | undefined): number | null {
  if (header === undefined) return null;
  const ms = SECONDS.test(header) ? Math.ceil(Number(header)) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}
