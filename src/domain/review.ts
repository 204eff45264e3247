import { type AttemptKind, lastCallFirstSentAt } from "./attempt.js";
import {
  type AttemptView,
  budgetIsOver,
  type Change,
  type ChargeView,
  keyLifetimeIsOver,
} from "./charge-change.js";
import { isBeforeObject, OBJECT_MISSING, OUTCOME_UNKNOWN } from "./charge-decisions.js";
import { REVIEW_RESOLUTIONS, type ReviewResolution } from "./instruction.js";
import type { ReviewReason } from "./review-reason.js";

/**
 * Who ends the open review of an attempt, or `returned`: what a person decided cannot be carried out, and the review is
 * theirs to decide again. Null: it stays as it is. A look that finds a completed attempt as it was is no fact.
 */
export function endOfReview(view: ChargeView, change: Change): "fact" | "person" | "returned" | null {
  if (change.instruction !== undefined) return change.instruction === "returned" ? "returned" : "person";
  if (change.review !== null) return null;
  const isNews = change.paymentEvent !== null || (change.refund?.event ?? null) !== null;
  return isNews || (change.then.type === "end" && view.attempt.state !== "completed") ? "fact" : null;
}

/** What the provider's object shows, and how much that tells. Every other reason only hinders the asking. */
const SHOWN_BY_OBJECT: Readonly<Record<string, number>> = {
  provider_object_foreign: 1,
  provider_amount_mismatch: 1,
  paid_after_end: 2,
} satisfies Partial<Record<ReviewReason, number>>;

/** The reasons that an open review keeps where `reason` is found later; null: any that it has. */
export function reasonsAbove(reason: ReviewReason): readonly string[] | null {
  if (reason === OUTCOME_UNKNOWN) return null;
  const weight = SHOWN_BY_OBJECT[reason] ?? 0;
  return Object.keys(SHOWN_BY_OBJECT).filter((other) => (SHOWN_BY_OBJECT[other] ?? 0) > weight);
}

/** The object shows what whoever decided because of `decidedFor` has not seen. */
export function isNewsTo(decidedFor: string | undefined, found: ReviewReason | null): boolean {
  if (decidedFor === undefined || found === null) return false;
  return (SHOWN_BY_OBJECT[found] ?? 0) > (SHOWN_BY_OBJECT[decidedFor] ?? 0);
}

export interface AllowedResolution {
  readonly resolution: ReviewResolution;
  /** What it does, in a sentence. */
  readonly does: string;
}

/** What a person may decide now in a review of `view`'s attempt that was opened for `reason`. */
export function allowedResolutions(view: AttemptView, reason: string): readonly AllowedResolution[] {
  const { kind } = view.attempt;
  return REVIEW_RESOLUTIONS.filter((resolution) =>
    kind === "charge" ? chargeTakes(view, resolution, reason) : effectTakes(view, resolution),
  ).map((resolution) => ({ resolution, does: DOES[resolution](kind) }));
}

const NOTHING_ELSE = "Closes the review. Nothing is sent, and nothing else changes.";

/** What it is about is not the attempt's: no fact of the attempt ends it, and nothing is sent for it. */
export const DISMISSAL_ALONE: readonly AllowedResolution[] = [{ resolution: "dismiss", does: NOTHING_ELSE }];

const DOES: Readonly<Record<ReviewResolution, (kind: AttemptKind) => string>> = {
  adopt_provider_object: (kind) =>
    kind === "refund"
      ? "Asks the provider now and takes the refund's state as it is there."
      : "Asks the provider now and takes its object's state as the truth, also where it differs from what was asked for.",
  cancel_at_provider: () =>
    "Cancels the object at the provider and reads it back: canceled, nothing was or will be charged; paid, it is shown.",
  mark_not_performed: (kind) =>
    kind === "charge"
      ? "Ends the payment as not performed if its object is read as canceled, or a complete list has none."
      : `Ends the ${kind} as not performed if the provider, asked now, does not show it.`,
  retry_same_key: (kind) =>
    `Asks the provider, and sends the ${kind} once more under its own key if it is not there.`,
  dismiss: () => NOTHING_ELSE,
};

function chargeTakes(view: AttemptView, resolution: ReviewResolution, reason: string): boolean {
  const { attempt, payment } = view;
  const isOpen = attempt.state !== "completed" || payment.status === "needs_review";
  switch (resolution) {
    case "adopt_provider_object":
      return isOpen && payment.status !== "succeeded";
    case "cancel_at_provider":
      return isOpen && payment.openEffect === null && !["succeeded", "authorized"].includes(payment.status);
    case "mark_not_performed":
      return isOpen && mayNotBePerformed(view);
    case "retry_same_key":
      return mayBeRetried(view);
    case "dismiss":
      return isFlagAlone(view) && !comesBack(view, reason);
  }
}

/** Nothing can perform it any more, or so it seems: the worker looks again before it believes it. */
function mayNotBePerformed(view: AttemptView): boolean {
  const { attempt } = view;
  if (isBeforeObject(attempt.state)) return keyLifetimeIsOver(view, attempt.createFirstSentAt);
  return attempt.fenceFirstSentAt !== null || isGone(view);
}

/**
 * The provider does not know the attempt's own object any more, nor a key of ours that could bring it back. That alone
 * proves nothing: the worker looks for another under the attempt's marks, too.
 */
export function isGone(view: AttemptView): boolean {
  const { attempt, payment } = view;
  const isFree = attempt.kind !== "charge" || payment.openEffect === null;
  return (
    isFree && attempt.waitReason === OBJECT_MISSING && keyLifetimeIsOver(view, lastCallFirstSentAt(attempt))
  );
}

/** A create or confirm of unknown outcome, in time: past the budget a charge is only ever fenced. */
function mayBeRetried(view: AttemptView): boolean {
  const { attempt } = view;
  const isUnknown = attempt.state === "create_unknown" || attempt.state === "confirm_unknown";
  const firstSentAt =
    attempt.providerPaymentId === null ? attempt.createFirstSentAt : attempt.confirmFirstSentAt;
  return isUnknown && !attempt.keySpent && !budgetIsOver(view) && !keyLifetimeIsOver(view, firstSentAt);
}

/** Nothing waits for what the person says: the payment (or refund) has its state without it. */
export function isFlagAlone({ attempt, payment, refund }: AttemptView): boolean {
  if (attempt.kind === "charge") return payment.status !== "needs_review";
  return attempt.state === "completed" && refund?.status !== "needs_review";
}

/** The next look at the attempt would find the same again. */
function comesBack({ attempt, payment }: AttemptView, reason: string): boolean {
  if (attempt.state === "completed" || payment.status === "succeeded") return false;
  return reason === OUTCOME_UNKNOWN || reason === attempt.waitReason;
}

function effectTakes(view: AttemptView, resolution: ReviewResolution): boolean {
  const { attempt, refund } = view;
  const isOpen = attempt.state !== "completed";
  // A refund that the provider has named was made.
  const isOutstanding =
    isOpen && attempt.state !== "following" && (refund?.providerRefundId ?? null) === null;
  const isLost = isOpen && isGone(view);
  const guarded = !keyLifetimeIsOver(view, attempt.effectFirstSentAt);
  switch (resolution) {
    case "adopt_provider_object":
      return isOpen;
    case "cancel_at_provider":
      return false;
    case "mark_not_performed":
      return isLost || (isOutstanding && !guarded);
    case "retry_same_key":
      return isOutstanding && guarded;
    case "dismiss":
      return isFlagAlone(view);
  }
}
