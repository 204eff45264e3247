import type { ErrorCode } from "../domain/errors.js";
import type { KeyedAnswer, KeyedCall } from "../operations/keyed-request.js";
import type { ApiRequest } from "./endpoint.js";
import { keyedAnswer, keyedCallOf } from "./keyed.js";
import { keyedHeaders, keyedRequestHeaders } from "./openapi-parts.js";
import type { Answer } from "./problem.js";
import { readOptionalJson } from "./read-json.js";
import { noQuery } from "./schemas.js";
import { validated, validatedQuery } from "./validate.js";
import { noBody } from "./webhook-schemas.js";

/** What keyed calls that are answered at once have in common. */

/** Codes of any such request. */
export const KEYED_WRITE: readonly ErrorCode[] = [
  "malformed_request",
  "validation_failed",
  "card_number_refused",
  "idempotency_key_missing",
  "idempotency_key_invalid",
  "request_timeout",
  "body_too_large",
  "unsupported_media_type",
  "idempotency_key_reused",
];

/** No wait is asked for: there is no outcome to wait for. */
export const keyedWriteRequestHeaders = keyedRequestHeaders.omit({ Prefer: true });
export const keyedWriteHeaders = {
  Location: { ...keyedHeaders.Location, description: "The object." },
  "Idempotent-Replayed": keyedHeaders["Idempotent-Replayed"],
  "Idempotency-Key-Expires": keyedHeaders["Idempotency-Key-Expires"],
};

/** A keyed call that has no members: no body, or an empty object. */
export async function bodilessWrite(
  request: ApiRequest,
  write: (call: KeyedCall) => Promise<KeyedAnswer>,
): Promise<Answer> {
  validatedQuery(noQuery, request.http.req.url);
  const call = keyedCallOf(request);
  const { requestBodyTimeoutMs } = request.deps.settings;
  validated(noBody, await readOptionalJson(request.http.env.incoming, requestBodyTimeoutMs));
  return keyedAnswer(await write(call), null);
}
