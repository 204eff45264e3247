import { describe, expect, it } from "vitest";
import type { KeptDispute } from "../../../src/domain/dispute.js";
import { feeFactOf } from "../../../src/domain/ledger.js";
import type { ListedTransaction, ProviderDispute } from "../../../src/domain/provider.js";
import {
  compareDispute,
  compareFee,
  compareTransaction,
  type OurRefund,
} from "../../../src/domain/reconcile-after-charge.js";
import { before, CHARGE, REFERENCE, SETTLED, words } from "./reconcile-fixtures.js";

const OURS: OurRefund = {
  attempt: { ...REFERENCE, id: "att_2", kind: "refund" },
  refundId: "re_ours",
  providerRefundId: "re_1",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  inWork: false,
  isDue: false,
  changedAt: before(60),
};
const MOVEMENT = { transactionId: "txn_1", amount: -4_200, currency: "usd", fee: 1_500 };
const DISPUTE: ProviderDispute = {
  id: "dp_1",
  chargeId: "pi_1",
  status: "open",
  amount: 4_200,
  currency: "usd",
  reason: "fraudulent",
  livemode: false,
  movements: [MOVEMENT],
};
const KEPT: KeptDispute = {
  id: "dp_1",
  status: "open",
  amount: 4_200,
  currency: "usd",
  reason: "fraudulent",
  opened_at: before(60).toISOString(),
  read_at: before(60).toISOString(),
  movements: [MOVEMENT],
};

describe("a dispute", () => {
  it.each<{
    readonly what: string;
    readonly theirs?: Partial<ProviderDispute>;
    readonly kept?: KeptDispute | null;
    readonly found: number;
  }>([
    { what: "as it was kept", found: 0 },
    { what: "that was never heard of", kept: null, found: 1 },
    { what: "with another status", theirs: { status: "lost" }, found: 1 },
    { what: "with a status that is not known", theirs: { status: "unrecognized" }, found: 1 },
    { what: "with another amount", theirs: { amount: 4_000 }, found: 1 },
    {
      what: "with a further movement",
      theirs: { movements: [MOVEMENT, { ...MOVEMENT, transactionId: "txn_2" }] },
      found: 1,
    },
    { what: "with a movement that the list no longer shows", theirs: { movements: [] }, found: 0 },
    {
      what: "with another status, read within the lag",
      theirs: { status: "lost" },
      kept: { ...KEPT, read_at: before(1).toISOString() },
      found: 0,
    },
  ])("$what", ({ theirs = {}, kept = KEPT, found }) => {
    const differences = compareDispute({ ...DISPUTE, ...theirs }, CHARGE, kept, SETTLED);
    expect(words(differences)).toEqual(Array<string>(found).fill("dispute_differs record_dispute"));
  });

  it("of somebody else's charge is nothing", () => {
    expect(compareDispute(DISPUTE, null, null, SETTLED)).toEqual([]);
  });
});

describe("a movement of the balance", () => {
  const capture: ListedTransaction = {
    id: "txn_1",
    amount: 4_200,
    fee: 152,
    currency: "usd",
    of: { type: "charge", chargeId: "pi_1" },
  };
  const entry = { currency: "usd", debitAccount: "provider_fees", amount: 152 } as const;
  const books = { charge: CHARGE, refund: null, kept: null, fee: entry };
  const refundOf = (isReversal: boolean): ListedTransaction => ({
    ...capture,
    amount: -1_000,
    fee: 0,
    of: { type: "refund", refundId: "re_1", chargeId: "pi_1", isReversal },
  });
  const disputeOf: ListedTransaction = {
    ...capture,
    of: { type: "dispute", disputeId: "dp_1", chargeId: "pi_1" },
  };
  const look = (at: string) => `look ${at}`;

  it.each<{
    readonly what: string;
    readonly transaction?: ListedTransaction;
    readonly books?: Partial<Parameters<typeof compareTransaction>[1]>;
    readonly verdict: string;
  }>([
    { what: "a capture with its fee", verdict: "same" },
    { what: "a capture without its fee in the books", books: { fee: null }, verdict: "fee_differs nudge" },
    {
      what: "a capture with another fee",
      books: { fee: { ...entry, amount: 153 } },
      verdict: "fee_differs none",
    },
    {
      what: "a fee in another currency",
      books: { fee: { ...entry, currency: "eur" } },
      verdict: "fee_differs none",
    },
    {
      what: "a fee the other way",
      books: { fee: { ...entry, debitAccount: "provider_balance" } },
      verdict: "fee_differs none",
    },
    {
      what: "a capture that took no fee",
      transaction: { ...capture, fee: 0 },
      books: { fee: null },
      verdict: "same",
    },
    {
      what: "a capture of another amount",
      transaction: { ...capture, amount: 4_000 },
      verdict: look("charge pi_1"),
    },
    {
      what: "a capture in the balance's own currency, whose amount says nothing",
      transaction: { ...capture, amount: 3_900, currency: "eur" },
      books: { fee: { ...entry, currency: "eur" } },
      verdict: "same",
    },
    {
      what: "a capture of what is held here",
      books: { charge: { ...CHARGE, status: "authorized" } },
      verdict: look("charge pi_1"),
    },
    {
      what: "a fee of a payment that changed within the lag",
      books: { charge: { ...CHARGE, changedAt: before(1) }, fee: null },
      verdict: "same",
    },
    { what: "somebody else's capture", books: { charge: null }, verdict: "same" },
    {
      what: "what Pawl does not follow",
      transaction: { ...capture, of: { type: "other" } },
      verdict: "same",
    },
    {
      what: "a refund that is known",
      transaction: refundOf(false),
      books: { refund: OURS },
      verdict: "same",
    },
    { what: "a refund that is not", transaction: refundOf(false), verdict: look("refund re_1") },
    {
      what: "a refund that came back",
      transaction: refundOf(true),
      books: { refund: OURS },
      verdict: look("refund re_1"),
    },
    {
      what: "a refund that came back, as it is known",
      transaction: refundOf(true),
      books: { refund: { ...OURS, status: "failed" } },
      verdict: "same",
    },
    { what: "a dispute's, as it is known", transaction: disputeOf, books: { kept: KEPT }, verdict: "same" },
    { what: "a dispute's that is new", transaction: disputeOf, verdict: "dispute_differs record_dispute" },
  ])("$what", ({ transaction = capture, books: changes = {}, verdict }) => {
    const found = compareTransaction(transaction, { ...books, ...changes }, SETTLED);
    const said =
      found.type === "look"
        ? look(`${found.at} ${found.objectId}`)
        : found.type === "differs"
          ? words([found.difference])[0]
          : found.type;
    expect(said).toBe(verdict);
  });

  it("names the fee as the ledger does, and shows both amounts", () => {
    expect(feeFactOf("txn_1")).toBe("fee:txn_1");
    expect(compareFee(capture, CHARGE, { ...entry, amount: 100 })).toMatchObject({
      objectId: "txn_1",
      ours: { fee: 100, currency: "usd" },
      theirs: { fee: 152, currency: "usd", provider_payment_id: "pi_1" },
    });
  });
});
