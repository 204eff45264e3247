import { type Applied, applyChange } from "../domain/apply-change.js";
import { providerKey } from "../domain/attempt.js";
import { type Change, type ChargeView, unchanged } from "../domain/charge-change.js";
import { paymentEventDocument, refundDocument, type StoredResponse } from "../domain/documents.js";
import { finalResponse } from "../domain/final-response.js";
import { type LedgerEntry, postingsOf } from "../domain/ledger.js";
import { moneyFactsOf } from "../domain/money-facts.js";
import { endOfReview, reasonsAbove } from "../domain/review.js";
import type { ReviewReason } from "../domain/review-reason.js";
import { newId } from "../lib/ids.js";
import type {
  AdvanceRow,
  EventRow,
  KeyWrite,
  LedgerRow,
  PaymentWrite,
  RefundWrite,
  TimelineRow,
} from "../store/advance.js";
import type { ReviewWrite } from "../store/open-reviews.js";
import type { Deps } from "./deps.js";

/** When the call that the change answers went out, for its timeline row. */
export interface Sent {
  readonly sentAt: Date | null;
}

/** A decision, and what it makes of the rows that it was made from. */
interface Decided extends Sent {
  readonly view: ChargeView;
  readonly change: Change;
  readonly applied: Applied;
  /** The key's answer, where the decision is its last word. */
  readonly response: StoredResponse | null;
}

/**
 * Commits a decision: attempt, payment, timeline, event, review and stored response together. Null: the fence, the
 * state or the payment's version had moved on, nothing was written, and this worker must leave the attempt alone.
 */
export async function recordOutcome(
  deps: Deps,
  view: ChargeView,
  change: Change,
  sent: Sent,
): Promise<Applied | null> {
  const applied = applyChange(view, change);
  const response = finalResponse(view, change, applied);
  const decided: Decided = { view, change, applied, response, ...sent };
  const advanced = await deps.advances.add(advanceRow(deps, decided));
  if (advanced === null) return null;
  tellOthers(deps, decided, advanced.keyExpiresAt);
  return applied;
}

/** What follows a commit: nothing of it is needed for the outcome to stand. */
function tellOthers(
  deps: Deps,
  { view, change, applied, response }: Decided,
  keyExpiresAt: Date | null,
): void {
  const { attempt } = view;
  const about = { payment: view.payment.id, attempt: attempt.id, reason: change.reason };
  const isTold = attempt.waitReason === change.reason || change.instruction === "returned";
  if (change.review !== null && !isTold) {
    deps.log.warn({ ...about, review: change.review }, "review opened");
  }
  if (change.then.type === "wait") deps.due.dueIn(change.then.ms);
  const { payment, refund } = applied;
  const paymentMoved = payment.status !== view.payment.status;
  const refundMoved = refund !== null && refund.status !== view.refund?.status;
  if (paymentMoved) {
    deps.meter.paymentMoved(payment.status);
    deps.log.info({ ...about, status: payment.status }, "payment moved");
  }
  if (refundMoved) deps.log.info({ ...about, refund: refund.id, status: refund.status }, "refund moved");
  const settled =
    change.answer !== undefined || refundMoved || (paymentMoved && payment.status !== "processing");
  // Only what this write has stored is the key's answer: one that was completed before keeps its own.
  const stored = keyExpiresAt === null ? null : response;
  if (settled) {
    deps.outcomes.settle(attempt.id, { type: "here", payment, refund, response: stored, keyExpiresAt });
  }
}

/** Says again, with the fence, that this worker goes on: renews the lease and changes nothing else. */
export async function renewLease(deps: Deps, view: ChargeView, isForSend: boolean): Promise<boolean> {
  const { attempt, payment } = view;
  const change: Change = {
    attemptEvents: [],
    attempt: unchanged(attempt),
    paymentEvent: null,
    payment: {},
    reason: "lease_renewed",
    review: null,
    note: null,
    then: { type: "ask", question: "get" },
  };
  const applied: Applied = {
    attempt,
    payment,
    paymentMoved: false,
    refund: view.refund,
    refundMoved: false,
  };
  const row = advanceRow(deps, { view, change, applied, response: null, sentAt: null });
  // Whatever became of the payment meanwhile: it is the attempt that is held.
  const renewal = { ...row, from_version: null, in_place_only: isForSend && !view.recovering };
  return (await deps.advances.add(renewal)) !== null;
}

function advanceRow(deps: Deps, decided: Decided): AdvanceRow {
  const { view, change, applied, response } = decided;
  const { attempt, payment } = applied;
  const holdsLease = change.then.type === "send" || change.then.type === "ask";
  const reviewEnd = endOfReview(view, change);
  return {
    tenant_id: attempt.tenantId,
    attempt_id: attempt.id,
    payment_id: payment.id,
    fence: attempt.fence,
    from_state: view.attempt.state,
    to_state: attempt.state,
    from_version: view.payment.version,
    provider_payment_id: attempt.providerPaymentId,
    unresolved: attempt.unresolved,
    key_spent: attempt.keySpent,
    fence_round: attempt.fenceRound,
    waits: attempt.waits,
    wait_reason: attempt.waitReason,
    unknown_since: attempt.unknownSince?.toISOString() ?? null,
    sending: change.then.type === "send" ? change.then.call : null,
    // Who knows that the database recovers keeps the send back: `ask-only.ts`.
    in_place_only: change.then.type === "send" && !view.recovering,
    lease_ms: holdsLease ? deps.settings.attemptLeaseMs : null,
    due_in_ms: change.then.type === "wait" ? change.then.ms : null,
    payment: applied.paymentMoved ? paymentWrite(view, applied) : null,
    refund: refundWrite(view, applied),
    ledger: moneyFactsOf(view, change, applied).flatMap(postingsOf).map(ledgerRow),
    merchant_order_id: payment.merchantOrderId,
    operation: attempt.operation,
    idempotency_key: attempt.idempotencyKey,
    run: attempt.run,
    key: keyWrite(deps, change, response),
    timeline: timelineRows(decided),
    event: eventRow(view, applied),
    review: change.review === null ? null : reviewWrite(change.review),
    close_review: reviewEnd === "fact" || reviewEnd === "person",
    instruction: change.instruction ?? null,
  };
}

function reviewWrite(reason: ReviewReason): ReviewWrite {
  return { id: newId("rev"), reason, yields_to: reasonsAbove(reason)?.join(",") ?? null };
}

function paymentWrite(view: ChargeView, { payment }: Applied): PaymentWrite {
  return {
    from_status: view.payment.status,
    to_status: payment.status,
    next_action: payment.nextAction,
    failure: payment.failure,
    amount_capturable: payment.amountCapturable,
    amount_captured: payment.amountCaptured,
    amount_refunded: payment.amountRefunded,
    refund_reserved: payment.refundReserved,
    open_effect: payment.openEffect,
    authorized_until: payment.authorizedUntil?.toISOString() ?? null,
    cancellation_reason: payment.cancellationReason,
    holds_order_id: payment.holdsOrderId,
    updated_at: payment.updatedAt.toISOString(),
  };
}

function refundWrite(view: ChargeView, { refund, refundMoved }: Applied): RefundWrite | null {
  if (refund === null || view.refund === null || !refundMoved) return null;
  return {
    id: refund.id,
    from_version: view.refund.version,
    to_status: refund.status,
    provider_refund_id: refund.providerRefundId,
    failure: refund.failure,
    updated_at: refund.updatedAt.toISOString(),
  };
}

/** One event a fact: the payment has another status, or its refund has. Never both in one commit. */
function eventRow(view: ChargeView, { payment, refund }: Applied): EventRow | null {
  const base = { id: newId("evt"), sequence: payment.version };
  if (refund !== null && refund.status !== view.refund?.status) {
    return { ...base, type: `refund.${refund.status}`, data: JSON.stringify(refundDocument(refund)) };
  }
  if (payment.status === view.payment.status) return null;
  return { ...base, type: `payment.${payment.status}`, data: JSON.stringify(paymentEventDocument(payment)) };
}

function ledgerRow(entry: LedgerEntry): LedgerRow {
  return {
    fact: entry.fact,
    leg: entry.leg,
    currency: entry.currency,
    debit_account: entry.debitAccount,
    credit_account: entry.creditAccount,
    amount: entry.amount,
  };
}

function keyWrite(deps: Deps, change: Change, response: StoredResponse | null): KeyWrite | null {
  const retryable = change.paymentEvent === "NOT_PERFORMED" || change.answer?.type === "not_performed";
  if (response === null && !retryable) return null;
  return {
    state: retryable ? "failed_retryable" : "completed",
    status: response?.status ?? null,
    headers: response?.headers ?? null,
    body: response?.body ?? null,
    retention_ms: deps.settings.retentionMs,
  };
}

/** One row a commit: the transition where there is one, else the send or question that is worth keeping. */
function timelineRows({ view, change, applied, sentAt }: Decided): TimelineRow[] {
  const { refund, payment } = applied;
  const ofRefund = refund !== null && refund.status !== view.refund?.status;
  const from = ofRefund ? view.refund?.status : view.payment.status;
  const to = ofRefund ? refund.status : payment.status;
  const moved = ofRefund || to !== from;
  if (!moved && change.note === null && change.instruction === undefined) return [];
  const { note } = change;
  return [
    {
      id: newId("tl"),
      refund_id: refund?.id ?? null,
      kind: moved ? "transition" : (note?.kind ?? "request"),
      from_status: moved ? (from ?? null) : null,
      to_status: moved ? to : null,
      reason: change.reason,
      call: note?.call ?? null,
      provider_key: note?.kind === "send" ? providerKey(view.attempt, note.call) : null,
      outcome: note?.outcome ?? null,
      provider_request_id: note?.evidence?.requestId ?? null,
      sent_at: sentAt?.toISOString() ?? null,
    },
  ];
}
