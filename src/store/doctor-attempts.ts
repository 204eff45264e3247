import type { DoctorBounds } from "../domain/doctor.js";
import type { Queryable } from "./db.js";
import { ahead, dueTooLate } from "./doctor-open.js";
import type { SqlPart } from "./key-claims.js";
import { openReviewOf } from "./open-reviews.js";

/**
 * Checks of attempts, each one statement and so of one snapshot; lateral look-ups as in doctor-payments. A key is
 * compared only where it is as old as the attempt: one that was purged and used again stands for something newer.
 */

/** Of payments: every attempt that the payment, its refunds or its timeline name. For a CTE `subject (n, tenant_id, id)`. */
export function checkAttemptsOfPayments(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`${judge(
    db,
    bounds,
    db`
      select s.n, p.tenant_id, p.id as payment_id, true as has_payment, p.attempt_id as charge_id, named.attempt_id
        from subject s
        cross join lateral (
          select p.tenant_id, p.id, p.attempt_id, p.open_effect from payments p
           where p.tenant_id = s.tenant_id and p.id = s.id limit 1) p
        cross join lateral (
          select p.attempt_id union select p.open_effect where p.open_effect is not null
          union select r.attempt_id from refunds r where r.payment_id = p.id and r.tenant_id = p.tenant_id
          union select t.attempt_id from timeline t
                 where t.tenant_id = p.tenant_id and t.payment_id = p.id and t.attempt_id is not null) named`,
  )}`;
}

/** Of attempts that are named themselves: also one that nothing of its payment tells of, or whose payment is gone. */
export function checkAttempts(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`${judge(
    db,
    bounds,
    db`
      select s.n, a.tenant_id, a.payment_id, p.attempt_id is not null as has_payment, p.attempt_id as charge_id,
             a.id as attempt_id
        from subject s
        cross join lateral (
          select a.tenant_id, a.id, a.payment_id from attempts a
           where a.tenant_id = s.tenant_id and a.id = s.id limit 1) a
        left join lateral (
          select p.attempt_id from payments p where p.tenant_id = a.tenant_id and p.id = a.payment_id limit 1) p on true`,
  )}`;
}

function judge(db: Queryable, bounds: DoctorBounds, named: SqlPart): SqlPart {
  return db`
    select x.n, v.invariant, x.tenant_id, x.payment_id, v.ids, v.detail
      from (${named} offset 0) x
      left join lateral (
        select a.tenant_id, a.id, a.payment_id, a.kind, a.operation, a.idempotency_key, a.run, a.refund_id, a.state,
               a.due_at, a.lease_expires_at, a.provider, a.provider_payment_id, a.created_at
          from attempts a where a.tenant_id = x.tenant_id and a.id = x.attempt_id limit 1
      ) a on true
      left join lateral (
        select c.provider_payment_id from attempts c where c.tenant_id = x.tenant_id and c.id = x.charge_id limit 1
      ) charge on true
      left join lateral (
        select o.tenant_id, o.id from attempts o
         where a.kind = 'charge' and o.kind = 'charge' and o.provider_payment_id = a.provider_payment_id
           and o.provider = a.provider and (o.tenant_id <> a.tenant_id or o.id <> a.id) limit 1
      ) twin on true
      left join lateral (
        select f.status from refunds f where f.tenant_id = a.tenant_id and f.id = a.refund_id limit 1
      ) refund on true
      left join lateral (
        select r.id from reviews r where ${openReviewOf(db, db`a.tenant_id`, db`a.id`)} limit 1
      ) review on true
      left join lateral (
        select k.state, k.resource_id from idempotency_keys k
         where k.tenant_id = a.tenant_id and k.operation = a.operation and k.key = a.idempotency_key
           and k.run = a.run and k.created_at <= a.created_at limit 1
      ) k on true
     cross join lateral (values
       ('attempt_missing', a.id is null or a.payment_id <> x.payment_id, json_build_object('attempt_id', x.attempt_id),
        case when a.id is null then 'its attempt is not there' else format('its attempt is that of %s', a.payment_id) end),
       ('two_objects_of_payment',
        x.has_payment and a.payment_id = x.payment_id and case when a.kind = 'charge' then a.id <> x.charge_id
          else a.provider_payment_id is distinct from charge.provider_payment_id end,
        json_build_object('attempt_id', a.id, 'charge_attempt_id', x.charge_id),
        format('its charge is of %s, a %s of %s', coalesce(charge.provider_payment_id, 'no object'), a.kind,
               coalesce(a.provider_payment_id, 'no object'))),
       ('object_of_two_attempts', twin.id is not null,
        json_build_object('attempt_id', a.id, 'other_attempt_id', twin.id, 'other_tenant_id', twin.tenant_id,
                          'provider_payment_id', a.provider_payment_id),
        'its provider object is the charge of another attempt, too'),
       ('attempt_stuck', a.state <> 'completed' and a.due_at is null, json_build_object('attempt_id', a.id),
        format('a %s is %s, and no worker will look at it', a.kind, a.state)),
       ('payment_missing', not x.has_payment, json_build_object('attempt_id', a.id),
        format('a %s of it is %s, and it is not there', a.kind, a.state)),
       ('attempt_due_too_late',
        a.due_at > ${ahead(db, bounds.attemptAheadMs)} or a.lease_expires_at > ${ahead(db, bounds.leaseAheadMs)},
        json_build_object('attempt_id', a.id), ${dueTooLate(db)}),
       ('review_missing', refund.status = 'needs_review' and review.id is null,
        json_build_object('attempt_id', a.id, 'refund_id', a.refund_id), 'its refund needs a review, and none is open'),
       ('key_left_open', k.state = 'in_progress' and a.state = 'completed',
        json_build_object('attempt_id', a.id, 'operation', a.operation, 'key', a.idempotency_key),
        format('the %s has ended, and its key is in progress', a.kind)),
       ('key_of_another', k.resource_id <> coalesce(a.refund_id, a.payment_id),
        json_build_object('attempt_id', a.id, 'operation', a.operation, 'key', a.idempotency_key),
        format('its key names %s', k.resource_id))
     ) as v(invariant, broken, ids, detail)
     where v.broken`;
}
