import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type LedgerAccount,
  type LedgerEntry,
  type MoneyFact,
  postingsOf,
} from "../../../src/domain/ledger.js";
import { balancesOf } from "./ledger-sums.js";

const usd = { currency: "usd" };

/** What a payment's life came to, beside the facts that tell it: the books must say the same. */
interface Life {
  readonly facts: readonly MoneyFact[];
  readonly sold: number;
  readonly refunded: number;
  readonly fees: number;
  readonly lost: number;
  readonly paidOut: number;
}

const amounts = fc.integer({ min: 1, max: 999_999_999_999 });
/** A share of an amount, at least 1. */
const shareOf = (amount: number, share: number) => Math.max(1, Math.floor(amount * share));
const shares = fc.double({ min: 0, max: 1, noNaN: true });

const lives: fc.Arbitrary<Life> = fc
  .record({
    amount: amounts,
    hold: fc.constantFrom("none", "captured", "released", "released and captured late"),
    captured: shares,
    fee: fc.integer({ min: -500, max: 100_000 }),
    refunds: fc.array(fc.record({ share: shares, fails: fc.boolean() }), { maxLength: 4 }),
    disputes: fc.array(fc.record({ share: shares, fee: fc.integer({ min: -10, max: 2000 }), won: shares }), {
      maxLength: 3,
    }),
    paidOut: fc.boolean(),
  })
  .map(lifeOf);

interface Plan {
  readonly amount: number;
  readonly hold: string;
  readonly captured: number;
  readonly fee: number;
  readonly refunds: readonly { readonly share: number; readonly fails: boolean }[];
  readonly disputes: readonly { readonly share: number; readonly fee: number; readonly won: number }[];
  readonly paidOut: boolean;
}

function lifeOf(plan: Plan): Life {
  const held = plan.hold === "none" ? 0 : plan.amount;
  const before: MoneyFact[] = [];
  if (held > 0) before.push({ type: "authorized", occurrence: 2, amount: held, ...usd });
  if (plan.hold.startsWith("released"))
    before.push({ type: "released", occurrence: 3, amount: held, ...usd });
  if (plan.hold === "released") {
    return { facts: before, sold: 0, refunded: 0, fees: 0, lost: 0, paidOut: 0 };
  }
  const sold = plan.hold === "captured" ? shareOf(plan.amount, plan.captured) : plan.amount;
  const authorized = plan.hold === "captured" ? held : 0;
  const refunds = plan.refunds.map(({ share, fails }, at) => ({
    fails,
    amount: shareOf(sold, share),
    id: `re_${at}`,
  }));
  const disputes = plan.disputes.map(({ share, fee, won }, at) => {
    const amount = shareOf(sold, share);
    return { id: `du_${at}`, amount, fee, regained: Math.floor(amount * won) };
  });
  const paidOut = plan.paidOut ? sold - plan.fee : 0;
  return {
    facts: [
      ...before,
      { type: "captured", amount: sold, authorized, ...usd },
      { type: "fee", transactionId: "txn_charge", amount: plan.fee, ...usd },
      ...refunds.flatMap(({ id, amount, fails }): MoneyFact[] => {
        const fact = { refundId: id, amount, ...usd };
        const done: MoneyFact = { type: "refunded", occurrence: 2, ...fact };
        return fails ? [done, { type: "refund_failed", occurrence: 3, ...fact }] : [done];
      }),
      ...disputes.flatMap((dispute) => disputeFacts(dispute)),
      { type: "paid_out", transactionId: "txn_charge", amount: paidOut, ...usd },
    ],
    sold,
    refunded: refunds.reduce((sum, { amount, fails }) => sum + (fails ? 0 : amount), 0),
    fees: plan.fee + disputes.reduce((sum, { fee }) => sum + fee, 0),
    lost: disputes.reduce((sum, { amount, regained }) => sum + amount - regained, 0),
    paidOut,
  };
}

function disputeFacts(dispute: {
  readonly id: string;
  readonly amount: number;
  readonly fee: number;
  readonly regained: number;
}): MoneyFact[] {
  const { id, amount, fee, regained } = dispute;
  const movement = { type: "dispute_movement", disputeId: id, ...usd } as const;
  const lost = amount - regained;
  return [
    { ...movement, transactionId: `txn_${id}_out`, amount: -amount, fee },
    { ...movement, transactionId: `txn_${id}_back`, amount: regained, fee: 0 },
    ...(lost === 0
      ? []
      : [{ type: "dispute_lost", disputeId: id, occurrence: 1, amount: lost, ...usd } as const]),
  ];
}

const inMinorUnits = (entry: LedgerEntry) => Number.isSafeInteger(entry.amount) && entry.amount > 0;

describe("over any life of a payment", () => {
  it("debits equal credits, nothing is held at the end, and each account says what happened", () => {
    fc.assert(
      fc.property(lives, ({ facts, sold, refunded, fees, lost, paidOut }) => {
        const entries = facts.flatMap(postingsOf);
        const balances = balancesOf(entries, "usd");
        expect(Object.values(balances).reduce((sum, balance) => sum + balance, 0)).toBe(0);
        const balance = (account: LedgerAccount) => balances[account] ?? 0;
        expect([balance("authorized"), balance("authorized_contra"), balance("disputed")]).toEqual([0, 0, 0]);
        expect(balance("sales")).toBe(0 - sold);
        expect(balance("refunds")).toBe(refunded);
        expect(balance("provider_fees")).toBe(fees);
        expect(balance("dispute_losses")).toBe(lost);
        expect(balance("bank")).toBe(paidOut);
        expect(balance("provider_balance")).toBe(sold - refunded - fees - lost - paidOut);
      }),
    );
  });

  it("each entry is a whole amount above nothing between two accounts, under a name of its own", () => {
    fc.assert(
      fc.property(lives, ({ facts }) => {
        const entries = facts.flatMap(postingsOf);
        expect(entries.every(inMinorUnits)).toBe(true);
        expect(entries.every((entry) => entry.debitAccount !== entry.creditAccount)).toBe(true);
        expect(new Set(entries.map(({ fact, leg }) => `${fact}/${leg}`)).size).toBe(entries.length);
        const first = entries.filter(({ leg }) => leg === 1).map(({ fact }) => fact);
        expect(new Set(first)).toEqual(new Set(entries.map(({ fact }) => fact)));
      }),
    );
  });

  it("currencies never meet: a fee in the currency of the settlement leaves the sale as it is", () => {
    const entries = [
      { type: "captured", amount: 500, authorized: 0, currency: "jpy" } as const,
      { type: "fee", transactionId: "txn_1", amount: 12, currency: "usd" } as const,
    ].flatMap(postingsOf);
    expect(balancesOf(entries, "jpy")).toEqual({ provider_balance: 500, sales: -500 });
    expect(balancesOf(entries, "usd")).toEqual({ provider_fees: 12, provider_balance: -12 });
  });
});
