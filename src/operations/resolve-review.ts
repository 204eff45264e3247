import { PawlError } from "../domain/errors.js";
import type { Instruction, ReviewResolution } from "../domain/instruction.js";
import { type Review, reviewDocument, reviewPath, versionOf } from "../domain/review-document.js";
import { newId } from "../lib/ids.js";
import { type ReadAttempt, readAttempt } from "../store/attempts.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/reviews.js";
import { chargePolicyOf } from "./charge-policy.js";
import type { Deps } from "./deps.js";
import type { KeyedAnswer, KeyedCall } from "./keyed-request.js";
import { keyedWrite } from "./keyed-write.js";
import { findReview, takenBy } from "./read-reviews.js";

export const RESOLVE_REVIEW = "reviews.resolve";

/** Who resolves where no API key does. */
const COMMAND_LINE = "command-line";

/** Each further look means that a worker has claimed the attempt meanwhile: it does so now and then, not for ever. */
const MOST_LOOKS = 10;

/** What a person decided. */
export interface Decision {
  readonly resolution: ReviewResolution;
  /** Kept for the audit. */
  readonly reason: string;
  /** The object that is meant, where the attempt has none or its marker was changed; null: the attempt's own. */
  readonly providerObjectId: string | null;
  /** The version of the review that was looked at; null: whatever it is about now. */
  readonly version: number | null;
}

type Resolving = Pick<Deps, "db" | "settings">;

/**
 * Records a decision, under its Idempotency-Key, and gives it to the review's attempt: a worker carries it out.
 * Throws PawlError: not_found, review_closed, review_changed, resolution_not_allowed, validation_failed, and what
 * keyedWrite throws.
 */
export async function resolveReview(
  deps: Resolving & Pick<Deps, "due">,
  call: KeyedCall,
  reviewId: string,
  decision: Decision,
): Promise<KeyedAnswer> {
  const { tenantId, keyId } = call.caller;
  const answer = await keyedWrite(deps, {
    ...call,
    operation: RESOLVE_REVIEW,
    pathIds: [reviewId],
    input: {
      resolution: decision.resolution,
      reason: decision.reason,
      provider_object_id: decision.providerObjectId,
      ...(decision.version === null ? {} : { version: decision.version }),
    },
    resourceId: reviewId,
    prepare: async () => {
      const { review, row } = await decide(deps, { tenantId, id: reviewId }, decision, keyId);
      const change = store.resolvingReview(deps.db.sql, row);
      return { status: 200, location: reviewPath(reviewId), document: reviewDocument(review), change };
    },
  });
  if (!answer.replayed) deps.due.dueNow();
  return answer;
}

/** For the operator's command line. Throws PawlError as resolveReview. */
export async function resolveReviewByCommand(
  deps: Resolving,
  reviewId: string,
  decision: Decision,
): Promise<Review> {
  const found = await findReview(deps.db.sql, reviewId);
  if (found === null) throw noSuchReview();
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const { review, row } = await withDatabase(() => decide(deps, found, decision, COMMAND_LINE));
    if (await withDatabase(() => store.resolveReview(deps.db.sql, row))) return review;
  }
  throw new PawlError("service_unavailable", "The payment kept changing; send the same request again.");
}

/** The review with the decision in it, and what writes it as long as what it was checked against is the same. */
async function decide(
  deps: Resolving,
  name: store.ReviewName,
  decision: Decision,
  by: string,
): Promise<{ readonly review: Review; readonly row: store.ResolutionRow }> {
  const review = await store.readReview(deps.db.sql, name);
  if (review === null) throw noSuchReview();
  if (review.closedAt !== null || review.resolution !== null) throw decided(review);
  if (decision.version !== null && decision.version !== versionOf(review)) throw changed(review);
  const read = await readAttempt(deps.db.sql, review.tenantId, review.attemptId);
  if (read === null) throw new Error(`review ${review.id} has lost its attempt`);
  check(deps, review, read, decision);
  const { resolution, reason } = decision;
  const resolved = {
    resolution,
    resolutionReason: reason,
    resolvedBy: by,
    resolvedAt: read.now,
    // Nothing is to be done for it.
    ...(review.objectId === null ? {} : { closedAt: read.now, closedBy: "person" as const }),
  };
  return { review: { ...review, ...resolved }, row: rowOf(review, read, decision, by) };
}

function check(deps: Resolving, review: Review, read: ReadAttempt, decision: Decision): void {
  const policy = chargePolicyOf(deps.settings);
  const allowed = takenBy(review, { ...read, policy }).map((one) => one.resolution);
  if (!allowed.includes(decision.resolution)) {
    const names = allowed.length === 0 ? "nothing now" : allowed.join(", ");
    throw new PawlError(
      "resolution_not_allowed",
      `This review does not take ${decision.resolution}; it takes ${names}.`,
    );
  }
  const fault = faultOfNamedObject(read, decision);
  if (fault === null) return;
  throw new PawlError("validation_failed", "The request is not valid; see `errors`.", {
    faults: [{ pointer: "/provider_object_id", detail: fault }],
  });
}

const TAKES_OBJECT: ReadonlySet<ReviewResolution> = new Set(["adopt_provider_object", "cancel_at_provider"]);

function faultOfNamedObject({ attempt }: ReadAttempt, decision: Decision): string | null {
  const { providerObjectId, resolution } = decision;
  if (providerObjectId === null) return null;
  if (attempt.kind !== "charge" || !TAKES_OBJECT.has(resolution)) {
    return "is taken where a charge's object is adopted or canceled, and nowhere else";
  }
  const own = attempt.providerPaymentId;
  return own === null || own === providerObjectId ? null : `must be the payment's own object, ${own}`;
}

function rowOf(review: Review, read: ReadAttempt, decision: Decision, by: string): store.ResolutionRow {
  const { resolution, reason, providerObjectId } = decision;
  const instruction: Instruction = {
    reviewId: review.id,
    resolution,
    providerObjectId,
    reason: review.reason,
  };
  return {
    tenant_id: review.tenantId,
    review_id: review.id,
    attempt_id: review.attemptId,
    fence: read.attempt.fence,
    former_reasons: review.formerReasons.length,
    resolution,
    resolution_reason: reason,
    resolved_by: by,
    resolved_at: read.now,
    instruction: JSON.stringify(instruction),
    timeline_id: newId("tl"),
  };
}

function decided({ closedAt, closedBy, resolution, resolvedBy }: Review): PawlError {
  const what = resolution === null ? "" : ` It was resolved as ${resolution} by ${resolvedBy ?? "somebody"}.`;
  const how = closedAt === null ? "It is being carried out." : `It was closed by a ${closedBy ?? "fact"}.`;
  return new PawlError("review_closed", `This review takes no decision any more.${what} ${how}`);
}

function changed(review: Review): PawlError {
  const { formerReasons, reason } = review;
  const was = formerReasons.map((former) => former.reason).join(", then ");
  const now = `version ${String(versionOf(review))}`;
  const since = was === "" ? "" : ` Before, it was about ${was}.`;
  return new PawlError("review_changed", `This review is about ${reason} now (${now}).${since}`);
}

function noSuchReview(): PawlError {
  return new PawlError("not_found", "There is no review with this id.");
}
