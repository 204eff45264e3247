import { refundDocument } from "../domain/documents.js";
import type { ProviderRefund } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import type { Refund } from "../domain/refund.js";
import { newId } from "../lib/ids.js";
import { type Queryable, withDatabase } from "../store/db.js";
import {
  findAttemptOfRefund,
  insertExternalRefund,
  reserveExternalRefund,
} from "../store/external-refunds.js";
import { type LockedPayment, lockPayment, noteFacts, tellFacts } from "../store/payment-facts.js";
import { type ClaimedEvent, markEventApplied } from "../store/provider-events.js";
import { inTransaction } from "../store/transaction.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";
import { type Applied, flagPayment, nudge } from "./provider-event-steps.js";

/** Of the attempts that follow refunds which Pawl did not make; their key is the provider's refund id. */
const OPERATION = "refunds.external";

/**
 * Records a refund that was made outside on a charge of ours, once however often it is told, and leaves it to its
 * attempt, which is due now: that one asks the provider what becomes of it. Its amount counts as gone from here on.
 */
export async function recordExternalRefund(
  deps: Deps,
  event: ClaimedEvent,
  refund: ProviderRefund,
  charge: AttemptReference,
): Promise<Applied> {
  const known = await withDatabase(() => findAttemptOfRefund(deps.db.sql, charge, refund.id));
  if (known !== null) return nudge(deps, event, known);
  const outcome = await inTransaction(deps.db, async (tx) => {
    const locked = await lockPayment(tx, charge.tenantId, charge.paymentId);
    if (locked === null) throw new Error(`payment ${charge.paymentId} of attempt ${charge.id} is missing`);
    const record = recordOf(deps, locked, refund);
    if (record === null) return null;
    const isNew = await insertExternalRefund(tx, record, charge.id, event.eventId);
    if (isNew) await reserveAndTell(tx, locked, record);
    // Else another worker has just recorded it, and its attempt, due since, sees what this event tells.
    const written = isNew ? "external_refund_recorded" : "external_refund_known";
    await markEventApplied(tx, event, written);
    await deps.probe("before_event_commit");
    return written;
  });
  if (outcome === null) return flagPayment(deps, event, charge, "provider_amount_mismatch");
  deps.due.accepted();
  return { type: "done", outcome };
}

/** Null: an amount that cannot be this payment's. */
function recordOf(deps: Deps, { payment, now }: LockedPayment, refund: ProviderRefund): Refund | null {
  if (refund.amount === null || refund.currency !== payment.currency) return null;
  const { tenantId } = payment;
  return {
    tenantId,
    id: newId("re"),
    paymentId: payment.id,
    attemptId: attemptIdOf(deps.installationSecret, { tenantId, operation: OPERATION, key: refund.id }, 1),
    status: "processing",
    version: 1,
    amount: refund.amount,
    currency: refund.currency,
    reason: null,
    metadata: {},
    provider: payment.provider,
    providerRefundId: refund.id,
    failure: null,
    external: true,
    createdAt: now,
    updatedAt: now,
  };
}

async function reserveAndTell(tx: Queryable, { payment }: LockedPayment, refund: Refund): Promise<void> {
  await reserveExternalRefund(tx, refund, payment.version);
  await noteFacts(tx, payment, [
    {
      id: newId("tl"),
      kind: "transition",
      refund_id: refund.id,
      to_status: refund.status,
      reason: "refunded_outside",
      attempt_id: refund.attemptId,
      outcome: null,
      provider_request_id: null,
    },
  ]);
  await tellFacts(tx, { ...payment, version: payment.version + 1 }, [
    { id: newId("evt"), type: "refund.created", data: JSON.stringify(refundDocument(refund)) },
  ]);
}
