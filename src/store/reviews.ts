import type { AttemptKind } from "../domain/attempt.js";
import type { ReviewResolution } from "../domain/instruction.js";
import type { FormerReason, Review } from "../domain/review-document.js";
import type { TimelineEntry } from "../domain/timeline-entry.js";
import type { Queryable } from "./db.js";
import type { KeyedChange, SqlPart } from "./key-claims.js";
import { rowIfAny, rowOf } from "./look-ups.js";
import { timelineEntryOf } from "./payments.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface ReviewName {
  readonly tenantId: string;
  readonly id: string;
}

function selectReview(db: Queryable) {
  return db`select v.*, a.kind as attempt_kind, a.refund_id
    from reviews v ${rowIfAny(db, "attempts", "a", db`v.tenant_id`, db`v.attempt_id`)}`;
}

/** Open reviews, oldest first; across tenants where none is named: for the operator's command line. */
export async function listOpenReviews(
  db: Queryable,
  tenantId: string | null,
  limit: number,
): Promise<Review[]> {
  const rows = await db<Row[]>`${selectReview(db)}
     where v.closed_at is null ${tenantId === null ? db`` : db`and v.tenant_id = ${tenantId}`}
     order by v.id limit ${limit}`;
  return rows.map(reviewOf);
}

/** Newest first; `before` is the id that the last page ended with. */
export async function listReviews(
  db: Queryable,
  tenantId: string,
  filter: { readonly status?: "open" | "closed" | undefined },
  page: { readonly limit: number; readonly before: string | null },
): Promise<Review[]> {
  const { status } = filter;
  const wanted = status === "open" ? db`and v.closed_at is null` : db`and v.closed_at is not null`;
  const rows = await db<Row[]>`${selectReview(db)}
     where v.tenant_id = ${tenantId}
       ${page.before === null ? db`` : db`and v.id < ${page.before}`}
       ${status === undefined ? db`` : wanted}
     order by v.id desc limit ${page.limit}`;
  return rows.map(reviewOf);
}

export async function readReview(db: Queryable, name: ReviewName): Promise<Review | null> {
  const [row] = await db<Row[]>`${selectReview(db)}
     where v.tenant_id = ${name.tenantId} and v.id = ${name.id}`;
  return row === undefined ? null : reviewOf(row);
}

/** For the operator's command line: whose review this is. A look-up in each tenant's part of the primary key. */
export async function findTenantOfReview(db: Queryable, reviewId: string): Promise<string | null> {
  const [row] = await db<Row[]>`
    select v.tenant_id from tenants t ${rowOf(db, "reviews", "v", db`t.id`, db`${reviewId}`)}`;
  return row === undefined ? null : (row["tenant_id"] as string);
}

/** The last `limit` entries of the review's attempt, the oldest of them first. */
export async function readReviewTimeline(
  db: Queryable,
  review: Review,
  limit: number,
): Promise<TimelineEntry[]> {
  const rows = await db<Row[]>`
    select * from timeline
     where tenant_id = ${review.tenantId} and payment_id = ${review.paymentId}
       and attempt_id = ${review.attemptId}
     order by at desc, id desc limit ${limit}`;
  return rows.map(timelineEntryOf).toReversed();
}

/** A person's decision. Names are those of the columns. */
export interface ResolutionRow {
  readonly tenant_id: string;
  readonly review_id: string;
  readonly attempt_id: string;
  /** Of the attempt that the decision was checked against. */
  readonly fence: number;
  /** Of the review that it was checked against. */
  readonly former_reasons: number;
  readonly resolution: ReviewResolution;
  readonly resolution_reason: string;
  readonly resolved_by: string;
  readonly resolved_at: Date;
  /** What the attempt is given to carry out, as JSON text. */
  readonly instruction: string;
  readonly timeline_id: string;
}

/**
 * Records a decision and gives it to the attempt, which is due now, or as soon as its lease is given back. One about an
 * object that is not the attempt's ends its review at once. Held: the attempt, unless a worker has claimed it since it was
 * read, and the review, unless a fact or another person was first, or it has come to be about more.
 */
export function resolvingReview(db: Queryable, row: ResolutionRow): KeyedChange & { readonly held: SqlPart } {
  const held = db`
    select i.*, a.payment_id, a.refund_id, v.object_id
      from json_to_record(${JSON.stringify(row)}::text::json) as i(
           tenant_id text, review_id text, attempt_id text, fence bigint, former_reasons int, resolution text,
           resolution_reason text, resolved_by text, resolved_at timestamptz, instruction text, timeline_id text)
      cross join lateral (select a.payment_id, a.refund_id from attempts a
                           where a.tenant_id = i.tenant_id and a.id = i.attempt_id and a.fence = i.fence for update) a
      cross join lateral (select v.object_id from reviews v
                           where v.tenant_id = i.tenant_id and v.id = i.review_id and v.closed_at is null
                             and v.resolution is null and json_array_length(v.history) = i.former_reasons for update) v`;
  const effect = db`resolved as (
      update reviews v
         set resolution = h.resolution, resolution_reason = h.resolution_reason, resolved_by = h.resolved_by,
             resolved_at = h.resolved_at,
             closed_at = case when h.object_id <> '' then h.resolved_at end,
             closed_by = case when h.object_id <> '' then 'person' end
        from held h join claimed c using (tenant_id)
       where v.tenant_id = h.tenant_id and v.id = h.review_id
    ), instructed as (
      update attempts a
         set instruction = h.instruction, nudged = true,
             due_at = case when a.lease_expires_at > now() then a.due_at
                           else least(coalesce(a.due_at, now()), now()) end
        from held h join claimed c using (tenant_id)
       where a.tenant_id = h.tenant_id and a.id = h.attempt_id and a.fence = h.fence and h.object_id = ''
    ), told as (
      insert into timeline (tenant_id, payment_id, id, refund_id, kind, reason, attempt_id, outcome)
      select h.tenant_id, h.payment_id, h.timeline_id, h.refund_id, 'request',
             h.resolution || ' requested: ' || h.resolution_reason, h.attempt_id, 'by ' || h.resolved_by
        from held h join claimed c using (tenant_id)
    )`;
  return { held, effect };
}

/** The same for a decision without a key. False, and nothing is written: it is to be checked again. */
export async function resolveReview(db: Queryable, row: ResolutionRow): Promise<boolean> {
  const { held, effect } = resolvingReview(db, row);
  const claimed = await db<Row[]>`
    with held as materialized (${held}), claimed as materialized (select tenant_id from held), ${effect}
    select from claimed`;
  return claimed.length > 0;
}

function reviewOf(row: Row): Review {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    paymentId: row["payment_id"] as string,
    attemptId: row["attempt_id"] as string,
    attemptKind: row["attempt_kind"] as AttemptKind,
    refundId: textOrNull(row["refund_id"]),
    objectId: (row["object_id"] as string) || null,
    reason: row["reason"] as string,
    formerReasons: jsonOrNull<FormerReason[]>(row["history"]) ?? [],
    openedAt: requiredDate(row["opened_at"]),
    closedAt: dateOrNull(row["closed_at"]),
    closedBy: textOrNull(row["closed_by"]) as Review["closedBy"],
    resolution: textOrNull(row["resolution"]) as ReviewResolution | null,
    resolutionReason: textOrNull(row["resolution_reason"]),
    resolvedBy: textOrNull(row["resolved_by"]),
    resolvedAt: dateOrNull(row["resolved_at"]),
  };
}
