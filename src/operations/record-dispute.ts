import {
  advanceDispute,
  type DisputeAdvance,
  type DisputeReading,
  disputeDocument,
  type KeptDispute,
} from "../domain/dispute.js";
import { type JsonValue, paymentEventDocument } from "../domain/documents.js";
import { postingsOf } from "../domain/ledger.js";
import type { Payment } from "../domain/payment.js";
import type { Evidence } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { newId } from "../lib/ids.js";
import { findChargeOfObject } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import {
  type OutsideFactRow,
  type PaymentReading,
  readPaymentForFacts,
  writeOutsideFact,
} from "../store/outside-facts.js";
import type { ClaimedEvent } from "../store/provider-events.js";
import type { Deps } from "./deps.js";
import { type Applied, askProvider, BUSY, flag, unanswered } from "./provider-event-steps.js";

type Advanced = Extract<DisputeAdvance, { type: "advanced" }>;

/** Each means that somebody else has just written the payment; what is still in the way then is waited for outside. */
const MOST_WRITES = 3;
const ADVANCED = "dispute_advanced";

/**
 * Brings a dispute of a payment of ours up to what the provider says of it now: payment, ledger, timeline and events in
 * one commit. Everything follows from the fetched dispute, nothing from the event.
 */
export async function recordDispute(deps: Deps, event: ClaimedEvent, disputeId: string): Promise<Applied> {
  const answer = await askProvider(deps, "get_dispute", () => deps.provider.getDispute(disputeId));
  if (answer.type !== "found") return unanswered(answer);
  const { dispute, evidence } = answer;
  const { chargeId, status, amount } = dispute;
  if (chargeId === null) return { type: "not_ours" };
  const charge = await withDatabase(() => findChargeOfObject(deps.db.sql, deps.provider.name, chargeId));
  if (charge === null) return { type: "not_ours" };
  if (charge.livemode !== dispute.livemode) return { type: "nothing", outcome: "other_mode" };
  if (status === "unrecognized") return { type: "again", reason: "provider_status_unrecognized" };
  if (amount === null) return flag(deps, event, charge, "provider_amount_mismatch", disputeId);
  return advance(deps, event, charge, { ...dispute, status, amount }, evidence);
}

async function advance(
  deps: Deps,
  event: ClaimedEvent,
  charge: AttemptReference,
  dispute: DisputeReading,
  evidence: Evidence,
): Promise<Applied> {
  const { sql } = deps.db;
  for (let writes = 0; writes < MOST_WRITES; writes += 1) {
    const reading = await withDatabase(() => readPaymentForFacts(sql, charge.tenantId, charge.paymentId));
    const times = { beganAt: event.claimedAt, now: reading.now };
    const advanced = advanceDispute(reading.disputes, dispute, times);
    if (advanced.type === "unchanged") return { type: "nothing", outcome: "dispute_unchanged" };
    if (advanced.type === "read_again") return { type: "again", reason: "dispute_read_too_early" };
    await deps.probe("before_fact_written");
    const row = rowOf(event, reading, advanced, charge, evidence);
    if (await withDatabase(() => writeOutsideFact(sql, row))) return { type: "done", outcome: ADVANCED };
  }
  return BUSY;
}

function rowOf(
  event: ClaimedEvent,
  { payment: before, now }: PaymentReading,
  { dispute, disputes, events, facts }: Advanced,
  charge: AttemptReference,
  evidence: Evidence,
): OutsideFactRow {
  const payment: Payment = {
    ...before,
    version: before.version + 1,
    updatedAt: now,
    disputes: disputes.map(disputeDocument),
  };
  const data = JSON.stringify(eventDocument(dispute, payment));
  return {
    provider: event.provider,
    event_id: event.eventId,
    outcome: ADVANCED,
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    from_version: before.version,
    updated_at: now.toISOString(),
    disputes,
    refund: null,
    ledger: facts.flatMap(postingsOf).map(({ debitAccount, creditAccount, ...entry }) => ({
      ...entry,
      debit_account: debitAccount,
      credit_account: creditAccount,
    })),
    timeline: events.map((type) => ({
      id: newId("tl"),
      kind: "fact",
      refund_id: null,
      to_status: null,
      reason: type,
      attempt_id: charge.id,
      outcome: `${dispute.id} ${dispute.status}`,
      provider_request_id: evidence.requestId,
    })),
    events: events.map((type) => ({ id: newId("evt"), type, data })),
  };
}

/** What an event of a dispute shows: the dispute with its movements of funds, and its payment. */
function eventDocument(dispute: KeptDispute, payment: Payment): JsonValue {
  return {
    ...disputeDocument(dispute),
    object: "dispute",
    payment_id: payment.id,
    opened_at: dispute.opened_at,
    movements: dispute.movements.map(({ transactionId, amount, fee, currency }) => ({
      id: transactionId,
      amount,
      fee,
      currency,
    })),
    payment: paymentEventDocument(payment),
  };
}
