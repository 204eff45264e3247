import type {
  LookupOutcome,
  ProviderCharge,
  ProviderRefund,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "./provider.js";

/** An answer in one line, for the timeline. */
export function describeSend(outcome: SendOutcome | RefundSendOutcome): string {
  switch (outcome.type) {
    case "object":
      return `${outcome.replayed ? "replayed " : ""}object: ${outcome.charge.status}`;
    case "refund":
      return `${outcome.replayed ? "replayed " : ""}refund: ${outcome.refund.status}`;
    case "declined":
      return `${outcome.replayed ? "replayed " : ""}declined: ${outcome.failure.decline_code ?? outcome.failure.code}`;
    case "rejected":
      return `rejected: ${outcome.failure.code}`;
    case "not_performed":
      return `not performed: ${outcome.reason}`;
    case "unknown":
      return `unknown: ${outcome.reason}`;
  }
}

export function describeLookup(outcome: LookupOutcome | RefundLookupOutcome): string {
  switch (outcome.type) {
    case "found":
      return `found: ${"charge" in outcome ? outcome.charge.status : outcome.refund.status}`;
    case "unanswered":
      return `unanswered: ${outcome.reason}`;
    case "absent":
    case "missing":
      return outcome.type;
  }
}

/** What an object shows that a person is to judge: its money, and whose marks it carries. */
export function describeObject(object: ProviderCharge | ProviderRefund): string {
  const captured =
    "amountCaptured" in object ? `, captured ${object.amountCaptured ?? "an unknown amount"}` : "";
  const marks = `marks ${object.attemptId ?? "of no attempt"}, ${object.tenantId ?? "no tenant"}`;
  return `${object.id}: ${object.amount ?? "no whole amount"} ${object.currency}${captured}, ${marks}`;
}
