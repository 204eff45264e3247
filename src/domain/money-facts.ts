import type { Applied } from "./apply-change.js";
import type { Change, ChargeView } from "./charge-change.js";
import type { MoneyFact } from "./ledger.js";

/** What a change did to money, read off the amounts before and after it: what was written is what is posted. */
export function moneyFactsOf(view: ChargeView, change: Change, applied: Applied): readonly MoneyFact[] {
  return [
    ...paymentFacts(view, applied),
    ...refundFacts(view, applied),
    ...(change.fee === undefined || change.fee === null ? [] : [{ type: "fee", ...change.fee } as const]),
  ];
}

function paymentFacts({ payment: before }: ChargeView, { payment: after }: Applied): readonly MoneyFact[] {
  const { currency, version: occurrence } = after;
  const captured = after.amountCaptured - before.amountCaptured;
  if (captured > 0) {
    return [{ type: "captured", amount: captured, authorized: before.amountCapturable, currency }];
  }
  const held = after.amountCapturable - before.amountCapturable;
  if (held > 0) return [{ type: "authorized", occurrence, amount: held, currency }];
  if (held < 0) return [{ type: "released", occurrence, amount: -held, currency }];
  return [];
}

function refundFacts({ refund: before }: ChargeView, { refund: after }: Applied): readonly MoneyFact[] {
  if (before === null || after === null || before.status === after.status) return [];
  const { id: refundId, version: occurrence, amount, currency } = after;
  const fact = { refundId, occurrence, amount, currency };
  if (after.status === "succeeded") return [{ type: "refunded", ...fact }];
  return before.status === "succeeded" ? [{ type: "refund_failed", ...fact }] : [];
}
