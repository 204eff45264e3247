import { describe, expect, it } from "vitest";
import { LEDGER_ACCOUNTS, type MoneyFact, postingsOf } from "../../../src/domain/ledger.js";
import { readText } from "../../tidy/source-files.js";
import { balancesOf } from "./ledger-sums.js";

const usd = { currency: "usd" };
const HOLD = { type: "authorized", occurrence: 2, amount: 10_000, ...usd } as const;
const RELEASE = { type: "released", occurrence: 3, amount: 10_000, ...usd } as const;
const SALE = { type: "captured", amount: 10_000, authorized: 0, ...usd } as const;
const FEE = { type: "fee", transactionId: "txn_1", amount: 320, ...usd } as const;
const REFUND = { type: "refunded", refundId: "re_1", occurrence: 2, amount: 2500, ...usd } as const;
const DISPUTE = { type: "dispute_movement", disputeId: "du_1", amount: -10_000, fee: 1500, ...usd } as const;

/** The worked examples of docs/ledger.md, by their headings. */
const LIVES: Readonly<Record<string, readonly MoneyFact[]>> = {
  "Paid at once, and paid out": [
    SALE,
    FEE,
    { type: "paid_out", transactionId: "txn_1", amount: 9680, ...usd },
  ],
  "Held, then captured in part": [HOLD, { ...SALE, amount: 6000, authorized: 10_000 }],
  "Held, then released": [HOLD, RELEASE],
  "Held, released, and captured after all": [HOLD, RELEASE, SALE],
  "Refunded in part, after the payout": [
    SALE,
    { type: "paid_out", transactionId: "txn_1", amount: 10_000, ...usd },
    REFUND,
    { type: "paid_out", transactionId: "txn_2", amount: -2500, ...usd },
  ],
  "A refund that fails after it had succeeded": [
    SALE,
    REFUND,
    { ...REFUND, type: "refund_failed", occurrence: 3 },
  ],
  "A dispute that is won": [
    SALE,
    { ...DISPUTE, transactionId: "txn_2" },
    { ...DISPUTE, transactionId: "txn_3", amount: 10_000, fee: -1500 },
  ],
  "A dispute that is lost": [
    SALE,
    { ...DISPUTE, transactionId: "txn_2" },
    { type: "dispute_lost", disputeId: "du_1", occurrence: 1, amount: 10_000, ...usd },
  ],
  "A dispute that is lost and won on appeal": [
    SALE,
    { ...DISPUTE, transactionId: "txn_2" },
    { type: "dispute_lost", disputeId: "du_1", occurrence: 1, amount: 10_000, ...usd },
    { type: "dispute_lost", disputeId: "du_1", occurrence: 2, amount: -10_000, ...usd },
    { ...DISPUTE, transactionId: "txn_3", amount: 10_000, fee: 0 },
  ],
  "A fee that is given back": [SALE, FEE, { ...FEE, transactionId: "txn_2", amount: -320 }],
};

/** The entries as the page's table, and in its last line what they leave on each account: debits less credits. */
function tableOf(facts: readonly MoneyFact[]): string {
  const entries = facts.flatMap(postingsOf);
  const lines = entries.map(
    ({ fact, leg, debitAccount, creditAccount, amount }) =>
      `| \`${fact}\` | ${leg} | ${debitAccount} | ${creditAccount} | ${amount} |`,
  );
  const left = Object.entries(balancesOf(entries, "usd")).map(
    ([account, balance]) => `${account} ${String(balance).replace("-", "−")}`,
  );
  return [
    "| fact | leg | debit | credit | amount |",
    "|---|---|---|---|---|",
    ...lines,
    "",
    `Left: ${left.length === 0 ? "nothing on any account" : left.join(", ")}.`,
  ].join("\n");
}

describe("docs/ledger.md", () => {
  const page = readText("docs/ledger.md");

  it.each(Object.entries(LIVES))("shows what is really posted: %s", (heading, facts) => {
    const [, section = ""] = page.split(`\n### ${heading}\n`);
    expect(section.split("\n### ")[0]).toContain(`\n${tableOf(facts)}\n`);
  });

  it("has every account and every kind of fact", () => {
    for (const account of LEDGER_ACCOUNTS) expect(page).toContain(`| \`${account}\` |`);
    const posted = Object.values(LIVES).flat().flatMap(postingsOf);
    const kinds = new Set(posted.map(({ fact }) => fact.split(":")[0]));
    for (const kind of kinds) expect(page).toMatch(new RegExp(`^\\| \`${kind}(?::[^\`]*)?\` \\|`, "m"));
    expect(kinds.size).toBe(9);
  });
});
