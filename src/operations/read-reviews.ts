import type { AttemptView } from "../domain/charge-change.js";
import { PawlError } from "../domain/errors.js";
import { type AllowedResolution, allowedResolutions, DISMISSAL_ALONE } from "../domain/review.js";
import type { Review, ReviewEvidence } from "../domain/review-document.js";
import { readAttempt } from "../store/attempts.js";
import { type Queryable, withDatabase } from "../store/db.js";
import { readPayment } from "../store/payments.js";
import { readRefund } from "../store/refunds.js";
import * as store from "../store/reviews.js";
import { chargePolicyOf } from "./charge-policy.js";
import type { Caller, Deps } from "./deps.js";
import { type Page, type PageRequest, pageOf, readCursor } from "./paging.js";

/** An attempt that is asked about for days leaves hundreds of rows; the payment's own timeline has them all. */
const MOST_ENTRIES = 100;

type Reading = Pick<Deps, "db" | "settings">;

/** With all its evidence. Throws not_found, for another tenant's review too. */
export async function getReview(deps: Reading, caller: Caller, reviewId: string): Promise<ReviewEvidence> {
  const name = { tenantId: caller.tenantId, id: reviewId };
  const review = await withDatabase(() => store.readReview(deps.db.sql, name));
  if (review === null) throw new PawlError("not_found", "There is no review with this id.");
  return evidenceOf(deps, review);
}

/** Newest first. */
export async function listReviews(
  deps: Pick<Deps, "db">,
  caller: Caller,
  filter: { readonly status?: "open" | "closed" | undefined },
  page: PageRequest,
): Promise<Page<Review>> {
  const before = readCursor(page.cursor, "rev");
  const rows = await withDatabase(() =>
    store.listReviews(deps.db.sql, caller.tenantId, filter, { limit: page.limit + 1, before }),
  );
  return pageOf(rows, page.limit);
}

/** For the operator's command line, across tenants. Null: there is no such review. */
export async function showReview(deps: Reading, reviewId: string): Promise<ReviewEvidence | null> {
  const review = await findReview(deps.db.sql, reviewId);
  return review === null ? null : evidenceOf(deps, review);
}

/** What an undecided review takes, with its attempt as it is. */
export function takenBy(review: Review, view: AttemptView): readonly AllowedResolution[] {
  return review.objectId === null ? allowedResolutions(view, review.reason) : DISMISSAL_ALONE;
}

export function findReview(db: Queryable, reviewId: string): Promise<Review | null> {
  return withDatabase(async () => {
    const tenantId = await store.findTenantOfReview(db, reviewId);
    return tenantId === null ? null : store.readReview(db, { tenantId, id: reviewId });
  });
}

function evidenceOf(deps: Reading, review: Review): Promise<ReviewEvidence> {
  const { sql } = deps.db;
  const { tenantId, refundId } = review;
  const policy = chargePolicyOf(deps.settings);
  return withDatabase(async () => {
    const read = await readAttempt(sql, tenantId, review.attemptId);
    const payment = await readPayment(sql, tenantId, review.paymentId);
    if (read === null || payment === null) throw new Error(`review ${review.id} has lost its payment`);
    const { attempt, dueAt, now } = read;
    const refund = refundId === null ? null : await readRefund(sql, tenantId, refundId);
    const timeline = await store.readReviewTimeline(sql, review, MOST_ENTRIES);
    const isDecided = review.closedAt !== null || review.resolution !== null;
    const allowed = isDecided ? [] : takenBy(review, { ...read, policy });
    return { review, payment, refund, attempt, dueAt, now, policy, timeline, allowed };
  });
}
