import type { DisputeMovement, ProviderDispute } from "../../domain/provider.js";
import { toBalanceTransaction } from "./balance-transaction.js";
import { fromStripeAmount } from "./currencies.js";
import { idOf, isFields } from "./outcome.js";
import { shownText, text } from "./wire-answer.js";

/**
 * A Dispute as the port has it, or null where what was read is none, or one of its movements cannot be read exactly.
 * Source of the statuses: docs.stripe.com/api/disputes/object and the SDK's typings of Dispute.Status.
 */
export function toProviderDispute(value: unknown): ProviderDispute | null {
  if (!isFields(value)) return null;
  const { livemode, status, amount: stripeAmount } = value;
  const [id, currency] = [text(value["id"]), text(value["currency"])];
  if (id === null || currency === null || typeof livemode !== "boolean") return null;
  if (typeof status !== "string" || !Number.isSafeInteger(stripeAmount)) return null;
  const movements = toMovements(value["balance_transactions"]);
  if (movements === null) return null;
  return {
    id,
    chargeId: idOf(value["payment_intent"]),
    status: toDisputeStatus(status),
    amount: fromStripeAmount(stripeAmount as number, currency),
    currency,
    reason: shownText(value["reason"]),
    livemode,
    movements,
  };
}

function toDisputeStatus(status: string): ProviderDispute["status"] {
  switch (status) {
    case "warning_needs_response":
    case "warning_under_review":
      return "warning";
    case "needs_response":
    case "appeal_needs_response":
      return "open";
    case "under_review":
    case "appeal_under_review":
      return "under_review";
    case "won":
      return "won";
    case "lost":
      return "lost";
    // Neither moved money: an inquiry that went no further, and a dispute that the network or a refund forestalled.
    case "warning_closed":
    case "prevented":
      return "closed";
    default:
      return "unrecognized";
  }
}

function toMovements(value: unknown): readonly DisputeMovement[] | null {
  if (!Array.isArray(value)) return null;
  const transactions = value.map(toBalanceTransaction);
  const readable = transactions.filter((transaction) => transaction !== null);
  if (readable.length !== transactions.length) return null;
  return readable
    .toSorted((one, other) => one.created - other.created)
    .map(({ id, amount, fee, currency }) => ({ transactionId: id, amount, fee, currency }));
}
