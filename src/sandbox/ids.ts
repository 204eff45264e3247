import { randomFillSync } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const pool = Buffer.allocUnsafe(8192);
let used = pool.length;

/** Letters and digits, unguessable: `length` characters of the 62-letter alphabet that Stripe's ids use. */
export function randomText(length: number): string {
  let text = "";
  while (text.length < length) {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const byte = pool[used++] as number;
    // 248 is the largest multiple of 62 in a byte: above it, letters would not be equally likely.
    if (byte < 248) text += ALPHABET.charAt(byte % 62);
  }
  return text;
}

/** An id of Stripe's shape: the prefix and 24 characters, `pi_3…`. */
export function stripeId(prefix: "pi" | "ch" | "pm" | "evt" | "re" | "txn" | "dp" | "po"): string {
  return `${prefix}_3${randomText(23)}`;
}

/** The id in a member that may hold the object itself; empty where it holds nothing. */
export function idOf(member: string | { readonly id: string } | null | undefined): string {
  return typeof member === "string" ? member : (member?.id ?? "");
}

export function requestId(): string {
  return `req_${randomText(14)}`;
}
