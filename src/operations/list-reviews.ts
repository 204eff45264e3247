import type { Review } from "../domain/review-document.js";
import { withDatabase } from "../store/db.js";
import { listOpenReviews as readOpenReviews } from "../store/reviews.js";
import type { Deps } from "./deps.js";

/** Open reviews, oldest first; of all tenants where none is named (the operator's command line). */
export function listOpenReviews(
  deps: Pick<Deps, "db">,
  tenantId: string | null,
  limit: number,
): Promise<Review[]> {
  return withDatabase(() => readOpenReviews(deps.db.sql, tenantId, limit));
}
