import { parseItem } from "structured-headers";
import { containsCardNumber } from "./card-number.js";

export type ParsedKey =
  | { readonly type: "key"; readonly key: string }
  | { readonly type: "missing" }
  | { readonly type: "invalid"; readonly detail: string };

const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;

/**
 * The key that lines named `Idempotency-Key` carry, without the white space around them, as HTTP parsers give them. Two
 * forms name the same key: an RFC 9651 string (`"8e03…"`, backslash escapes `"` and `\`) and the bare text. A bare text with
 * a comma is refused, since a proxy that joins two lines makes just that; in quotes a comma is as any other character.
 */
export function parseIdempotencyKey(lines: readonly string[]): ParsedKey {
  const [line] = lines;
  if (line === undefined) return { type: "missing" };
  if (lines.length > 1) return invalid("The header was sent more than once.");
  const quoted = line.startsWith('"');
  const key = quoted ? quotedKey(line) : line;
  if (key === null) return invalid("A quoted key must be exactly one RFC 9651 string, without parameters.");
  if (key.trim() === "") return invalid("The key is empty.");
  if (!PRINTABLE_ASCII.test(key))
    return invalid("A key has 1 to 255 characters, all of them printable ASCII.");
  if (!quoted && key.includes(",")) {
    return invalid("The header was sent more than once, or the key holds a comma: put such a key in quotes.");
  }
  if (containsCardNumber(key))
    return invalid("The key looks like a card number, which is never accepted. A UUID is a good key.");
  return { type: "key", key };
}

function invalid(detail: string): ParsedKey {
  return { type: "invalid", detail };
}

function quotedKey(text: string): string | null {
  try {
    // Its own type names a DOM type, which is not among ours.
    const [value, parameters] = parseItem(text) as unknown as readonly [
      unknown,
      ReadonlyMap<string, unknown>,
    ];
    return typeof value === "string" && parameters.size === 0 ? value : null;
  } catch {
    return null;
  }
}
