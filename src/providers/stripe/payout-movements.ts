import type { PayoutLookupOutcome, PayoutMovement } from "../../domain/provider.js";
import { toBalanceTransaction } from "./balance-transaction.js";
import { type ListPage, listAll } from "./list-pages.js";
import { idOf, isFields } from "./outcome.js";

/** So that each movement tells the PaymentIntent whose money it is. */
export const SOURCE_EXPANSIONS = ["data.source"];

/**
 * What an automatic payout settled, from the balance transactions that Stripe files under it, without its own
 * (docs.stripe.com/payouts/reconciliation). A charge, a refund and a dispute name the PaymentIntent that they are of.
 */
export async function readPayout(listPage: ListPage, payoutId: string): Promise<PayoutLookupOutcome> {
  const listed = await listAll(listPage, (entry) => toMovement(entry, payoutId));
  if (listed.type !== "all") return listed;
  return { type: "found", movements: listed.items, evidence: listed.evidence };
}

function toMovement(entry: unknown, payoutId: string): PayoutMovement | "skip" | null {
  const transaction = toBalanceTransaction(entry);
  if (transaction === null) return null;
  const { id, net, currency, source } = transaction;
  if (idOf(source) === payoutId) return "skip";
  const chargeId = isFields(source) ? idOf(source["payment_intent"]) : null;
  return { transactionId: id, chargeId, amount: net, currency };
}
