import { describe, expect, it } from "vitest";
import { type LedgerEntry, type MoneyFact, postingsOf } from "../../../src/domain/ledger.js";
import { balancesOf } from "./ledger-sums.js";

/** An entry in a line: `captured/1 4200 usd provider_balance < sales`, debit first. */
function lineOf(entry: LedgerEntry): string {
  const { fact, leg, amount, currency, debitAccount, creditAccount } = entry;
  return `${fact}/${leg} ${amount} ${currency} ${debitAccount} < ${creditAccount}`;
}

function linesOf(...facts: readonly MoneyFact[]): string[] {
  return facts.flatMap(postingsOf).map(lineOf);
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
    { type: "dispute_lost", disputeId: "du_1", occurrence: 1, amount: 4200, ...usd },
    ["dispute_lost:du_1/1 4200 usd dispute_losses < disputed"],
  ],
  [
    "a loss that is taken back",
    { type: "dispute_lost", disputeId: "du_1", occurrence: 2, amount: -4200, ...usd },
    ["dispute_lost:du_1:2/1 4200 usd disputed < dispute_losses"],
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
  return fact.type === "dispute_movement" || fact.type === "dispute_lost" || fact.type === "paid_out";
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
      "a dispute that is lost and won on appeal, its fee given back",
      [
        withdrawn,
        { type: "dispute_lost", disputeId: "du_1", occurrence: 1, amount: 6000, ...usd },
        { type: "dispute_lost", disputeId: "du_1", occurrence: 2, amount: -6000, ...usd },
        { ...withdrawn, transactionId: "txn_2", amount: 6000, fee: -1500 },
      ],
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
