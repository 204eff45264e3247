import { fromStripeAmount } from "./currencies.js";
import { isFields } from "./outcome.js";
import { text } from "./wire-answer.js";

/** One movement of Stripe's balance. Amounts are in our minor unit of the balance's currency, and may be negative. */
export interface BalanceTransaction {
  readonly id: string;
  /** Gross: what moved, before the fee. */
  readonly amount: number;
  readonly fee: number;
  readonly net: number;
  readonly currency: string;
  /** Unix seconds; 0 where it is not told. */
  readonly created: number;
  /** The charge, refund, dispute, … that it is of: an id, or the object where it was expanded. */
  readonly source: unknown;
}

/** Null where what was read is none, or an amount is no whole number of our minor unit: a ledger must not guess. */
export function toBalanceTransaction(value: unknown): BalanceTransaction | null {
  if (!isFields(value)) return null;
  const id = text(value["id"]);
  const currency = text(value["currency"]);
  if (id === null || currency === null) return null;
  const [amount, fee, net] = [value["amount"], value["fee"], value["net"]].map((stripeAmount) =>
    Number.isSafeInteger(stripeAmount) ? fromStripeAmount(stripeAmount as number, currency) : null,
  );
  if (!isNumber(amount) || !isNumber(fee) || !isNumber(net)) return null;
  const created = isNumber(value["created"]) ? value["created"] : 0;
  return { id, amount, fee, net, currency, created, source: value["source"] };
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}
