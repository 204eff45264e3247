import type { NoticeSubject, ProviderNotice } from "../../domain/provider.js";
import { type Fields, idOf, isFields, marksOn } from "./outcome.js";

// Ids, types and our own marks are printable ASCII. Anything else must not get as far as a database or a log.
const PLAIN = /^[\x21-\x7e]{1,255}$/;

/** Events that a payout has been made, or that what is in it can be told. */
export const PAYOUT_TYPES: ReadonlySet<string> = new Set(["payout.paid", "payout.reconciliation_completed"]);

/**
 * An event's body as the port has it, or null where it is no UTF-8 JSON object with an id, a type, a mode and an object
 * (docs.stripe.com/api/events/object). Reads only what every API version has in the same place.
 */
export function readNotice(rawBody: Uint8Array): ProviderNotice | null {
  const event = parsed(rawBody);
  const data = isFields(event) ? event["data"] : null;
  const object = isFields(data) ? data["object"] : null;
  if (!isFields(event) || !isFields(object)) return null;
  const { id, type, livemode } = event;
  if (!isPlain(id) || !isPlain(type) || typeof livemode !== "boolean") return null;
  const subject = subjectOf(type, object);
  return subject === null ? null : { eventId: id, type, livemode, subject };
}

function parsed(rawBody: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(rawBody));
  } catch {
    return null;
  }
}

/** By the type's first words (docs.stripe.com/api/events/types). Null where an object that we follow has no id. */
function subjectOf(type: string, object: Fields): NoticeSubject | null {
  const objectId = plain(object["id"]);
  const chargeId = plain(idOf(object["payment_intent"]));
  if (type.startsWith("payment_intent.")) {
    return objectId === null ? null : { type: "charge", objectId, ...plainMarks(object) };
  }
  if (type.startsWith("refund.") || type === "charge.refund.updated") {
    return objectId === null ? null : { type: "refund", objectId, chargeId };
  }
  if (type.startsWith("charge.dispute.")) {
    return objectId === null ? null : { type: "dispute", objectId, chargeId };
  }
  // A charge is one attempt to pay a PaymentIntent; one of an older integration has none, and is not ours.
  if (type.startsWith("charge.") && chargeId !== null) {
    return { type: "charge", objectId: chargeId, attemptId: null, tenantId: null };
  }
  // Of a payout that was made by hand Stripe cannot tell what is in it (the SDK's typings: BalanceTransactionListParams).
  if (PAYOUT_TYPES.has(type) && object["automatic"] !== false)
    return objectId === null ? null : { type: "payout", objectId };
  // Some objects have no id at all, such as the balance.
  return { type: "other", objectId: objectId ?? "" };
}

function plainMarks(object: Fields): { readonly attemptId: string | null; readonly tenantId: string | null } {
  const { attemptId, tenantId } = marksOn(object);
  return { attemptId: plain(attemptId), tenantId: plain(tenantId) };
}

function isPlain(value: unknown): value is string {
  return typeof value === "string" && PLAIN.test(value);
}

function plain(value: unknown): string | null {
  return isPlain(value) ? value : null;
}
