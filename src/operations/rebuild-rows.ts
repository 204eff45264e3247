import { paymentDocument } from "../domain/documents.js";
import { type Payment, UNTOUCHED } from "../domain/payment.js";
import type { ListedCharge, ProviderRefund } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { readPaymentForFacts, writeOutsideFact } from "../store/outside-facts.js";
import { insertRebuiltPayment } from "../store/rebuilt-payments.js";
import type { HeldRun } from "./reconcile-run.js";
import { refundToFollow, rowToFollow } from "./record-external-refund.js";
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
    livemode: charge.livemode,
    createdAt,
    updatedAt: run.claimedAt,
    ...UNTOUCHED,
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
  if (isNew) deps.due.dueNow();
  return isNew;
}

/**
 * A refund of ours whose rows were lost, made again under the attempt that its marks name: the client's key then meets
 * that attempt and never refunds again. Followed like one that was made outside. False: the payment's row is busy, or the
 * refund's amount cannot be this payment's.
 */
export async function rebuildRefund(
  { deps, run }: HeldRun,
  charge: AttemptReference,
  found: ProviderRefund,
): Promise<boolean> {
  const { sql } = deps.db;
  const { attemptId } = found;
  if (attemptId === null) return false;
  const told = {
    provider: run.provider,
    eventId: run.id,
    outcome: REBUILT,
    operation: EFFECT_OPERATIONS.refund,
    reason: REBUILT,
  };
  for (let writes = 0; writes < MOST_WRITES; writes += 1) {
    const reading = await withDatabase(() => readPaymentForFacts(sql, charge.tenantId, charge.paymentId));
    const refund = refundToFollow(reading, found, attemptId);
    if (refund === null) return false;
    const row = rowToFollow(told, reading, refund, charge);
    if (await withDatabase(() => writeOutsideFact(sql, row))) {
      deps.due.dueNow();
      return true;
    }
  }
  return false;
}
