import { PawlError } from "../domain/errors.js";
import { parseIdempotencyKey } from "../lib/idempotency-key-header.js";
import type { KeyedAnswer } from "../operations/keyed-request.js";
import { jsonAnswer } from "./json-answer.js";
import type { Answer } from "./problem.js";

/** When to ask again for what is still processing. */
const PROCESSING_RETRY_AFTER_SECONDS = 2;

/** The key of the header's raw lines. Throws PawlError idempotency_key_missing or _invalid. */
export function idempotencyKeyOf(lines: readonly string[]): string {
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
