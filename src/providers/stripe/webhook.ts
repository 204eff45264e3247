import { createHmac, timingSafeEqual } from "node:crypto";
import type { NoticeReading, NoticeRefusal } from "../../domain/provider-event.js";
import { readNotice } from "./notice.js";

/** How far a signature's time may be from ours, either way; exactly this far is accepted (docs.stripe.com/webhooks). */
const TOLERANCE_SECONDS = 300;

const TIMESTAMP = /^\d{1,12}$/;
const SHA256_HEX = /^[0-9a-f]{64}$/i;

/**
 * Whether these bytes are a notice of Stripe's, signed now with one of the secrets, and what it says. Never throws.
 * Apart from the SDK's own check: that one takes one secret and times in the future, throws for two header lines, and
 * signs what it has decoded instead of the bytes.
 * @param rawBody the body as it came, before any decoding
 * @param signatureHeader `Stripe-Signature`: `t=<unix seconds>,v1=<hex>[,v1=<hex>…]`; other schemes are ignored
 * @param secrets `whsec_…`; more than one while one is being rolled
 * @param nowMs our clock, Unix milliseconds
 */
export function verifyNotice(
  rawBody: Uint8Array,
  signatureHeader: string | readonly string[] | null,
  secrets: readonly string[],
  nowMs: number,
): NoticeReading {
  // A blank secret would be one that everybody knows.
  const keys = secrets.filter((secret) => secret.trim() !== "");
  if (keys.length === 0) return refused("secret_missing");
  const header = [signatureHeader ?? []].flat().join(",");
  if (header.trim() === "") return refused("header_missing");
  const signature = readHeader(header);
  if (signature === null) return refused("header_malformed");
  if (!isSigned(rawBody, signature, keys)) return refused("signature_mismatch");
  const ageSeconds = Math.floor(nowMs / 1000) - Number(signature.timestamp);
  if (Math.abs(ageSeconds) > TOLERANCE_SECONDS) return refused("outside_tolerance");
  const notice = readNotice(rawBody);
  return notice === null ? refused("malformed") : { ok: true, notice };
}

interface SignatureHeader {
  /** As written: it is part of what is signed. */
  readonly timestamp: string;
  readonly candidates: readonly Buffer[];
}

/** Null without exactly one time. What cannot be a SHA-256 is left out, so that it matches nothing. */
function readHeader(header: string): SignatureHeader | null {
  const items = header.split(",").map((item) => item.trim());
  const valuesOf = (name: string) =>
    items.filter((item) => item.startsWith(`${name}=`)).map((item) => item.slice(name.length + 1));
  const [timestamp, another] = valuesOf("t");
  if (timestamp === undefined || another !== undefined || !TIMESTAMP.test(timestamp)) return null;
  const candidates = valuesOf("v1").filter((value) => SHA256_HEX.test(value));
  return { timestamp, candidates: candidates.map((value) => Buffer.from(value, "hex")) };
}

function isSigned(
  rawBody: Uint8Array,
  { timestamp, candidates }: SignatureHeader,
  keys: readonly string[],
): boolean {
  const expected = keys.map((key) =>
    createHmac("sha256", key).update(`${timestamp}.`).update(rawBody).digest(),
  );
  return expected.some((digest) => candidates.some((candidate) => timingSafeEqual(digest, candidate)));
}

function refused(reason: NoticeRefusal): NoticeReading {
  return { ok: false, reason };
}
