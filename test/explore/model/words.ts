import type { Tables } from "./rows.js";
import type { Way } from "./stripe-objects.js";
import type { Outcome } from "./wire.js";

/** How steps are told. */

/** `at`: the attempt's place. */
export function nameOf({ attempts }: Tables, at: number): string {
  const row = attempts[at]?.value;
  return row === undefined ? "nothing" : `the ${row.kind} of ${row.payment_id}`;
}

export function wordsOfWay({ type, answer, pruned }: Way): string {
  const gone = pruned ? ", whose key it no longer knows" : "";
  const said = answer === null ? "" : `: ${SAID[answer]}`;
  switch (type) {
    case "as_asked":
      return `${gone}${said}`;
    case "error_after_effect":
      return `${gone}${said}, and answers with a 500 that it keeps`;
    case "error_before_effect":
      return " not, and answers with a 500 that it keeps";
    case "rate_limited":
      return " not: 429, refused before execution";
    case "key_in_use":
      return " not: 409, a request with this key is still running";
    case "object_locked":
      return " not: 429, another request holds the object";
    case "lagging_list":
      return ", and does not show what there is";
  }
}

export const SAID: Readonly<Record<NonNullable<Way["answer"]>, string>> = {
  pays: "the card pays",
  declines: "the card declines",
  asks: "the customer must act",
  pends: "the bank has not decided",
  misleads: "the card pays, and is told to have declined",
  refunds: "refunded",
  refund_pends: "on its way",
};

export function wordsOf(outcome: Outcome): string {
  switch (outcome.type) {
    case "object":
      return `${outcome.replayed ? "replayed, " : ""}${outcome.charge.status}`;
    case "refund":
      return `${outcome.replayed ? "replayed, " : ""}refund ${outcome.refund.status}`;
    case "found":
      return "charge" in outcome
        ? `found, ${outcome.charge.status}`
        : `found, refund ${outcome.refund.status}`;
    case "unknown":
    case "unanswered":
    case "not_performed":
      return `${outcome.type.replace("_", " ")} (${outcome.reason})`;
    case "declined":
    case "rejected":
    case "absent":
    case "missing":
      return outcome.type;
  }
}
