import { listBalanceTransactions, retrieveBalanceTransaction } from "./balance-transactions.js";
import { listDisputes, retrieveDispute } from "./disputes.js";
import { names, type Operation } from "./operation.js";
import { PAGE_PARAMETERS } from "./parameters.js";
import { listPayouts, retrievePayout } from "./payouts.js";
import {
  cancelRefund,
  createRefund,
  listRefunds,
  lockedByRefund,
  refundOf,
  updateRefund,
} from "./refund-calls.js";

const EXPAND = names("expand");

// Parameter names of stripe@23.1.0's *Params.
export const AFTER_CHARGE_OPERATIONS: readonly Operation[] = [
  {
    name: "refunds.create",
    method: "POST",
    path: "refunds",
    known: names(
      "amount charge currency customer expand instructions_email metadata origin payment_intent reason " +
        "refund_application_fee reverse_transfer",
    ),
    client: false,
    locks: lockedByRefund,
    run: createRefund,
  },
  {
    name: "refunds.update",
    method: "POST",
    path: "refunds/:id",
    known: names("expand metadata"),
    client: false,
    run: updateRefund,
  },
  {
    name: "refunds.cancel",
    method: "POST",
    path: "refunds/:id/cancel",
    known: EXPAND,
    client: false,
    run: cancelRefund,
  },
  {
    name: "refunds.retrieve",
    method: "GET",
    path: "refunds/:id",
    known: EXPAND,
    client: false,
    run: refundOf,
  },
  {
    name: "refunds.list",
    method: "GET",
    path: "refunds",
    known: new Set([...PAGE_PARAMETERS, "charge", "created", "payment_intent"]),
    client: false,
    run: listRefunds,
  },
  {
    name: "disputes.retrieve",
    method: "GET",
    path: "disputes/:id",
    known: EXPAND,
    client: false,
    run: retrieveDispute,
  },
  {
    name: "disputes.list",
    method: "GET",
    path: "disputes",
    known: new Set([...PAGE_PARAMETERS, "charge", "created", "payment_intent"]),
    client: false,
    run: listDisputes,
  },
  {
    name: "balance_transactions.retrieve",
    method: "GET",
    path: "balance_transactions/:id",
    known: EXPAND,
    client: false,
    run: retrieveBalanceTransaction,
  },
  {
    name: "balance_transactions.list",
    method: "GET",
    path: "balance_transactions",
    known: new Set([...PAGE_PARAMETERS, "created", "currency", "payout", "source", "type"]),
    client: false,
    run: listBalanceTransactions,
  },
  {
    name: "payouts.retrieve",
    method: "GET",
    path: "payouts/:id",
    known: EXPAND,
    client: false,
    run: retrievePayout,
  },
  {
    name: "payouts.list",
    method: "GET",
    path: "payouts",
    known: new Set([...PAGE_PARAMETERS, "arrival_date", "created", "destination", "status"]),
    client: false,
    run: listPayouts,
  },
];
