/**
 * The accounts of a tenant's ledger, each once per currency. What they mean to a bookkeeper, and every life of a payment
 * as entries, is in docs/ledger.md.
 */
export const LEDGER_ACCOUNTS = [
  /** Held on customers' cards and not captured: a memorandum, with its counterpart. No money of the merchant's. */
  "authorized",
  "authorized_contra",
  /** What the provider keeps for the merchant until it is paid out. */
  "provider_balance",
  "sales",
  "refunds",
  "provider_fees",
  /** Withdrawn by disputes that are not decided. */
  "disputed",
  "dispute_losses",
  /** Paid out by the provider. */
  "bank",
] as const;
export type LedgerAccount = (typeof LEDGER_ACCOUNTS)[number];

/**
 * What happened to money. Amounts are integers in the currency's ISO 4217 minor unit, above 0 unless said otherwise.
 * `currency` is the one that the amount is in: a fee, a dispute's movement and a payout have their transaction's, which
 * is the payment's own or the one that the provider settles in.
 */
export type MoneyFact =
  /** `occurrence`: the payment's (or refund's) version that the fact made, where it can happen more than once. */
  | {
      readonly type: "authorized";
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** `authorized`: what was held until now, all of which ends; 0 where nothing was held. */
  | {
      readonly type: "captured";
      readonly amount: number;
      readonly authorized: number;
      readonly currency: string;
    }
  /** A hold that ended without a capture: canceled, lapsed, or gone at the provider. */
  | {
      readonly type: "released";
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** `amount`: negative where the provider gave a fee back, 0 where a transaction had none. */
  | {
      readonly type: "fee";
      readonly transactionId: string;
      readonly amount: number;
      readonly currency: string;
    }
  | {
      readonly type: "refunded";
      readonly refundId: string;
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** Undoes a `refunded`: a refund that had succeeded and whose money came back. */
  | {
      readonly type: "refund_failed";
      readonly refundId: string;
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** `amount`: negative where funds were withdrawn, positive where they were given back. `fee`: as a fee's amount. */
  | {
      readonly type: "dispute_movement";
      readonly disputeId: string;
      readonly transactionId: string;
      readonly amount: number;
      readonly fee: number;
      readonly currency: string;
    }
  /**
   * `amount`: what the dispute's movements withdrew and did not give back, as far as it is not posted yet; negative where
   * a loss is taken back. `occurrence` counts the postings of the dispute's loss, from 1.
   */
  | {
      readonly type: "dispute_lost";
      readonly disputeId: string;
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** `amount`: what one of the payment's transactions added to a payout; negative where it lowered it. */
  | {
      readonly type: "paid_out";
      readonly transactionId: string;
      readonly amount: number;
      readonly currency: string;
    };

/** One transfer. Balanced by construction: what one account is debited the other is credited. */
export interface LedgerEntry {
  /** Unique among the payment's facts; with `leg` the key that keeps a fact from posting twice. */
  readonly fact: string;
  /** From 1, without a gap: the first leg stands for its fact. */
  readonly leg: number;
  readonly currency: string;
  readonly debitAccount: LedgerAccount;
  readonly creditAccount: LedgerAccount;
  /** Above 0, in the currency's minor unit. */
  readonly amount: number;
}

/** What an account holds in a currency. Sums of many payments: exact beyond 2^53. */
export interface AccountBalance {
  readonly currency: string;
  readonly account: LedgerAccount;
  readonly debits: bigint;
  readonly credits: bigint;
}

/**
 * The entries of a fact, the same for the same fact; none where nothing moved (a fee of 0). Throws RangeError for an
 * amount that the fact cannot have: whoever made such a fact has a bug that must not reach the books.
 */
export function postingsOf(fact: MoneyFact): readonly LedgerEntry[] {
  const name = factName(fact);
  return transfersOf(fact)
    .filter((transfer) => transfer.amount > 0)
    .map((transfer, at) => ({ fact: name, leg: at + 1, currency: fact.currency, ...transfer }));
}

function factName(fact: MoneyFact): string {
  switch (fact.type) {
    case "authorized":
    case "released":
      return `${fact.type}:${fact.occurrence}`;
    case "captured":
      return fact.type;
    case "fee":
      return feeFactOf(fact.transactionId);
    case "paid_out":
      return `${fact.type}:${fact.transactionId}`;
    case "refunded":
    case "refund_failed":
      return `${fact.type}:${fact.refundId}:${fact.occurrence}`;
    case "dispute_movement":
      return `dispute:${fact.disputeId}:${fact.transactionId}`;
    case "dispute_lost":
      return fact.occurrence === 1
        ? `${fact.type}:${fact.disputeId}`
        : `${fact.type}:${fact.disputeId}:${fact.occurrence}`;
  }
}

/** The name of the fact that a transaction took a fee: by it the books are asked for the fee. */
export function feeFactOf(transactionId: string): string {
  return `fee:${transactionId}`;
}

type Transfer = Pick<LedgerEntry, "debitAccount" | "creditAccount" | "amount">;

function transfersOf(fact: MoneyFact): readonly Transfer[] {
  switch (fact.type) {
    case "authorized":
      return [transfer("authorized", "authorized_contra", positive(fact.amount))];
    case "released":
      return [transfer("authorized_contra", "authorized", positive(fact.amount))];
    case "captured":
      return capture(positive(fact.amount), fact.authorized);
    case "fee":
      return [transfer("provider_fees", "provider_balance", fact.amount)];
    case "refunded":
      return [transfer("refunds", "provider_balance", positive(fact.amount))];
    case "refund_failed":
      return [transfer("provider_balance", "refunds", positive(fact.amount))];
    case "dispute_movement":
      return [
        transfer("provider_balance", "disputed", fact.amount),
        transfer("provider_fees", "provider_balance", fact.fee),
      ];
    case "dispute_lost":
      return [transfer("dispute_losses", "disputed", fact.amount)];
    case "paid_out":
      return [transfer("bank", "provider_balance", fact.amount)];
  }
}

/** The sale, then the end of the whole hold in two legs: the part that was captured and the rest that is released. */
function capture(amount: number, authorized: number): readonly Transfer[] {
  const held = authorized === 0 ? 0 : positive(authorized);
  const kept = Math.min(amount, held);
  return [
    transfer("provider_balance", "sales", amount),
    transfer("authorized_contra", "authorized", kept),
    transfer("authorized_contra", "authorized", held - kept),
  ];
}

/** A negative amount is the same transfer the other way. */
function transfer(debitAccount: LedgerAccount, creditAccount: LedgerAccount, amount: number): Transfer {
  if (!Number.isSafeInteger(amount)) throw new RangeError(`an amount of money is not an integer: ${amount}`);
  if (amount >= 0) return { debitAccount, creditAccount, amount };
  return { debitAccount: creditAccount, creditAccount: debitAccount, amount: -amount };
}

function positive(amount: number): number {
  if (amount > 0) return amount;
  throw new RangeError(`an amount of money that must be above 0 is ${amount}`);
}
