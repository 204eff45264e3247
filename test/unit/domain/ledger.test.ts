import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  LEDGER_ACCOUNTS,
  type LedgerAccount,
  type LedgerEntry,
  type MoneyFact,
  postingsOf,
} from "../../../src/domain/ledger.js";

/** An entry in a line: `captured/1 4200 usd provider_balance < sales`, debit first. */
function lineOf(entry: LedgerEntry): string {
  const { fact, leg, amount, currency, debitAccount, creditAccount } = entry;
  return `${fact}/${leg} ${amount} ${currency} ${debitAccount} < ${creditAccount}`;
}

function linesOf(...facts: readonly MoneyFact[]): string[] {
  return facts.flatMap(postingsOf).map(lineOf);
}

/** Debits less credits of each account that is not even, in one currency. */
function balancesOf(
  entries: readonly LedgerEntry[],
  currency: string,
): Partial<Record<LedgerAccount, number>> {
  const sum = (account: LedgerAccount) =>
    entries
      .filter((entry) => entry.currency === currency)
      .reduce(
        (total, { debitAccount, creditAccount, amount }) =>
          total + (debitAccount === account ? amount : 0) - (creditAccount === account ? amount : 0),
        0,
      );
  const sums = LEDGER_ACCOUNTS.map((account) => [account, sum(account)] as const);
  return Object.fromEntries(sums.filter(([, balance]) => balance !== 0));
}

const usd = { currency: "usd" };

const POSTINGS: readonly (readonly [string, MoneyFact, readonly string[]])[] = [
  [
    "a hold",
    { type: "authorized", occurrence: 3, amount: 10_000, ...usd },
    ["authorized:3/1 10000 usd authorized < authorized_contra"],
  ],
  [
    "a hold that is released",
    { type: "released", occurrence: 4, amount: 10_000, ...usd },
    ["released:4/1 10000 usd authorized_contra < authorized"],
  ],
  [
    "a capture without a hold",
    { type: "captured", amount: 4200, authorized: 0, ...usd },
    ["captured/1 4200 usd provider_balance < sales"],
  ],
  [
    "a capture of all that was held",
    { type: "captured", amount: 4200, authorized: 4200, ...usd },
    ["captured/1 4200 usd provider_balance < sales", "captured/2 4200 usd authorized_contra < authorized"],
  ],
  [
    "a capture of a part, the rest released",
    { type: "captured", amount: 6000, authorized: 10_000, ...usd },
    [
      "captured/1 6000 usd provider_balance < sales",
      "captured/2 6000 usd authorized_contra < authorized",
      "captured/3 4000 usd authorized_contra < authorized",
    ],
  ],
  [
    "a capture above what was held",
    { type: "captured", amount: 11_000, authorized: 10_000, ...usd },
    ["captured/1 11000 usd provider_balance < sales", "captured/2 10000 usd authorized_contra < authorized"],
  ],
  [
    "a fee",
    { type: "fee", transactionId: "txn_1", amount: 152, ...usd },
    ["fee:txn_1/1 152 usd provider_fees < provider_balance"],
  ],
  [
    "a fee that is given back",
    { type: "fee", transactionId: "txn_2", amount: -152, ...usd },
    ["fee:txn_2/1 152 usd provider_balance < provider_fees"],
  ],
  ["no fee", { type: "fee", transactionId: "txn_3", amount: 0, ...usd }, []],
  [
    "a refund",
    { type: "refunded", refundId: "re_1", occurrence: 2, amount: 1000, ...usd },
    ["refunded:re_1:2/1 1000 usd refunds < provider_balance"],
  ],
  [
    "a refund that failed after all",
    { type: "refund_failed", refundId: "re_1", occurrence: 3, amount: 1000, ...usd },
    ["refund_failed:re_1:3/1 1000 usd provider_balance < refunds"],
  ],
  [
    "a dispute's withdrawal with its fee",
    { type: "dispute_movement", disputeId: "du_1", transactionId: "txn_4", amount: -4200, fee: 1500, ...usd },
    [
      "dispute:du_1:txn_4/1 4200 usd disputed < provider_balance",
      "dispute:du_1:txn_4/2 1500 usd provider_fees < provider_balance",
    ],
  ],
  [
    "a dispute's reinstatement that gives the fee back",
    { type: "dispute_movement", disputeId: "du_1", transactionId: "txn_5", amount: 4200, fee: -1500, ...usd },
    [
      "dispute:du_1:txn_5/1 4200 usd provider_balance < disputed",
      "dispute:du_1:txn_5/2 1500 usd provider_balance < provider_fees",
    ],
  ],
  [
    "a dispute's fee alone, whose first leg still claims the fact",
    { type: "dispute_movement", disputeId: "du_1", transactionId: "txn_6", amount: 0, fee: 1500, ...usd },
    ["dispute:du_1:txn_6/1 1500 usd provider_fees < provider_balance"],
  ],
  [
    "a lost dispute",
    { type: "dispute_lost", disputeId: "du_1", amount: 4200, ...usd },
    ["dispute_lost:du_1/1 4200 usd dispute_losses < disputed"],
  ],
  [
    "a payout",
    { type: "paid_out", transactionId: "txn_1", amount: 4048, ...usd },
    ["paid_out:txn_1/1 4048 usd bank < provider_balance"],
  ],
  [
    "a payout that takes back",
    { type: "paid_out", transactionId: "txn_7", amount: -1000, ...usd },
    ["paid_out:txn_7/1 1000 usd provider_balance < bank"],
  ],
];

describe("the entries of a fact", () => {
  it.each(POSTINGS)("%s moves money from the credit to the debit account", (_what, fact, lines) => {
    expect(linesOf(fact)).toEqual(lines);
  });

  it.each(POSTINGS.filter(([, fact]) => fact.type !== "fee" && !mayBeNegative(fact)))(
    "%s cannot be of nothing or less",
    (_what, fact) => {
      for (const amount of [0, -1, Number.NaN]) {
        expect(() => postingsOf({ ...fact, amount })).toThrow(RangeError);
      }
    },
  );

  it.each(POSTINGS)("%s is a whole number of minor units", (_what, fact) => {
    for (const amount of [10.5, 2 ** 53, Number.POSITIVE_INFINITY]) {
      expect(() => postingsOf({ ...fact, amount })).toThrow(RangeError);
    }
  });

  it("never come of a hold below nothing or of a fraction of a fee", () => {
    expect(() => postingsOf({ type: "captured", amount: 1, authorized: -1, ...usd })).toThrow(RangeError);
    expect(() => postingsOf({ type: "captured", amount: 1, authorized: 1.5, ...usd })).toThrow(RangeError);
    const movement = { type: "dispute_movement", disputeId: "d", transactionId: "t", amount: -1 } as const;
    expect(() => postingsOf({ ...movement, fee: 0.5, ...usd })).toThrow(RangeError);
  });
});

function mayBeNegative(fact: MoneyFact): boolean {
  return fact.type === "dispute_movement" || fact.type === "paid_out";
}

describe("what is undone leaves nothing", () => {
  const hold = { type: "authorized", occurrence: 2, amount: 10_000, ...usd } as const;
  const refund = { type: "refunded", refundId: "re_1", occurrence: 2, amount: 6000, ...usd } as const;
  const withdrawn = {
    type: "dispute_movement",
    disputeId: "du_1",
    transactionId: "txn_1",
    amount: -6000,
    fee: 1500,
    ...usd,
  } as const;

  it.each<readonly [string, readonly MoneyFact[]]>([
    ["a released hold", [hold, { ...hold, type: "released", occurrence: 3 }]],
    [
      "a hold that came back and was released again",
      [
        hold,
        { ...hold, type: "released", occurrence: 3 },
        { ...hold, occurrence: 4 },
        { ...hold, type: "released", occurrence: 5 },
      ],
    ],
    ["a failed refund", [refund, { ...refund, type: "refund_failed", occurrence: 3 }]],
    [
      "a won dispute whose fee is given back",
      [withdrawn, { ...withdrawn, transactionId: "txn_2", amount: 6000, fee: -1500 }],
    ],
    [
      "a fee that is given back",
      [
        { type: "fee", transactionId: "txn_1", amount: 152, ...usd },
        { type: "fee", transactionId: "txn_2", amount: -152, ...usd },
      ],
    ],
  ])("%s", (_what, facts) => {
    const entries = facts.flatMap(postingsOf);
    expect(entries.length).toBeGreaterThan(0);
    expect(new Set(entries.map(({ fact, leg }) => `${fact}/${leg}`)).size).toBe(entries.length);
    expect(balancesOf(entries, "usd")).toEqual({});
  });
});

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
    ...(lost === 0 ? [] : [{ type: "dispute_lost", disputeId: id, amount: lost, ...usd } as const]),
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
