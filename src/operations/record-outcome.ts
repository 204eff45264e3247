import { type Applied, applyChange } from "../domain/apply-change.js";
import { type Attempt, providerKey } from "../domain/attempt.js";
import { type Change, type ChargeView, unchanged } from "../domain/charge-change.js";
import {
  JSON_TYPE,
  PROBLEM_TYPE,
  paymentDocument,
  paymentPath,
  problemDocument,
  type StoredResponse,
} from "../domain/documents.js";
import type { ErrorCode } from "../domain/errors.js";
import type { Payment } from "../domain/payment.js";
import { newId } from "../lib/ids.js";
import type { AdvanceRow, KeyWrite, TimelineRow } from "../store/advance.js";
import type { Deps } from "./deps.js";

/** When the call that the change answers went out, for its timeline row. */
export interface Sent {
  readonly sentAt: Date | null;
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
  const response = applied.paymentMoved ? finalResponse(view.attempt, applied.payment, change) : null;
  const row = advanceRow(deps, view, change, applied, response, sent);
  const advanced = await deps.advances.add(row);
  if (advanced === null) return null;
  if (change.review !== null && view.attempt.waitReason !== change.reason) {
    deps.log.warn(
      { payment: view.payment.id, attempt: view.attempt.id, reason: change.review },
      "review opened",
    );
  }
  if (change.then.type === "wait") deps.due.dueIn(change.then.ms);
  if (applied.payment.status !== view.payment.status) {
    const { payment } = applied;
    deps.meter.paymentMoved(payment.status);
    deps.log.info(
      { payment: payment.id, attempt: view.attempt.id, status: payment.status, reason: change.reason },
      "payment moved",
    );
    if (payment.status !== "processing") {
      deps.outcomes.settle(payment.id, {
        type: "here",
        payment,
        response,
        keyExpiresAt: advanced.keyExpiresAt,
      });
    }
  }
  return applied;
}

/** Says again, with the fence, that this worker goes on: renews the lease and changes nothing else. */
export async function renewLease(deps: Deps, view: ChargeView): Promise<boolean> {
  const { attempt, payment } = view;
  const unmoved: Change = {
    attemptEvents: [],
    attempt: unchanged(attempt),
    paymentEvent: null,
    payment: {},
    reason: "lease_renewed",
    review: null,
    note: null,
    then: { type: "ask", question: "get" },
  };
  const applied: Applied = { attempt, payment, paymentMoved: false };
  const row = advanceRow(deps, view, unmoved, applied, null, { sentAt: null });
  return (await deps.advances.add(row)) !== null;
}

function advanceRow(
  deps: Deps,
  view: ChargeView,
  change: Change,
  applied: Applied,
  response: StoredResponse | null,
  sent: Sent,
): AdvanceRow {
  const { attempt, payment } = applied;
  const statusMoved = payment.status !== view.payment.status;
  const holdsLease = change.then.type === "send" || change.then.type === "ask";
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
    lease_ms: holdsLease ? deps.settings.attemptLeaseMs : null,
    due_in_ms: change.then.type === "wait" ? change.then.ms : null,
    payment: applied.paymentMoved
      ? {
          from_status: view.payment.status,
          to_status: payment.status,
          next_action: payment.nextAction,
          failure: payment.failure,
          amount_capturable: payment.amountCapturable,
          amount_captured: payment.amountCaptured,
          holds_order_id: payment.holdsOrderId,
          updated_at: payment.updatedAt.toISOString(),
        }
      : null,
    merchant_order_id: payment.merchantOrderId,
    operation: attempt.operation,
    idempotency_key: attempt.idempotencyKey,
    run: attempt.run,
    key: statusMoved ? keyWrite(deps, change, response) : null,
    timeline: timelineRows(view, change, applied, sent),
    event: statusMoved
      ? {
          id: newId("evt"),
          type: `payment.${payment.status}`,
          data: JSON.stringify(paymentDocument(payment)),
        }
      : null,
    review: change.review === null ? null : { id: newId("rev"), reason: change.review },
    close_review: (statusMoved || change.then.type === "end") && change.review === null,
  };
}

/** The answer that a keyed request gets for ever, where this status is one; null where the key stays open. */
function finalResponse(attempt: Attempt, payment: Payment, change: Change): StoredResponse | null {
  const location = paymentPath(payment.id);
  switch (payment.status) {
    case "succeeded":
    case "authorized":
    case "requires_action":
      return {
        status: 201,
        headers: { "Content-Type": JSON_TYPE, Location: location },
        body: JSON.stringify(paymentDocument(payment)),
      };
    case "failed": {
      if (change.paymentEvent === "NOT_PERFORMED") return null;
      const declined = change.paymentEvent === "DECLINE";
      const message = payment.failure?.message ?? "No reason was given.";
      return problem(declined ? "payment_declined" : "payment_rejected", 402, message);
    }
    case "canceled":
      return problem(
        "invalid_state",
        409,
        "The payment was canceled at the provider; its state is canceled.",
      );
    case "processing":
    case "needs_review":
      return null;
  }

  function problem(code: ErrorCode, status: number, detail: string): StoredResponse {
    const document = problemDocument(code, detail, { requestId: attempt.requestId, payment });
    return {
      status,
      headers: { "Content-Type": PROBLEM_TYPE, Location: location },
      body: JSON.stringify(document),
    };
  }
}

function keyWrite(deps: Deps, change: Change, response: StoredResponse | null): KeyWrite | null {
  const retryable = change.paymentEvent === "NOT_PERFORMED";
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
function timelineRows(view: ChargeView, change: Change, applied: Applied, sent: Sent): TimelineRow[] {
  const moved = applied.payment.status !== view.payment.status;
  if (!moved && change.note === null) return [];
  const { note } = change;
  const isSend = note !== null && note.kind === "send";
  return [
    {
      id: newId("tl"),
      kind: moved ? "transition" : (note?.kind ?? "transition"),
      from_status: moved ? view.payment.status : null,
      to_status: moved ? applied.payment.status : null,
      reason: change.reason,
      call: note?.call ?? null,
      provider_key: isSend ? providerKey(view.attempt, note.call as "create" | "confirm" | "fence") : null,
      outcome: note?.outcome ?? null,
      provider_request_id: note?.evidence?.requestId ?? null,
      sent_at: sent.sentAt?.toISOString() ?? null,
    },
  ];
}
