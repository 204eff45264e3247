import { type Attempt, type AttemptKind, lastCallFirstSentAt } from "./attempt.js";
import type { ChargePolicy } from "./charge-change.js";
import { type JsonObject, paymentDocument, refundDocument } from "./documents.js";
import type { ReviewResolution } from "./instruction.js";
import type { Payment, Resolution } from "./payment.js";
import type { Refund } from "./refund.js";
import type { AllowedResolution } from "./review.js";
import { type TimelineEntry, timelineEntryDocument } from "./timeline-entry.js";
import { recoveryPointOf } from "./transition.js";

/** What a review was about before it came to be about more. */
export interface FormerReason {
  readonly reason: string;
  /** RFC 3339. */
  readonly until: string;
}

/** A question that no machine may answer alone: at most one is open of an attempt, and of each other object. */
export interface Review {
  readonly tenantId: string;
  readonly id: string;
  readonly paymentId: string;
  readonly attemptId: string;
  readonly attemptKind: AttemptKind;
  /** Where the attempt is a refund's. */
  readonly refundId: string | null;
  /** The provider's object that it is about, where that is not the attempt's own. */
  readonly objectId: string | null;
  /** The present one. */
  readonly reason: string;
  /** The oldest first. */
  readonly formerReasons: readonly FormerReason[];
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly closedBy: "fact" | "person" | null;
  /** What a person decided; null while nobody has, or where it could not be carried out. */
  readonly resolution: ReviewResolution | null;
  readonly resolutionReason: string | null;
  /** An API key's id, or `command-line`. */
  readonly resolvedBy: string | null;
  readonly resolvedAt: Date | null;
}

/** All that a person needs to decide. */
export interface ReviewEvidence {
  readonly review: Review;
  readonly payment: Payment;
  readonly refund: { readonly refund: Refund; readonly resolution: Resolution | null } | null;
  readonly attempt: Attempt;
  /** When a worker looks at the attempt next; null: not before there is news of it. */
  readonly dueAt: Date | null;
  readonly now: Date;
  readonly policy: Pick<ChargePolicy, "keyLifetimeMs">;
  /** Of the attempt: what was sent, what was asked and what came back. Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  readonly allowed: readonly AllowedResolution[];
}

/** Grows with each reason: what a decision names to say which reason it was made for. */
export function versionOf({ formerReasons }: Pick<Review, "formerReasons">): number {
  return formerReasons.length + 1;
}

export function reviewPath(reviewId: string): string {
  return `/v1/reviews/${reviewId}`;
}

export function reviewDocument(review: Review): JsonObject {
  return {
    id: review.id,
    object: "review",
    status: review.closedAt === null ? "open" : "closed",
    version: versionOf(review),
    reason: review.reason,
    former_reasons: review.formerReasons.map((former) => ({ ...former })),
    payment_id: review.paymentId,
    attempt_id: review.attemptId,
    attempt_kind: review.attemptKind,
    refund_id: review.refundId,
    provider_object_id: review.objectId,
    opened_at: review.openedAt.toISOString(),
    closed_at: timeOf(review.closedAt),
    closed_by: review.closedBy,
    resolution: review.resolution,
    resolution_reason: review.resolutionReason,
    resolved_by: review.resolvedBy,
    resolved_at: timeOf(review.resolvedAt),
  };
}

export function reviewEvidenceDocument(evidence: ReviewEvidence): JsonObject {
  const { review, payment, refund } = evidence;
  return {
    ...reviewDocument(review),
    payment: paymentDocument(payment),
    refund: refund === null ? null : refundDocument(refund.refund, refund.resolution),
    attempt: attemptDocument(evidence),
    timeline: evidence.timeline.map(timelineEntryDocument),
    allowed_resolutions: evidence.allowed.map((allowed) => ({ ...allowed })),
  };
}

function attemptDocument({ attempt, dueAt, now, policy }: ReviewEvidence): JsonObject {
  const { unknownSince } = attempt;
  const firstSentAt = lastCallFirstSentAt(attempt);
  return {
    id: attempt.id,
    kind: attempt.kind,
    state: attempt.state,
    recovery_point: recoveryPointOf(attempt.kind, attempt.state),
    fence: attempt.fence,
    unresolved: attempt.unresolved,
    key_spent: attempt.keySpent,
    provider: attempt.provider,
    provider_account: attempt.providerAccount,
    provider_payment_id: attempt.providerPaymentId,
    livemode: attempt.livemode,
    create_first_sent_at: timeOf(attempt.createFirstSentAt),
    confirm_first_sent_at: timeOf(attempt.confirmFirstSentAt),
    fence_first_sent_at: timeOf(attempt.fenceFirstSentAt),
    effect_first_sent_at: timeOf(attempt.effectFirstSentAt),
    key_guards_until:
      firstSentAt === null ? null : new Date(firstSentAt.getTime() + policy.keyLifetimeMs).toISOString(),
    unknown_since: timeOf(unknownSince),
    unknown_for_ms: unknownSince === null ? null : Math.max(0, now.getTime() - unknownSince.getTime()),
    wait_reason: attempt.waitReason,
    next_question_at: timeOf(dueAt),
  };
}

function timeOf(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
