import type { DeliveryFault } from "../domain/webhook.js";
import { AnswerTooLong } from "./read-answer.js";
import { AddressRefused } from "./resolve-name.js";

/** The deadline over a whole try is over. */
export class TryTimedOut extends Error {
  override readonly name = "TryTimedOut";
}

const BY_CODE: Readonly<Record<string, DeliveryFault>> = {
  ECONNREFUSED: "connection_refused",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  EADDRNOTAVAIL: "unreachable",
  ETIMEDOUT: "unreachable",
  CERT_HAS_EXPIRED: "tls_failed",
  CERT_NOT_YET_VALID: "tls_failed",
  CERT_REVOKED: "tls_failed",
  CERT_SIGNATURE_FAILURE: "tls_failed",
  CERT_UNTRUSTED: "tls_failed",
  CERT_REJECTED: "tls_failed",
  DEPTH_ZERO_SELF_SIGNED_CERT: "tls_failed",
  SELF_SIGNED_CERT_IN_CHAIN: "tls_failed",
  UNABLE_TO_GET_ISSUER_CERT: "tls_failed",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls_failed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls_failed",
  EPROTO: "tls_failed",
};

/** What an error of Node's client says of a try, by its type and code; anything else is a lost connection. */
export function faultOf(error: unknown): DeliveryFault {
  if (error instanceof TryTimedOut) return "timeout";
  if (error instanceof AddressRefused) return "address_refused";
  if (error instanceof AnswerTooLong) return "answer_too_long";
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (code.startsWith("HPE_")) return "unreadable_answer";
  return code.startsWith("ERR_TLS_") || code.startsWith("ERR_SSL_") ? "tls_failed" : "connection_lost";
}
