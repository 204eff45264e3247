import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type Stripe from "stripe";
import { blankPaymentIntent, newCharge } from "../../src/sandbox/payment-intent-object.js";
import type { StoredPaymentMethod } from "../../src/sandbox/payment-methods.js";
import type { StoredBalanceTransaction } from "../../src/sandbox/rows.js";
import {
  amountOf,
  attemptIdOf,
  type Crowd,
  CURRENCY,
  DISPUTE_FEE,
  feeOf,
  hasDispute,
  hasRefund,
  kindAt,
  type PlantedKind,
  REFUND_AMOUNT,
  tenantIdOf,
  uuidOf,
} from "./reconcile-crowd.js";

/** After a payment's row its object is made at the provider, and later what follows it. */
const OBJECT_AFTER_MS = 300;
const METHOD: StoredPaymentMethod = { id: "pm_crowd", token: "pm_card_visa", created: 0, livemode: false };
/** Characters that are written at once. */
const WRITTEN_AT_ONCE = 1_000_000;

interface Payment {
  readonly uuid: string;
  readonly n: number;
  readonly created: number;
  readonly marks: Record<string, string>;
}

/** Writes the crowd's objects as a journal of the sandbox, which a sandbox begins with. */
export function writeJournal(folder: string, crowd: Crowd): void {
  const file = openSync(join(folder, "journal.jsonl"), "w", 0o600);
  try {
    let text = "";
    for (const operations of journalOf(crowd)) {
      text += `${JSON.stringify(operations)}\n`;
      if (text.length < WRITTEN_AT_ONCE) continue;
      writeSync(file, text);
      text = "";
    }
    writeSync(file, text);
  } finally {
    closeSync(file);
  }
}

function* journalOf(crowd: Crowd): Generator<unknown[]> {
  const realm = `${crowd.account}/test`;
  const kinds = kindAt(crowd);
  yield [["payment_method", realm, METHOD]];
  for (let n = 1; n <= crowd.count; n += 1) {
    const uuid = uuidOf(crowd, n);
    const created = Math.floor((crowd.startMs + n * crowd.stepMs + OBJECT_AFTER_MS) / 1_000);
    const marks = { payment_attempt_id: attemptIdOf(uuid), tenant_id: tenantIdOf(crowd, n) };
    const payment: Payment = { uuid, n, created, marks };
    const kind = kinds.get(n) ?? null;
    if (kind !== "missing_there") yield paid(realm, payment);
    if (kind === "orphaned_object" || kind === "second_object") yield stray(realm, payment, kind);
    const isRefunded = hasRefund(n) ? kind !== "refund_missing_there" : kind === "refund_outside";
    if (isRefunded) yield refunded(realm, payment, kind);
    if (hasDispute(n)) yield disputed(realm, payment);
  }
}

function intentOf({ n, created, marks }: Payment, id: string): Stripe.PaymentIntent {
  return {
    ...blankPaymentIntent({
      id,
      secret: id,
      amount: amountOf(n),
      currency: CURRENCY,
      created,
      livemode: false,
    }),
    payment_method: METHOD.id,
    metadata: marks,
  };
}

function succeeded(intent: Stripe.PaymentIntent, chargeId: string | null): Stripe.PaymentIntent {
  return { ...intent, status: "succeeded", amount_received: intent.amount, latest_charge: chargeId };
}

function paid(realm: string, payment: Payment): unknown[] {
  const { uuid, n, created } = payment;
  const chargeId = `ch_${uuid}`;
  const intent = succeeded(intentOf(payment, `pi_${uuid}`), chargeId);
  const charge = newCharge({
    id: chargeId,
    created,
    paymentIntent: intent,
    paymentMethod: METHOD,
    captured: true,
    captureBefore: null,
    decline: null,
  });
  const isRefunded = hasRefund(n);
  return [
    ["payment_intent", realm, intent],
    [
      "charge",
      realm,
      {
        ...charge,
        balance_transaction: `txn_${uuid}`,
        amount_refunded: isRefunded ? REFUND_AMOUNT : 0,
        disputed: hasDispute(n),
      },
    ],
    movement(realm, {
      id: `txn_${uuid}`,
      created,
      amount: amountOf(n),
      fee: feeOf(amountOf(n)),
      source: chargeId,
      type: "charge",
    }),
  ];
}

/** A second object of the payment's attempt: one that was never confirmed, or one that money moved on. */
function stray(realm: string, payment: Payment, kind: PlantedKind): unknown[] {
  const intent = intentOf(payment, `pi_stray_${payment.uuid}`);
  const object =
    kind === "second_object"
      ? succeeded(intent, null)
      : ({ ...intent, status: "requires_confirmation" } as const);
  return [["payment_intent", realm, object]];
}

function refunded(realm: string, { uuid, created, marks }: Payment, kind: PlantedKind | null): unknown[] {
  const refund = {
    id: `re_${uuid}`,
    object: "refund",
    amount: REFUND_AMOUNT,
    balance_transaction: `txn_re_${uuid}`,
    charge: `ch_${uuid}`,
    created,
    currency: CURRENCY,
    metadata: kind === "refund_outside" ? {} : { ...marks, payment_attempt_id: attemptIdOf(`re_${uuid}`) },
    payment_intent: `pi_${uuid}`,
    payment_method: METHOD.id,
    reason: null,
    status: "succeeded",
  };
  const movedBack = { amount: -REFUND_AMOUNT, fee: 0, source: refund.id, type: "refund" } as const;
  return [["row", realm, "refund", refund], movement(realm, { id: `txn_re_${uuid}`, created, ...movedBack })];
}

function disputed(realm: string, { uuid, n, created }: Payment): unknown[] {
  const amount = amountOf(n);
  const id = `dp_${uuid}`;
  const withdrawn = { amount: -amount, fee: DISPUTE_FEE, source: id, type: "adjustment" } as const;
  const row = movement(realm, { id: `txn_dp_${uuid}`, created, ...withdrawn });
  const dispute = {
    id,
    object: "dispute",
    amount,
    balance_transactions: [{ ...row[3].transaction, status: "available" }],
    charge: `ch_${uuid}`,
    created,
    currency: CURRENCY,
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: `pi_${uuid}`,
    reason: "fraudulent",
    status: "needs_response",
  };
  return [["row", realm, "dispute", dispute], row];
}

function movement(
  realm: string,
  {
    id,
    created,
    ...moved
  }: {
    readonly id: string;
    readonly created: number;
    readonly amount: number;
    readonly fee: number;
    readonly source: string;
    readonly type: "charge" | "refund" | "adjustment";
  },
): ["row", string, "balance_transaction", StoredBalanceTransaction] {
  const transaction = {
    id,
    object: "balance_transaction" as const,
    available_on: created,
    balance_type: "payments" as const,
    created,
    currency: CURRENCY,
    description: null,
    exchange_rate: null,
    fee_details: [],
    net: moved.amount - moved.fee,
    reporting_category: moved.type,
    ...moved,
  };
  return ["row", realm, "balance_transaction", { id, created, transaction, payout: null }];
}
