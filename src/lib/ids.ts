import { uuidv7obj } from "uuidv7";

/** Prefixes of the ids that users see; each id sorts by the time it was made. */
export type IdPrefix = "ten" | "key" | "pay" | "re" | "evt" | "req" | "tl" | "rev" | "we" | "rec";

/** `pay_` + 32 hex digits of a UUIDv7 (RFC 9562): sortable as text, 36 characters. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7obj().toHex()}`;
}

const MILLISECONDS_HEX_LENGTH = 12;
const REST_HEX_LENGTH = 20;

/** Ids that are made at this time or later do not sort before it: a UUIDv7 begins with the milliseconds since 1970. */
export function firstIdAt(prefix: IdPrefix, at: Date): string {
  const milliseconds = Math.max(0, at.getTime()).toString(16).padStart(MILLISECONDS_HEX_LENGTH, "0");
  return `${prefix}_${milliseconds}${"0".repeat(REST_HEX_LENGTH)}`;
}
