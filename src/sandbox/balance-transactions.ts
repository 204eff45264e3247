import type Stripe from "stripe";
import type { Call } from "./call.js";
import { resourceMissing } from "./errors.js";
import { idOf, stripeId } from "./ids.js";
import { pageOf } from "./object-lists.js";
import { textOf } from "./parameters.js";
import type { ListBody } from "./payment-intent-lists.js";
import type { StoredBalanceTransaction } from "./rows.js";

// Stripe's standard price for cards (stripe.com/pricing), with its fixed part taken as 30 minor units of any currency.
const FEE_SHARE = 0.029;
const FEE_FIXED = 30;
/** What a dispute costs, in minor units. */
const DISPUTE_FEE = 1_500;

/** 2.9 % and 30, in the currency's minor unit, rounded to the nearest. */
function chargeFee(amount: number): number {
  return Math.round(amount * FEE_SHARE) + FEE_FIXED;
}

interface Booking {
  readonly type: "charge" | "refund" | "refund_failure" | "adjustment" | "payout";
  readonly category: string;
  /** Minor units; negative where money leaves the balance. */
  readonly amount: number;
  readonly fee: number;
  readonly currency: string;
  readonly source: string;
  readonly description: string | null;
  readonly availableAfterMs?: number;
  readonly payout?: string;
}

function book(call: Call, booking: Booking): StoredBalanceTransaction {
  const { amount, fee, currency } = booking;
  const id = stripeId("txn");
  const stored: StoredBalanceTransaction = {
    id,
    created: call.nowSeconds,
    transaction: {
      id,
      object: "balance_transaction",
      amount,
      available_on: call.nowSeconds + Math.ceil((booking.availableAfterMs ?? 0) / 1000),
      balance_type: "payments",
      created: call.nowSeconds,
      currency,
      description: booking.description,
      exchange_rate: null,
      fee,
      fee_details:
        fee === 0
          ? []
          : [
              {
                amount: fee,
                application: null,
                currency,
                description: booking.type === "charge" ? "Stripe processing fees" : "Dispute fee",
                type: "stripe_fee",
              },
            ],
      net: amount - fee,
      reporting_category: booking.category,
      source: booking.source,
      type: booking.type,
    },
    payout: booking.payout ?? null,
  };
  call.store.saveRow(call.realm, "balance_transaction", stored);
  return stored;
}

/** A captured charge enters the balance, less the fee. Returns the transaction's id. */
export function bookCharge(call: Call, charge: Stripe.Charge): string {
  return book(call, {
    type: "charge",
    category: "charge",
    amount: charge.amount_captured,
    fee: chargeFee(charge.amount_captured),
    currency: charge.currency,
    source: charge.id,
    description: charge.description,
    availableAfterMs: call.settings.funds_available_after_ms,
  }).id;
}

/** A refund leaves the balance. The charge's fee is not given back (docs.stripe.com/refunds). */
export function bookRefund(call: Call, refund: Stripe.Refund): string {
  return book(call, {
    type: "refund",
    category: "refund",
    amount: -refund.amount,
    fee: 0,
    currency: refund.currency,
    source: refund.id,
    description: "REFUND FOR CHARGE",
  }).id;
}

/** A refund that failed or was canceled comes back into the balance. */
export function bookRefundFailure(call: Call, refund: Stripe.Refund): string {
  return book(call, {
    type: "refund_failure",
    category: "refund_failure",
    amount: refund.amount,
    fee: 0,
    currency: refund.currency,
    source: refund.id,
    description: "REFUND FAILURE",
  }).id;
}

/** A dispute's money leaves the balance, with its fee. */
export function bookDispute(call: Call, dispute: Stripe.Dispute): Stripe.BalanceTransaction {
  const stored = book(call, {
    type: "adjustment",
    category: "dispute",
    amount: -dispute.amount,
    fee: DISPUTE_FEE,
    currency: dispute.currency,
    source: dispute.id,
    description: `Chargeback withdrawal for ${idOf(dispute.charge)}`,
  });
  return renderBalanceTransaction(stored, call.nowSeconds);
}

/** A dispute's money comes back, with its fee where `returnFee`. */
export function bookDisputeReversal(
  call: Call,
  dispute: Stripe.Dispute,
  returnFee: boolean,
): Stripe.BalanceTransaction {
  const stored = book(call, {
    type: "adjustment",
    category: "dispute_reversal",
    amount: dispute.amount,
    fee: returnFee ? -DISPUTE_FEE : 0,
    currency: dispute.currency,
    source: dispute.id,
    description: `Chargeback reversal for ${idOf(dispute.charge)}`,
  });
  return renderBalanceTransaction(stored, call.nowSeconds);
}

/** What goes to the bank leaves the balance. */
export function bookPayout(call: Call, payout: Stripe.Payout): string {
  return book(call, {
    type: "payout",
    category: "payout",
    amount: -payout.amount,
    fee: 0,
    currency: payout.currency,
    source: payout.id,
    description: payout.description,
    payout: payout.id,
  }).id;
}

/** The object as it is shown: `pending` until its funds are available. */
export function renderBalanceTransaction(
  stored: StoredBalanceTransaction,
  nowSeconds: number,
): Stripe.BalanceTransaction {
  const { transaction } = stored;
  return { ...transaction, status: transaction.available_on <= nowSeconds ? "available" : "pending" };
}

/** `GET /v1/balance_transactions/:id` */
export function retrieveBalanceTransaction(call: Call): Stripe.BalanceTransaction {
  const id = call.objectId ?? "";
  const stored = call.realm.tables.balance_transaction.get(id);
  if (stored === undefined) throw resourceMissing(404, "balance transaction", id, "id");
  return renderBalanceTransaction(stored, call.nowSeconds);
}

/** `GET /v1/balance_transactions`. With `payout`, the payout's own transaction is among them. */
export function listBalanceTransactions(call: Call): ListBody<Stripe.BalanceTransaction> {
  const wanted = { currency: textOf(call.params, "currency"), type: textOf(call.params, "type") };
  const source = textOf(call.params, "source");
  const payout = textOf(call.params, "payout");
  if (payout !== null && call.realm.tables.payout.get(payout) === undefined) {
    throw resourceMissing(400, "payout", payout, "payout");
  }
  const page = pageOf(call, call.realm.tables.balance_transaction, {
    kind: "balance transaction",
    url: "/v1/balance_transactions",
    matches: ({ transaction, payout: paidOutWith }) =>
      (wanted.currency === null || transaction.currency === wanted.currency) &&
      (wanted.type === null || transaction.type === wanted.type) &&
      (source === null || transaction.source === source) &&
      (payout === null || paidOutWith === payout),
  });
  return { ...page, data: page.data.map((stored) => renderBalanceTransaction(stored, call.nowSeconds)) };
}
