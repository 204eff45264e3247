import type Stripe from "stripe";
import { bookPayout } from "./balance-transactions.js";
import { type Call, emit } from "./call.js";
import { resourceMissing } from "./errors.js";
import { stripeId } from "./ids.js";
import { pageOf } from "./object-lists.js";
import { enumOf } from "./parameters.js";
import type { ListBody } from "./payment-intent-lists.js";
import type { StoredBalanceTransaction } from "./rows.js";

const STATUSES = ["pending", "paid", "failed", "canceled", "in_transit"] as const;

/**
 * Pays out what is available of one currency, or of each: made, paid and reconciled in one go. A balance that is not
 * above zero is left for the next time.
 */
export function payOut(call: Call, currency: string | null): Stripe.Payout[] {
  const byCurrency = new Map<string, StoredBalanceTransaction[]>();
  for (const stored of call.realm.tables.balance_transaction.oldestFirst()) {
    const { transaction } = stored;
    if (stored.payout !== null || transaction.available_on > call.nowSeconds) continue;
    if (currency !== null && transaction.currency !== currency) continue;
    byCurrency.set(transaction.currency, [...(byCurrency.get(transaction.currency) ?? []), stored]);
  }
  return [...byCurrency].flatMap(([each, due]) => payOutCurrency(call, each, due));
}

function payOutCurrency(
  call: Call,
  currency: string,
  due: readonly StoredBalanceTransaction[],
): Stripe.Payout[] {
  const amount = due.reduce((sum, { transaction }) => sum + transaction.net, 0);
  if (amount <= 0) return [];
  const blank = blankPayout(call, currency, amount);
  const created = { ...blank, balance_transaction: bookPayout(call, blank) };
  for (const stored of due) {
    call.store.saveRow(call.realm, "balance_transaction", { ...stored, payout: created.id });
  }
  emit(call, "payout.created", created);
  const paid: Stripe.Payout = { ...created, status: "paid" };
  emit(call, "payout.paid", paid);
  const reconciled: Stripe.Payout = { ...paid, reconciliation_status: "completed" };
  call.store.saveRow(call.realm, "payout", reconciled);
  emit(call, "payout.reconciliation_completed", reconciled);
  return [reconciled];
}

function blankPayout(call: Call, currency: string, amount: number): Stripe.Payout {
  return {
    id: stripeId("po"),
    object: "payout",
    amount,
    application_fee: null,
    application_fee_amount: null,
    arrival_date: call.nowSeconds,
    automatic: true,
    balance_transaction: null,
    created: call.nowSeconds,
    currency,
    description: "STRIPE PAYOUT",
    destination: null,
    failure_balance_transaction: null,
    failure_code: null,
    failure_message: null,
    livemode: call.realm.livemode,
    metadata: {},
    method: "standard",
    original_payout: null,
    payout_method: null,
    reconciliation_status: "in_progress",
    reversed_by: null,
    source_type: "card",
    statement_descriptor: null,
    status: "pending",
    trace_id: null,
    type: "bank_account",
  };
}

/** `GET /v1/payouts/:id` */
export function retrievePayout(call: Call): Stripe.Payout {
  const id = call.objectId ?? "";
  const payout = call.realm.tables.payout.get(id);
  if (payout === undefined) throw resourceMissing(404, "payout", id, "id");
  return payout;
}

/** `GET /v1/payouts` */
export function listPayouts(call: Call): ListBody<Stripe.Payout> {
  const status = enumOf(call.params, "status", STATUSES);
  return pageOf(call, call.realm.tables.payout, {
    kind: "payout",
    url: "/v1/payouts",
    matches: (payout) => status === null || payout.status === status,
  });
}
