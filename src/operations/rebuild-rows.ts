import { paymentDocument, refundDocument } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";
import type { ListedCharge, ProviderRefund } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import type { Refund } from "../domain/refund.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import {
  type OutsideFactRow,
  type PaymentReading,
  readPaymentForFacts,
  writeOutsideFact,
} from "../store/outside-facts.js";
import { insertRebuiltPayment } from "../store/rebuilt-payments.js";
import type { HeldRun } from "./reconcile-run.js";
import { EFFECT_OPERATIONS } from "./request-effect.js";

/** What the timeline says of a row that was lost and made again from the provider's object. */
const REBUILT = "recovered_without_row";
/** Each means that somebody else has just written the payment. */
const MOST_WRITES = 3;

/**
 * A payment and its charge attempt, made again from the object that carries their marks. The attempt follows the object
 * from the start and is due, so status, amounts and books come by the way of every payment; one that nobody has confirmed
 * it closes, since a confirm may still be under way. Lost are the client's key, its order id and its metadata; the
 * attempt's id is derived from the key, so that key will never charge again.
 * False: the attempt stands already, or the object's amount cannot be a payment's.
 */
export async function rebuildPayment(held: HeldRun, charge: ListedCharge): Promise<boolean> {
  const { deps, run } = held;
  const { attemptId, tenantId, amount } = charge;
  if (attemptId === null || tenantId === null || amount === null) return false;
  const { createdAt } = charge;
  const payment: Payment = {
    tenantId,
    id: newId("pay"),
    status: "processing",
    version: 1,
    amount,
    currency: charge.currency,
    captureMethod: charge.captureMethod,
    paymentMethod: charge.paymentMethod ?? "unknown",
    customer: charge.customer,
    merchantOrderId: null,
    holdsOrderId: false,
    description: charge.description,
    statementDescriptor: null,
    returnUrl: null,
    metadata: {},
    provider: run.provider,
    providerPaymentId: charge.id,
    nextAction: null,
    failure: null,
    resolution: null,
    amountCapturable: 0,
    amountCaptured: 0,
    amountRefunded: 0,
    refundReserved: 0,
    openEffect: null,
    authorizedUntil: null,
    cancellationReason: null,
    disputes: [],
    livemode: charge.livemode,
    createdAt,
    updatedAt: run.claimedAt,
  };
  const isNew = await withDatabase(() =>
    insertRebuiltPayment(deps.db.sql, {
      payment,
      attemptId,
      state: charge.status === "created" ? "fencing" : "following",
      account: run.account,
      requestId: run.id,
      timelineId: newId("tl"),
      reason: REBUILT,
      eventId: newId("evt"),
      document: JSON.stringify(paymentDocument(payment)),
    }),
  );
  if (isNew) deps.due.accepted();
  return isNew;
}

/**
 * A refund of ours whose rows were lost, made again under the attempt that its marks name: the client's key then meets
 * that attempt and never refunds again. Followed like one that was made outside. False: the payment's row is busy.
 */
export async function rebuildRefund(
  { deps, run }: HeldRun,
  charge: AttemptReference,
  found: ProviderRefund,
): Promise<boolean> {
  const { sql } = deps.db;
  for (let writes = 0; writes < MOST_WRITES; writes += 1) {
    const reading = await withDatabase(() => readPaymentForFacts(sql, charge.tenantId, charge.paymentId));
    const refund = refundOf(reading, found);
    if (refund === null) return false;
    const row = refundRow(run.provider, run.id, reading, refund, charge);
    if (await withDatabase(() => writeOutsideFact(sql, row))) {
      deps.due.accepted();
      return true;
    }
  }
  return false;
}

/** Null: no mark, or an amount that cannot be this payment's. */
function refundOf({ payment, now }: PaymentReading, found: ProviderRefund): Refund | null {
  const { attemptId, amount } = found;
  if (attemptId === null || amount === null || found.currency !== payment.currency) return null;
  return {
    tenantId: payment.tenantId,
    id: newId("re"),
    paymentId: payment.id,
    attemptId,
    status: "processing",
    version: 1,
    amount,
    currency: payment.currency,
    reason: null,
    metadata: {},
    provider: payment.provider,
    providerRefundId: found.id,
    failure: null,
    external: true,
    createdAt: now,
    updatedAt: now,
  };
}

function refundRow(
  provider: string,
  runId: string,
  { payment, now }: PaymentReading,
  refund: Refund,
  charge: AttemptReference,
): OutsideFactRow {
  return {
    provider,
    event_id: runId,
    outcome: REBUILT,
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    from_version: payment.version,
    updated_at: now.toISOString(),
    disputes: null,
    refund: {
      id: refund.id,
      attempt_id: refund.attemptId,
      charge_attempt_id: charge.id,
      operation: EFFECT_OPERATIONS.refund,
      amount: refund.amount,
      currency: refund.currency,
      provider_refund_id: refund.providerRefundId ?? "",
    },
    ledger: [],
    timeline: [
      {
        id: newId("tl"),
        kind: "transition",
        refund_id: refund.id,
        to_status: refund.status,
        reason: REBUILT,
        attempt_id: refund.attemptId,
        outcome: null,
        provider_request_id: null,
      },
    ],
    events: [{ id: newId("evt"), type: "refund.created", data: JSON.stringify(refundDocument(refund)) }],
  };
}
