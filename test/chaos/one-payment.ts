import type { LoggedRequest, PaymentIntentRecord } from "../../src/sandbox/index.js";
import { feeOf } from "../support/books.js";
import type { Snapshot } from "./snapshot.js";

const CAPTURED = 1_000;
const REFUNDED = 400;
const KEPT = CAPTURED - REFUNDED - feeOf(CAPTURED);

/** The object of its charge, at the provider. */
export const CHARGED = {
  payment_intent: {
    id: "pi_1",
    status: "succeeded",
    amount: CAPTURED,
    currency: "usd",
    amount_received: CAPTURED,
    amount_capturable: 0,
    metadata: { payment_attempt_id: "att_1" },
  },
  successful_charges: 1,
  refunds: [
    {
      id: "re_p",
      amount: REFUNDED,
      status: "succeeded",
      balance_transaction: "txn_2",
      metadata: { payment_attempt_id: "att_2" },
    },
  ],
} as unknown as PaymentIntentRecord;

/** The end of a run with one payment that was paid, refunded in part, and told: nothing is wrong with it. */
export const ONE_PAYMENT: Snapshot = {
  payments: [
    {
      id: "pay_1",
      status: "succeeded",
      amount: String(CAPTURED),
      currency: "usd",
      attempt_id: "att_1",
      capture_method: "automatic",
      merchant_order_id: "order",
      amount_captured: String(CAPTURED),
      amount_capturable: "0",
      amount_refunded: String(REFUNDED),
      refund_reserved: String(REFUNDED),
    },
  ],
  attempts: [
    {
      id: "att_1",
      payment_id: "pay_1",
      refund_id: null,
      kind: "charge",
      operation: "payments.create",
      idempotency_key: "k1",
      provider_payment_id: "pi_1",
    },
    {
      id: "att_2",
      payment_id: "pay_1",
      refund_id: "re_1",
      kind: "refund",
      operation: "refunds.create",
      idempotency_key: "k2",
      provider_payment_id: "pi_1",
    },
  ],
  refunds: [
    {
      id: "re_1",
      payment_id: "pay_1",
      attempt_id: "att_2",
      status: "succeeded",
      amount: String(REFUNDED),
      provider_refund_id: "re_p",
    },
  ],
  keys: [],
  transitions: [
    { payment_id: "pay_1", refund_id: null, from_status: null, to_status: "processing" },
    { payment_id: "pay_1", refund_id: null, from_status: "processing", to_status: "succeeded" },
  ],
  outbox: [
    { id: "evt_1", type: "payment.created", payment_id: "pay_1", data: { id: "pay_1" } },
    { id: "evt_2", type: "payment.succeeded", payment_id: "pay_1", data: { id: "pay_1" } },
  ],
  balances: [
    { payment_id: "pay_1", account: "provider_balance", balance: String(KEPT) },
    { payment_id: "pay_1", account: "provider_fees", balance: String(feeOf(CAPTURED)) },
    { payment_id: "pay_1", account: "refunds", balance: String(REFUNDED) },
    { payment_id: "pay_1", account: "sales", balance: String(-CAPTURED) },
  ],
  reviews: [],
  deliveries: [
    { event_id: "evt_1", state: "delivered" },
    { event_id: "evt_2", state: "delivered" },
  ],
  parked: [],
  sends: [],
  longestPaymentMs: 0,
  objects: [CHARGED],
  spentKeys: new Set(),
  logs: [],
};

const PATH = "/v1/payment_intents";

/** Creates of one attempt and questions about it, as the provider's log has them: in this order, at these times. */
export function requestsOf(attempt: string, arrivals: readonly ("send" | "question")[], at: readonly Date[]) {
  return arrivals.map((what, index) => {
    const call = { method: "POST", path: PATH, call: "payment_intents.create", status: 500 };
    const question = { method: "GET", path: PATH, call: "payment_intents.list", status: 200 };
    return {
      ...(what === "send" ? call : question),
      sequence: index + 1,
      object_id: null,
      parameters: {},
      idempotency_key: what === "send" ? `payment-attempt:${attempt}` : null,
      received_at: at[index]?.toISOString(),
      fault: null,
      abandoned: false,
      error_code: null,
    } as unknown as LoggedRequest;
  });
}
