import type { PayoutLookupOutcome, PayoutMovement } from "../../domain/provider.js";
import { toBalanceTransaction } from "./balance-transaction.js";
import { readPage, refusalOf, refused, unanswered } from "./list-pages.js";
import { idOf, isFields } from "./outcome.js";
import type { WireAnswer } from "./wire-answer.js";

/** So that each movement tells the PaymentIntent whose money it is. */
export const SOURCE_EXPANSIONS = ["data.source"];

/**
 * One page of what an automatic payout settled, from the balance transactions that Stripe files under it, without its own
 * (docs.stripe.com/payouts/reconciliation). A charge, a refund and a dispute name the PaymentIntent that they are of.
 */
export function readPayout(answer: WireAnswer, payoutId: string, cursor: string | null): PayoutLookupOutcome {
  const refusal = refusalOf(answer);
  // Past the first page it is the cursor that is missing, not the payout.
  if (refusal !== null) return refusal.type === "missing" && cursor !== null ? refused(answer) : refusal;
  const page = readPage(answer.body, (entry) => toMovement(entry, payoutId), cursor);
  if (page === null) return unanswered(answer, "unreadable");
  const { items: movements, next } = page;
  return { type: "found", movements, ...(next === null ? {} : { next }), evidence: answer.evidence };
}

function toMovement(entry: unknown, payoutId: string): PayoutMovement | "skip" | null {
  const transaction = toBalanceTransaction(entry);
  if (transaction === null) return null;
  const { id, net, currency, source } = transaction;
  if (idOf(source) === payoutId) return "skip";
  const chargeId = isFields(source) ? idOf(source["payment_intent"]) : null;
  return { transactionId: id, chargeId, amount: net, currency };
}
