import { nothingNew } from "./charge-answers.js";
import type { Change, ChargeView, EffectAnswer, TimelineNote } from "./charge-change.js";
import { resolved } from "./charge-change.js";
import { followMs, PAID_AFTER_END } from "./charge-decisions.js";
import { cancellationReasonOf, foreignTo, showing } from "./charge-facts.js";
import {
  effectEnded,
  effectUnderReview,
  effectWaiting,
  sendAgain,
  stillUnknown,
} from "./effect-decisions.js";
import type { ErrorCode } from "./errors.js";
import type { ProviderCharge, ProviderRefund } from "./provider.js";
import type { RefundEventType } from "./refund-machine.js";
import type { ReviewReason } from "./review-reason.js";
import { canRefund } from "./transition.js";

const DONE: EffectAnswer = { type: "done" };

/** What follows for a capture or cancel from the charge object as it is now: adopted, whoever brought it there. */
export function adoptEffect(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const { payment, attempt } = view;
  // What it came to is known; what becomes of its object since is for the charge's own look.
  if (attempt.state === "completed") return nothingNew(view);
  if (charge.id !== attempt.providerPaymentId || foreignTo(payment.tenantId, attempt.livemode, charge)) {
    return effectUnderReview(view, "provider_object_foreign", showing(note, charge));
  }
  if (charge.amount !== payment.amount || charge.currency !== payment.currency) {
    return effectUnderReview(view, "provider_amount_mismatch", showing(note, charge));
  }
  switch (charge.status) {
    case "succeeded":
      return captured(view, charge, note);
    case "canceled":
      return canceled(view, charge, note);
    case "authorized":
      return sendAgain(view, note);
    case "requires_action":
    case "pending":
    case "created":
    case "declined":
      if (attempt.kind === "cancel") return sendAgain(view, note);
      return effectWaiting(view, { reason: "provider_went_back", note, ...stillUnknown(view) });
    case "unrecognized":
      return effectWaiting(view, { reason: "provider_status_unrecognized", note, ...stillUnknown(view) });
  }
}

/** The object is paid. A cancel came too late; a capture is done if what was taken is what it asked for. */
function captured(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const { payment, attempt } = view;
  const isNews = payment.status !== "succeeded";
  // Captured and then canceled here cannot be: money that moved is adopted by the charge's own look.
  if (payment.status === "failed" || payment.status === "canceled") {
    return effectUnderReview(view, PAID_AFTER_END, showing(note, charge));
  }
  const agrees = attempt.kind === "capture" && charge.amountCaptured === attempt.amount;
  const answer = agrees
    ? DONE
    : refusedAs(
        "invalid_state",
        attempt.kind === "cancel"
          ? "The payment is succeeded: it was paid before the cancel reached it."
          : `The payment is succeeded: ${charge.amountCaptured} were captured elsewhere, not ${attempt.amount}.`,
      );
  return {
    ...effectEnded(view, answer, agrees ? "captured" : "captured_elsewhere", note),
    paymentEvent: isNews ? "SUCCEED" : null,
    payment: {
      effectEnded: true,
      amountCapturable: 0,
      amountCaptured: charge.amountCaptured,
      authorizedUntil: null,
      nextAction: null,
    },
    fee: charge.fee,
  };
}

/** The object is canceled. That is what a cancel wanted; a capture came too late. */
function canceled(view: ChargeView, charge: ProviderCharge, note: TimelineNote): Change {
  const { payment, attempt } = view;
  if (payment.status === "succeeded")
    return effectWaiting(view, { reason: "provider_went_back", note, ...stillUnknown(view) });
  const ended = payment.status === "canceled" || payment.status === "failed";
  const refusal = charge.lapsed
    ? refusedAs("authorization_expired", "The authorization has expired; the provider has released it.")
    : refusedAs("invalid_state", "The payment is canceled: there is nothing left to capture.");
  const answer = attempt.kind === "cancel" ? DONE : refusal;
  const cancellationReason = cancellationReasonOf(view, charge);
  return {
    ...effectEnded(view, answer, cancellationReason, note),
    paymentEvent: ended ? null : "CANCEL",
    payment: {
      effectEnded: true,
      ...(ended ? {} : { cancellationReason }),
      amountCapturable: 0,
      authorizedUntil: null,
      nextAction: null,
      releaseOrderId: true,
    },
  };
}

/** What follows for a refund from the provider's object as it is now. */
export function adoptRefund(view: ChargeView, found: ProviderRefund, note: TimelineNote): Change {
  const mismatch = refundMismatch(view, found);
  if (mismatch !== null) return effectUnderReview(view, mismatch, showing(note, found));
  const change = adoptRefundStatus(view, found, note);
  return {
    ...change,
    refund: { event: null, ...change.refund, providerRefundId: found.id },
  };
}

function adoptRefundStatus(view: ChargeView, found: ProviderRefund, note: TimelineNote): Change {
  switch (found.status) {
    case "succeeded":
      return refundEnded(view, "SUCCEED", DONE, null, note);
    case "failed": {
      const detail = found.failure?.message ?? "The provider could not make the refund.";
      return refundEnded(view, "FAIL", refusedAs("refund_failed", detail), found.failure, note);
    }
    case "pending":
      return followRefund(view, note);
    case "unrecognized":
      return effectWaiting(view, { reason: "provider_status_unrecognized", note, ...stillUnknown(view) });
  }
}

function refundEnded(
  view: ChargeView,
  event: RefundEventType,
  answer: EffectAnswer,
  failure: ProviderRefund["failure"],
  note: TimelineNote,
): Change {
  const isNews = view.refund !== null && canRefund(view.refund.status, event);
  return {
    ...effectEnded(view, answer, event === "SUCCEED" ? "refunded" : "refund_failed", isNews ? note : null),
    refund: { event: isNews ? event : null, ...(isNews ? { failure } : {}) },
  };
}

/** Made, and on its way: asked about on its own clock until it ends. */
function followRefund(view: ChargeView, note: TimelineNote): Change {
  const { attempt, refund } = view;
  if (attempt.state === "completed") return effectWaiting(view, { reason: "provider_went_back", note });
  const first = attempt.state !== "following";
  const waits = first ? 0 : attempt.waits + 1;
  const pends = refund !== null && canRefund(refund.status, "PEND");
  return {
    attemptEvents: first ? ["FOLLOW"] : [],
    attempt: { ...resolved(attempt), waits, waitReason: "pending" },
    paymentEvent: null,
    payment: {},
    refund: { event: pends ? "PEND" : null },
    reason: "pending",
    review: null,
    note: first || pends ? note : null,
    then: { type: "wait", ms: followMs(view, waits + 1) },
  };
}

function refundMismatch({ attempt, refund }: ChargeView, found: ProviderRefund): ReviewReason | null {
  const foreign =
    (found.attemptId !== null && found.attemptId !== attempt.id) ||
    (found.tenantId !== null && found.tenantId !== attempt.tenantId) ||
    (found.chargeId !== null && found.chargeId !== attempt.providerPaymentId);
  if (foreign) return "provider_object_foreign";
  const same = refund !== null && found.amount === refund.amount && found.currency === refund.currency;
  return same ? null : "provider_amount_mismatch";
}

function refusedAs(code: ErrorCode, detail: string): EffectAnswer {
  return { type: "refused", code, detail };
}
