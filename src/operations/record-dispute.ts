import { advanceDispute, type DisputeAdvance, disputeDocument, type KeptDispute } from "../domain/dispute.js";
import { type JsonValue, paymentDocument } from "../domain/documents.js";
import { postingsOf } from "../domain/ledger.js";
import type { Payment } from "../domain/payment.js";
import type { Evidence, ProviderDispute } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { newId } from "../lib/ids.js";
import { findChargeOfObject } from "../store/attempt-references.js";
import { type Queryable, withDatabase } from "../store/db.js";
import { writeDisputes } from "../store/disputes.js";
import { insertEntries } from "../store/ledger.js";
import { type LockedPayment, lockPayment, noteFacts, tellFacts } from "../store/payment-facts.js";
import { type ClaimedEvent, markEventApplied } from "../store/provider-events.js";
import { inTransaction } from "../store/transaction.js";
import type { Deps } from "./deps.js";
import { type Applied, askProvider, flagPayment, unanswered } from "./provider-event-steps.js";

type Advanced = Extract<DisputeAdvance, { type: "advanced" }>;

/**
 * Brings a dispute of a payment of ours up to what the provider says of it now: payment, ledger, timeline and events in
 * one transaction under the payment's lock. Everything follows from the fetched dispute, nothing from the event.
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
  if (amount === null) return flagPayment(deps, event, charge, "provider_amount_mismatch");
  return advance(deps, event, charge, { ...dispute, status, amount }, evidence);
}

async function advance(
  deps: Deps,
  event: ClaimedEvent,
  charge: AttemptReference,
  reading: ProviderDispute & Pick<KeptDispute, "status" | "amount">,
  evidence: Evidence,
): Promise<Applied> {
  return inTransaction(deps.db, async (tx): Promise<Applied> => {
    const locked = await lockPayment(tx, charge.tenantId, charge.paymentId);
    if (locked === null) throw new Error(`payment ${charge.paymentId} of attempt ${charge.id} is missing`);
    const times = { beganAt: event.claimedAt, now: locked.now };
    const advanced = advanceDispute(locked.disputes, reading, times);
    if (advanced.type === "read_again") return { type: "again", reason: "dispute_read_too_early" };
    if (advanced.type === "advanced") await write(tx, locked, advanced, charge, evidence);
    const outcome = `dispute_${advanced.type}`;
    await markEventApplied(tx, event, outcome);
    await deps.probe("before_event_commit");
    return { type: "done", outcome };
  });
}

async function write(
  tx: Queryable,
  locked: LockedPayment,
  { dispute, disputes, events, facts }: Advanced,
  charge: AttemptReference,
  evidence: Evidence,
): Promise<void> {
  await writeDisputes(tx, locked.payment, disputes, locked.now);
  const payment: Payment = {
    ...locked.payment,
    version: locked.payment.version + 1,
    updatedAt: locked.now,
    disputes: disputes.map(disputeDocument),
  };
  await insertEntries(tx, payment.tenantId, payment.id, facts.flatMap(postingsOf));
  await noteFacts(
    tx,
    payment,
    events.map((type) => ({
      id: newId("tl"),
      kind: "fact",
      refund_id: null,
      to_status: null,
      reason: type,
      attempt_id: charge.id,
      outcome: `${dispute.id} ${dispute.status}`,
      provider_request_id: evidence.requestId,
    })),
  );
  const data = JSON.stringify(eventDocument(dispute, payment));
  await tellFacts(
    tx,
    payment,
    events.map((type) => ({ id: newId("evt"), type, data })),
  );
}

/** What an event of a dispute shows: the dispute with its movements of funds, and its payment. */
function eventDocument(dispute: KeptDispute, payment: Payment): JsonValue {
  return {
    object: "dispute",
    ...disputeDocument(dispute),
    payment_id: payment.id,
    opened_at: dispute.opened_at,
    movements: dispute.movements.map(({ transactionId, amount, fee, currency }) => ({
      id: transactionId,
      amount,
      fee,
      currency,
    })),
    payment: paymentDocument(payment),
  };
}
