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
  const told = {
    provider: event.provider,
    eventId: event.eventId,
    outcome: RECORDED,
    operation: OPERATION,
    reason: "refunded_outside",
  };
  for (let writes = 0; writes < MOST_WRITES; writes += 1) {
    const known = await withDatabase(() => findAttemptOfRefund(sql, charge, refund.id));
    if (known !== null) return nudge(deps, event, known);
    const reading = await withDatabase(() => readPaymentForFacts(sql, charge.tenantId, charge.paymentId));
    const is = judgeOutsideRefund(reading.payment, refund);
    // A capture, cancel or lapse elsewhere may be told by nothing else.
    if (is === "release") return nudge(deps, event, charge);
    if (is === "early") return { type: "again", reason: "capture_not_known" };
    const name = { tenantId: reading.payment.tenantId, operation: OPERATION, key: refund.id };
    const record = refundToFollow(reading, refund, attemptIdOf(deps.installationSecret, name, 1));
    if (record === null) return flag(deps, event, charge, "outside_refund_mismatch", refund.id);
    await deps.probe("before_fact_written");
    const row = rowToFollow(told, reading, record, charge);
    if (await withDatabase(() => writeOutsideFact(sql, row))) {
      deps.due.dueNow();
      return { type: "done", outcome: RECORDED };
    }
  }
  return BUSY;
}

/** The row of a refund that is known by the provider's object alone. Null: an amount that cannot be this payment's. */
export function refundToFollow(
  { payment, now }: PaymentReading,
  found: ProviderRefund,
  attemptId: string,
): Refund | null {
  if (found.amount === null || found.currency !== payment.currency) return null;
  return {
    tenantId: payment.tenantId,
    id: newId("re"),
    paymentId: payment.id,
    attemptId,
    status: "processing",
    version: 1,
    amount: found.amount,
    currency: found.currency,
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

/** Who tells of a refund, and as what: `operation` of its attempt, `reason` for the timeline. */
interface ToldRefund {
  readonly provider: string;
  readonly eventId: string;
  readonly outcome: string;
  readonly operation: string;
  readonly reason: string;
}

/** What is written of it, with an attempt that is due: no money is booked before the provider was asked. */
export function rowToFollow(
  told: ToldRefund,
  { payment, now }: PaymentReading,
  refund: Refund,
  charge: AttemptReference,
): OutsideFactRow {
  return {
    provider: told.provider,
    event_id: told.eventId,
    outcome: told.outcome,
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    from_version: payment.version,
    updated_at: now.toISOString(),
    disputes: null,
    refund: {
      id: refund.id,
      attempt_id: refund.attemptId,
      charge_attempt_id: charge.id,
      operation: told.operation,
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
        reason: told.reason,
        attempt_id: refund.attemptId,
        outcome: null,
        provider_request_id: null,
      },
    ],
    events: [{ id: newId("evt"), type: "refund.created", data: JSON.stringify(refundDocument(refund)) }],
  };
}
