import { feeOf } from "../support/books.js";
import type { PaymentRow, Snapshot } from "./snapshot.js";

/** What each payment's entries must come to, from what the provider did with its money: a sentence for each fault. */
export function bookFaults(seen: Snapshot): string[] {
  const books = new Map<string, string[]>();
  for (const { payment_id: id, account, balance } of seen.balances)
    books.set(id, [...(books.get(id) ?? []), `${account} ${balance}`]);
  return seen.payments.flatMap((payment) => {
    const [wanted, posted] = [balancesOf(payment).join(), (books.get(payment.id) ?? []).join()];
    return wanted === posted ? [] : [`the books of ${payment.id} say ${posted}, not ${wanted}`];
  });
}

/** docs/ledger.md, in the order of the accounts' names. */
function balancesOf(payment: PaymentRow): string[] {
  const captured = Number(payment.amount_captured);
  const refunded = Number(payment.amount_refunded);
  const held = Number(payment.amount_capturable);
  const fee = feeOf(captured);
  const balances = {
    authorized: held,
    authorized_contra: -held,
    provider_balance: captured - refunded - fee,
    provider_fees: fee,
    refunds: refunded,
    sales: -captured,
  };
  return Object.entries(balances)
    .filter(([, balance]) => balance !== 0)
    .map(([account, balance]) => `${account} ${balance}`);
}
