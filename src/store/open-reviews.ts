import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";

/** What an attempt asks a person. The id is that of a new review, where none of the attempt is open. */
export interface ReviewWrite {
  readonly id: string;
  readonly reason: string;
  /** Reasons that tell more, separated by commas: a review that is open for one of them keeps it. Null: any. */
  readonly yields_to: string | null;
}

/** Of reviews `r`: the open one of an attempt, a look-up in the partial index of open ones. */
export function openReviewOf(db: Queryable, tenantId: SqlPart, attemptId: SqlPart): SqlPart {
  return db`r.tenant_id = ${tenantId} and r.attempt_id = ${attemptId} and r.closed_at is null and r.object_id = ''`;
}

/**
 * For the rows of `owned`: an attempt's open review with a reason that tells more than the one it had, and undecided again
 * where an instruction comes back; and the review that opens where none is. One that another process opens meanwhile
 * gets its reason with the next look.
 */
export function revisedReviews(db: Queryable): SqlPart {
  return db`revised as (
      update reviews r
         set resolution = case when i.instruction = 'returned' then null else r.resolution end,
             resolution_reason = case when i.instruction = 'returned' then null else r.resolution_reason end,
             resolved_by = case when i.instruction = 'returned' then null else r.resolved_by end,
             resolved_at = case when i.instruction = 'returned' then null else r.resolved_at end,
             reason = case when ${tellsMore(db)} then w.reason else r.reason end,
             history = case when ${tellsMore(db)} then ${withPresent(db)} else r.history end
        from owned i, json_to_record(i.review) as w(reason text, yields_to text)
       where not i.close_review and (i.instruction = 'returned' or w.reason is not null)
         and ${openReviewOf(db, db`i.tenant_id`, db`i.attempt_id`)}
         and (i.instruction = 'returned' or ${tellsMore(db)})
    ), opened as (
      insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
      select i.tenant_id, w.id, i.payment_id, i.attempt_id, w.reason
        from owned i, json_to_record(i.review) as w(id text, reason text)
       where w.id is not null
      on conflict (tenant_id, attempt_id, object_id) where closed_at is null do nothing
    )`;
}

/** Whether `w` says of the review `r` what it was not about before and what does not tell less. */
export function tellsMore(db: Queryable): SqlPart {
  return db`coalesce(w.reason <> r.reason and w.yields_to is not null
              and r.reason <> all(string_to_array(w.yields_to, ','))
              and not r.history::jsonb @> jsonb_build_array(jsonb_build_object('reason', w.reason)), false)`;
}

/** The review's history with what it is about until now. */
export function withPresent(db: Queryable): SqlPart {
  return db`(r.history::jsonb || jsonb_build_object('reason', r.reason, 'until', now()))::json`;
}
