import type { IncomingMessage } from "node:http";
import { PawlError } from "../domain/errors.js";
import type { StrictJson } from "../lib/strict-json.js";
import { readBody } from "./read-body.js";
import { isJson, isUnencoded } from "./request-headers.js";
import { parseBody } from "./validate.js";

const MAX_BODY_BYTES = 64 * 1024;

/** The request's body as strict JSON. Throws PawlError: unsupported_media_type and what readBody and parseBody throw. */
export async function readJson(incoming: IncomingMessage, timeoutMs: number): Promise<StrictJson> {
  if (!isJson(incoming)) {
    throw new PawlError(
      "unsupported_media_type",
      "Send the body as `Content-Type: application/json`, in UTF-8.",
    );
  }
  if (!isUnencoded(incoming))
    throw new PawlError("unsupported_media_type", "Send the body without Content-Encoding.");
  return parseBody(await readBody(incoming, { maxBytes: MAX_BODY_BYTES, timeoutMs }));
}

/** As readJson; a request without a body is one with no members. */
export async function readOptionalJson(incoming: IncomingMessage, timeoutMs: number): Promise<StrictJson> {
  const isAbsent =
    incoming.headers["transfer-encoding"] === undefined &&
    Number(incoming.headers["content-length"] ?? 0) === 0;
  return isAbsent ? {} : readJson(incoming, timeoutMs);
}
