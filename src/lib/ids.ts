import { uuidv7obj } from "uuidv7";

/** Prefixes of the ids that users see; each id sorts by the time it was made. */
export type IdPrefix = "ten" | "key" | "pay" | "re" | "evt" | "req" | "tl" | "rev" | "we";

/** `pay_` + 32 hex digits of a UUIDv7 (RFC 9562): sortable as text, 36 characters. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7obj().toHex()}`;
}
