import { refundDocument } from "../domain/documents.js";
import type { ProviderRefund } from "../domain/provider.js";
import { type AttemptReference, judgeOutsideRefund } from "../domain/provider-event.js";
import type { Refund } from "../domain/refund.js";
import { newId } from "../lib/ids.js";
import { findAttemptOfRefund } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import {
  type OutsideFactRow,
  type PaymentReading,
  readPaymentForFacts,
  writeOutsideFact,
} from "../store/outside-facts.js";
import type { ClaimedEvent } from "../store/provider-events.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";
import { type Applied, BUSY, flag, nudge } from "./provider-event-steps.js";

/** Of the attempts that follow refunds which Pawl did not make; their key is the provider's refund id. */
const OPERATION = "refunds.external";
/** Each means that somebody else has just written the payment; what is still in the way then is waited for outside. */
const MOST_WRITES = 3;
const RECORDED = "external_refund_recorded";

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
  const { sql } = deps.db;
  for (let writes = 0; writes < MOST_WRITES; writes += 1) {
    const known = await withDatabase(() => findAttemptOfRefund(sql, charge, refund.id));
    if (known !== null) return nudge(deps, event, known);
    const reading = await withDatabase(() => readPaymentForFacts(sql, charge.tenantId, charge.paymentId));
    const is = judgeOutsideRefund(reading.payment, refund);
    // A capture, cancel or lapse elsewhere may be told by nothing else.
    if (is === "release") return nudge(deps, event, charge);
    if (is === "early") return { type: "again", reason: "capture_not_known" };
    const record = recordOf(deps, reading, refund);
    if (record === null) return flag(deps, event, charge, "outside_refund_mismatch", refund.id);
    await deps.probe("before_fact_written");
    const row = rowOf(event, reading, record, charge);
    if (await withDatabase(() => writeOutsideFact(sql, row))) {
      deps.due.accepted();
      return { type: "done", outcome: RECORDED };
    }
  }
  return BUSY;
}

/** Null: an amount that cannot be this payment's. */
function recordOf(deps: Deps, { payment, now }: PaymentReading, refund: ProviderRefund): Refund | null {
  if (refund.amount === null || refund.currency !== payment.currency) return null;
  const { tenantId } = payment;
  const name = { tenantId, operation: OPERATION, key: refund.id };
  return {
    tenantId,
    id: newId("re"),
    paymentId: payment.id,
    attemptId: attemptIdOf(deps.installationSecret, name, 1),
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

function rowOf(
  event: ClaimedEvent,
  { payment, now }: PaymentReading,
  refund: Refund,
  charge: AttemptReference,
): OutsideFactRow {
  return {
    provider: event.provider,
    event_id: event.eventId,
    outcome: RECORDED,
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    from_version: payment.version,
    updated_at: now.toISOString(),
    disputes: null,
    refund: {
      id: refund.id,
      attempt_id: refund.attemptId,
      charge_attempt_id: charge.id,
      operation: OPERATION,
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
        reason: "refunded_outside",
        attempt_id: refund.attemptId,
        outcome: null,
        provider_request_id: null,
      },
    ],
    events: [{ id: newId("evt"), type: "refund.created", data: JSON.stringify(refundDocument(refund)) }],
  };
}
