import { PawlError } from "../domain/errors.js";
import { parseIdempotencyKey } from "../lib/idempotency-key-header.js";
import type { KeyedAnswer, KeyedCall } from "../operations/keyed-request.js";
import type { ApiRequest } from "./endpoint.js";
import { jsonAnswer } from "./json-answer.js";
import type { ParsedPreference } from "./prefer.js";
import { type Answer, pawlErrorOf } from "./problem.js";
import { headerLines } from "./request-headers.js";

/** When to ask again for what is still processing. */
const PROCESSING_RETRY_AFTER_SECONDS = 2;

/** Throws PawlError idempotency_key_missing or _invalid. */
export function keyedCallOf({ caller, context, http }: ApiRequest): KeyedCall {
  return { caller, context, key: idempotencyKeyOf(headerLines(http.env.incoming, "idempotency-key")) };
}

/** The key of the header's raw lines. Throws PawlError idempotency_key_missing or _invalid. */
function idempotencyKeyOf(lines: readonly string[]): string {
  const parsed = parseIdempotencyKey(lines);
  switch (parsed.type) {
    case "key":
      return parsed.key;
    case "missing":
      throw new PawlError(
        "idempotency_key_missing",
        "Send an Idempotency-Key header, one key for one intent.",
      );
    case "invalid":
      throw new PawlError("idempotency_key_invalid", parsed.detail);
  }
}

/** The answer of an operation that waits as `prefer` says. Its refusals too say what was followed of the preference. */
export async function answerAsPreferred(
  { applied }: ParsedPreference,
  operation: Promise<KeyedAnswer>,
): Promise<Answer> {
  try {
    return keyedAnswer(await operation, applied);
  } catch (error) {
    if (applied === null) throw error;
    const { code, message, extra } = pawlErrorOf(error);
    throw new PawlError(code, message, { ...extra, preferenceApplied: applied });
  }
}

/** A final answer is sent byte for byte as it is stored, the first time and every time. */
export function keyedAnswer(answer: KeyedAnswer, preferenceApplied: string | null): Answer {
  const headers: Record<string, string> =
    preferenceApplied === null ? {} : { "Preference-Applied": preferenceApplied };
  if (answer.type === "processing") {
    headers["Location"] = answer.location;
    headers["Retry-After"] = String(PROCESSING_RETRY_AFTER_SECONDS);
    return jsonAnswer(202, answer.document, headers);
  }
  if (answer.replayed) headers["Idempotent-Replayed"] = "true";
  if (answer.keyExpiresAt !== null) headers["Idempotency-Key-Expires"] = answer.keyExpiresAt.toISOString();
  const { status, body } = answer.response;
  return { status, headers: { ...answer.response.headers, ...headers }, body };
}
