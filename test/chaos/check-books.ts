import { wantedBalances } from "../support/books.js";
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

function balancesOf(payment: PaymentRow): string[] {
  const wanted = wantedBalances({
    captured: Number(payment.amount_captured),
    refunded: Number(payment.amount_refunded),
    held: Number(payment.amount_capturable),
  });
  return wanted.map(([account, balance]) => `${account} ${balance}`);
}
