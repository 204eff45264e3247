import type Stripe from "stripe";

/** A balance transaction as it is kept. Its `status` follows from the clock, so it is worked out when it is shown. */
export interface StoredBalanceTransaction {
  readonly id: string;
  readonly created: number;
  readonly transaction: Omit<Stripe.BalanceTransaction, "status">;
  /** The payout that it went out with; null while it is in the balance. */
  readonly payout: string | null;
}

/** What follows a charge, by kind. */
export interface Rows {
  refund: Stripe.Refund;
  dispute: Stripe.Dispute;
  payout: Stripe.Payout;
  balance_transaction: StoredBalanceTransaction;
}

export type RowKind = keyof Rows;

export const ROW_KINDS: readonly RowKind[] = ["refund", "dispute", "payout", "balance_transaction"];
