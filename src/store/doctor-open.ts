import type { DoctorBounds } from "../domain/doctor.js";
import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";

/**
 * Checks of what is open, from the partial indexes of what is open, and of the books as a whole: each one statement, of
 * one snapshot. By the database's clock, which has also written what it is compared with.
 */

/** So many of one kind are named; the report says where there may be more. */
export const MOST_NAMED = 100;

function past(db: Queryable, ms: number): SqlPart {
  return db`now() - ${ms}::float8 * interval '1 millisecond'`;
}

/** Under a live lease nothing is overdue; a lease that has just ended is somebody's to find. */
export function checkOverdue(db: Queryable, bounds: DoctorBounds): SqlPart {
  const late = past(db, bounds.overdueMs);
  return db`
    select case when a.lease_expires_at is null then 'attempt_overdue' else 'lease_abandoned' end as invariant,
           a.tenant_id, a.payment_id, json_build_object('attempt_id', a.id) as ids,
           format('a %s is %s and was due at %s', a.kind, a.state, a.due_at) as detail
      from attempts a
     where a.due_at < ${late} and (a.lease_expires_at is null or a.lease_expires_at < ${past(db, bounds.overdueMs)})
     order by a.due_at limit ${MOST_NAMED}`;
}

/** The longest overdue delivery of each endpoint, endpoint by endpoint as the claim goes. */
export function checkDeliveries(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    with recursive waiting as (
      (select endpoint_id from deliveries where due_at is not null order by endpoint_id limit 1)
      union all
      select (select d.endpoint_id from deliveries d where d.due_at is not null and d.endpoint_id > w.endpoint_id
               order by d.endpoint_id limit 1)
        from waiting w where w.endpoint_id is not null
    )
    select 'delivery_overdue' as invariant, d.tenant_id, d.payment_id,
           json_build_object('endpoint_id', d.endpoint_id, 'event_id', d.event_id) as ids,
           format('the first delivery to the endpoint was due at %s', d.due_at) as detail
      from waiting w cross join lateral (
        select d.tenant_id, d.payment_id, d.endpoint_id, d.event_id, d.due_at from deliveries d
         where d.endpoint_id = w.endpoint_id and d.due_at < ${past(db, bounds.deliveryOverdueMs)}
         order by d.due_at limit 1) d
     where w.endpoint_id is not null limit ${MOST_NAMED}`;
}

export function checkRelay(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select 'event_not_relayed' as invariant, o.tenant_id, o.payment_id,
           json_build_object('event_id', o.id, 'type', o.type) as ids,
           format('written at %s, and no delivery is made of it', o.created_at) as detail
      from outbox o where o.relayed_at is null and o.created_at < ${past(db, bounds.overdueMs)}
     order by o.created_at limit ${MOST_NAMED}`;
}

export function checkInbox(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select 'provider_event_overdue' as invariant, null as tenant_id, null as payment_id,
           json_build_object('provider', e.provider, 'provider_event_id', e.event_id, 'type', e.type) as ids,
           format('due at %s after %s tries', e.due_at, e.tries) as detail
      from provider_events e where e.due_at < ${past(db, bounds.overdueMs)}
     order by e.due_at limit ${MOST_NAMED}`;
}

/** What is not counted yet is even by itself, entry by entry: the balances alone must be. */
export function checkBalances(db: Queryable): SqlPart {
  return db`
    select 'ledger_unbalanced' as invariant, t.id as tenant_id, null as payment_id,
           json_build_object('currency', b.currency) as ids,
           format('%s debited, %s credited', b.debits, b.credits) as detail
      from tenants t cross join lateral (
        select b.currency, sum(b.debits) as debits, sum(b.credits) as credits from ledger_balances b
         where b.tenant_id = t.id group by b.currency having sum(b.debits) <> sum(b.credits)) b
     limit ${MOST_NAMED}`;
}

/** Entries looked at of each tenant: those that the next count takes first. */
const FIRST_ENTRIES = 5;

export function checkCounting(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select 'entry_not_counted' as invariant, u.tenant_id, u.payment_id,
           json_build_object('fact', u.fact, 'leg', u.leg::text) as ids,
           format('posted at %s, and in no balance', e.created_at) as detail
      from tenants t
      cross join lateral (
        select u.tenant_id, u.payment_id, u.fact, u.leg from ledger_uncounted u where u.tenant_id = t.id
         order by u.payment_id, u.fact, u.leg limit ${FIRST_ENTRIES}) u
      cross join lateral (
        select e.created_at from ledger_entries e
         where e.tenant_id = u.tenant_id and e.payment_id = u.payment_id and e.fact = u.fact and e.leg = u.leg limit 1) e
     where e.created_at < ${past(db, bounds.overdueMs)} limit ${MOST_NAMED}`;
}

/** An installation counts as compared when it is made: the first comparison has as long as every other. */
export function checkInstallation(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select v.invariant, null as tenant_id, null as payment_id, null::json as ids, v.detail
      from (select i.recovering_since, i.recovery_reason,
                   (select count(*) from reconciliation_runs r
                     where r.state = 'running' and r.lease_expires_at > now()) as running,
                   greatest(i.created_at, (select max(r.finished_at) from reconciliation_runs r
                                            where r.state = 'completed')) as compared_at
              from installation i) i
     cross join lateral (values
       ('recovery_running_long', i.recovering_since < ${past(db, bounds.recoveryMs)},
        format('since %s: %s; nothing is sent', i.recovering_since, i.recovery_reason)),
       ('comparison_overdue', i.running = 0 and i.compared_at < ${past(db, bounds.comparisonMs)},
        format('the last comparison that was completed is of %s', i.compared_at))
     ) as v(invariant, broken, detail)
     where v.broken`;
}
