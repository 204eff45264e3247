import type { IncomingMessage } from "node:http";
import { containsCardNumber } from "../lib/card-number.js";
import { newId } from "../lib/ids.js";

const WELL_FORMED_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
// W3C Trace Context level 1, section 3.2: version 00 has exactly four fields, a later one may have more; ff is invalid.
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;
const BEARER = /^bearer +([A-Za-z0-9._~+/-]{1,512}=*)$/i;
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/** Every line of that name as it came; Node's own view joins some repeated headers and drops others. */
export function headerLines(incoming: IncomingMessage, lowerCaseName: string): string[] {
  const raw = incoming.rawHeaders;
  const lines: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? "";
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName)
      lines.push(raw[index + 1] ?? "");
  }
  return lines;
}

/**
 * The caller's X-Request-Id where it is well-formed, else a new one: one id per HTTP attempt. What looks like a card number
 * is none: it would stand in every answer and every line of the log.
 */
export function requestIdOf(incoming: IncomingMessage): string {
  const sent = incoming.headers["x-request-id"];
  const isWellFormed =
    typeof sent === "string" && WELL_FORMED_REQUEST_ID.test(sent) && !containsCardNumber(sent);
  return isWellFormed ? sent : newId("req");
}

/** The traceparent where it is valid, else null, as the specification has it: a broken one starts no trace. */
export function traceparentOf(incoming: IncomingMessage): string | null {
  const sent = incoming.headers["traceparent"];
  if (typeof sent !== "string") return null;
  const match = TRACEPARENT.exec(sent);
  if (match === null || (match[1] === "00" && match[2] !== undefined)) return null;
  return sent;
}

/** The trace id of a valid traceparent: its second field. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** The one bearer token (RFC 6750), or null: no credential, another scheme, two of them, other characters. */
export function bearerTokenOf(incoming: IncomingMessage): string | null {
  const lines = headerLines(incoming, "authorization");
  if (lines.length !== 1) return null;
  return BEARER.exec(lines[0] ?? "")?.[1] ?? null;
}

/** Whether the body is declared as JSON, in UTF-8 or without a charset. */
export function isJson(incoming: IncomingMessage): boolean {
  const lines = headerLines(incoming, "content-type");
  return lines.length === 1 && JSON_TYPE.test(lines[0] ?? "");
}

/** Whether the body comes as it is: no Content-Encoding, or `identity`. */
export function isUnencoded(incoming: IncomingMessage): boolean {
  return headerLines(incoming, "content-encoding").every((line) => /^(?:identity)?$/i.test(line.trim()));
}
