import type { Queryable } from "./db.js";
import { type Finding, type FindingName, findingOf } from "./reconciliation.js";
import type { Row } from "./rows.js";

/** A difference with the provider that stays, because a person has said so. It is told no more while it is the same. */

export async function readFinding(
  db: Queryable,
  provider: string,
  { kind, objectId }: FindingName,
): Promise<Finding | null> {
  const [row] = await db<Row[]>`
    select * from reconciliation_findings
     where provider = ${provider} and kind = ${kind} and object_id = ${objectId}`;
  return row === undefined ? null : findingOf(row);
}

export interface Acceptance {
  readonly provider: string;
  /** As it was looked at: one that shows something else by now is not accepted. */
  readonly finding: Finding;
  readonly reason: string;
  readonly by: string;
  readonly timelineId: string;
}

/**
 * Accepts an open difference, once, and tells of it in the timeline of its payment where there is one. Null: it is not
 * open any more, or not the same, and nothing is written.
 */
export async function acceptFinding(db: Queryable, acceptance: Acceptance): Promise<Finding | null> {
  const { provider, finding, reason, by, timelineId } = acceptance;
  const { kind, objectId } = finding;
  const [accepted] = await db<Row[]>`
    with accepted as (
      update reconciliation_findings
         set state = 'accepted', closed_at = now(), accepted_reason = ${reason}, accepted_by = ${by}, accepted_at = now()
       where provider = ${provider} and kind = ${kind} and object_id = ${objectId} and state = 'open'
         and ours::jsonb is not distinct from ${jsonText(finding.ours)}::text::jsonb
         and theirs::jsonb is not distinct from ${jsonText(finding.theirs)}::text::jsonb
      returning *
    ), told as (
      insert into timeline (tenant_id, payment_id, id, kind, reason, outcome)
      select tenant_id, payment_id, ${timelineId}, 'request', ${`accepted ${kind} of ${objectId}: ${reason}`},
             ${`by ${by}`}
        from accepted where tenant_id is not null and payment_id is not null
    )
    select * from accepted`;
  return accepted === undefined ? null : findingOf(accepted);
}

/**
 * Accepts what a person has ended the review of: that the provider does not have an attempt's object. Either they have
 * dismissed it since it was found, or they had the attempt ended because it is gone. Whoever decided that is who accepts.
 * False: nobody has, or it is not open.
 */
export async function acceptEnded(
  db: Queryable,
  provider: string,
  { kind, objectId }: FindingName,
  attempt: { readonly tenantId: string; readonly paymentId: string; readonly id: string },
): Promise<boolean> {
  const accepted = await db<Row[]>`
    update reconciliation_findings f
       set state = 'accepted', closed_at = now(), accepted_reason = t.reason, accepted_by = substr(t.outcome, 4),
           accepted_at = t.at
      from (select reason, outcome, at from timeline
             where tenant_id = ${attempt.tenantId} and payment_id = ${attempt.paymentId}
               and attempt_id = ${attempt.id} and kind = 'request' and outcome like 'by %'
               and (reason like 'dismiss requested: %' or reason like 'mark_not_performed requested: %')
             order by at desc limit 1) t
     where f.provider = ${provider} and f.kind = ${kind} and f.object_id = ${objectId} and f.state = 'open'
       and (t.at >= f.first_seen_at or exists (
         select from timeline c
          where c.tenant_id = ${attempt.tenantId} and c.payment_id = ${attempt.paymentId}
            and c.attempt_id = ${attempt.id} and c.reason = 'mark_not_performed' and c.at >= t.at))
       and not exists (
         select from reviews r where r.tenant_id = ${attempt.tenantId} and r.attempt_id = ${attempt.id}
            and r.closed_at is null)
    returning f.object_id`;
  return accepted.length === 1;
}

function jsonText(side: object | null): string | null {
  return side === null ? null : JSON.stringify(side);
}
