/** The accounts of a tenant's ledger, per currency. */
export const LEDGER_ACCOUNTS = [
  /** Held on customers' cards and not captured: a memorandum, with its counterpart. */
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

/** What happened to money. Amounts are integers in the currency's minor unit, above 0 unless said otherwise. */
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
  | {
      readonly type: "released";
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
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
  | {
      readonly type: "refund_failed";
      readonly refundId: string;
      readonly occurrence: number;
      readonly amount: number;
      readonly currency: string;
    }
  /** `amount`: negative where funds were withdrawn, positive where they were given back. */
  | {
      readonly type: "dispute_movement";
      readonly disputeId: string;
      readonly transactionId: string;
      readonly amount: number;
      readonly fee: number;
      readonly currency: string;
    }
  | {
      readonly type: "dispute_lost";
      readonly disputeId: string;
      readonly amount: number;
      readonly currency: string;
    }
  /** `amount` may be negative: a payout that takes back. */
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
  readonly leg: number;
  readonly currency: string;
  readonly debitAccount: LedgerAccount;
  readonly creditAccount: LedgerAccount;
  readonly amount: number;
}
