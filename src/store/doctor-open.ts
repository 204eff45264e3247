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

/** So far ahead of the database's clock. */
export function ahead(db: Queryable, ms: number): SqlPart {
  return db`now() + ${ms}::float8 * interval '1 millisecond'`;
}

/** Of an attempt `a`, for a person. */
export function dueTooLate(db: Queryable): SqlPart {
  return db`format('a %s is %s, due at %s, its lease until %s', a.kind, a.state, a.due_at,
                   coalesce(a.lease_expires_at::text, '-'))`;
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

/** The end of the index of what is due: what a clock that ran ahead has left there, nobody looks at for as long. */
export function checkDueTooLate(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select 'attempt_due_too_late' as invariant, a.tenant_id, a.payment_id, json_build_object('attempt_id', a.id) as ids,
           ${dueTooLate(db)} as detail
      from attempts a where a.due_at > ${ahead(db, bounds.attemptAheadMs)}
     order by a.due_at desc limit ${MOST_NAMED}`;
}

/** Every endpoint that something is due to, one look-up each. */
function endpoints(db: Queryable): SqlPart {
  return db`waiting as (
      (select endpoint_id from deliveries where due_at is not null order by endpoint_id limit 1)
      union all
      select (select d.endpoint_id from deliveries d where d.due_at is not null and d.endpoint_id > w.endpoint_id
               order by d.endpoint_id limit 1)
        from waiting w where w.endpoint_id is not null
    )`;
}

/** The longest overdue delivery of each endpoint, endpoint by endpoint as the claim goes. */
export function checkDeliveries(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    with recursive ${endpoints(db)}
    select 'delivery_overdue' as invariant, d.tenant_id, d.payment_id,
           json_build_object('endpoint_id', d.endpoint_id, 'event_id', d.event_id) as ids,
           format('the first delivery to the endpoint was due at %s', d.due_at) as detail
      from waiting w cross join lateral (
        select d.tenant_id, d.payment_id, d.endpoint_id, d.event_id, d.due_at from deliveries d
         where d.endpoint_id = w.endpoint_id and d.due_at < ${past(db, bounds.deliveryOverdueMs)}
         order by d.due_at limit 1) d
     where w.endpoint_id is not null limit ${MOST_NAMED}`;
}

/** The last due delivery of each endpoint. */
export function checkDeliveriesTooLate(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    with recursive ${endpoints(db)}
    select 'delivery_due_too_late' as invariant, d.tenant_id, d.payment_id,
           json_build_object('endpoint_id', d.endpoint_id, 'event_id', d.event_id) as ids,
           format('the last delivery to the endpoint is due at %s', d.due_at) as detail
      from waiting w cross join lateral (
        select d.tenant_id, d.payment_id, d.endpoint_id, d.event_id, d.due_at from deliveries d
         where d.endpoint_id = w.endpoint_id and d.due_at > ${ahead(db, bounds.deliveryAheadMs)}
         order by d.due_at desc limit 1) d
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

export function checkInboxTooLate(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select 'provider_event_due_too_late' as invariant, null as tenant_id, null as payment_id,
           json_build_object('provider', e.provider, 'provider_event_id', e.event_id, 'type', e.type) as ids,
           format('due at %s after %s tries', e.due_at, e.tries) as detail
      from provider_events e where e.due_at > ${ahead(db, bounds.providerEventAheadMs)}
     order by e.due_at desc limit ${MOST_NAMED}`;
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
    select case when e.is_same then 'entry_not_counted' else 'uncounted_without_entry' end as invariant,
           u.tenant_id, u.payment_id, json_build_object('fact', u.fact, 'leg', u.leg::text) as ids,
           case when e.is_same then format('posted at %s, and in no balance', e.created_at)
                else 'it is to be counted into the balances, and no entry of the book says so' end as detail
      from tenants t
      cross join lateral (
        select u.* from ledger_uncounted u where u.tenant_id = t.id
         order by u.payment_id, u.fact, u.leg limit ${FIRST_ENTRIES}) u
      left join lateral (
        select e.created_at, (e.currency, e.debit_account, e.credit_account, e.amount)
                 = (u.currency, u.debit_account, u.credit_account, u.amount) as is_same
          from ledger_entries e
         where e.tenant_id = u.tenant_id and e.payment_id = u.payment_id and e.fact = u.fact and e.leg = u.leg limit 1) e on true
     where e.is_same is not true or e.created_at < ${past(db, bounds.overdueMs)} limit ${MOST_NAMED}`;
}

/**
 * An installation counts as compared when it is made: the first comparison has as long as every other. A lease that ends
 * later than any can is held by nobody.
 */
export function checkInstallation(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select v.invariant, null as tenant_id, null as payment_id, null::json as ids, v.detail
      from (select i.recovering_since, i.recovery_reason,
                   (select count(*) from reconciliation_runs r
                     where r.state = 'running' and r.lease_expires_at > now()
                       and r.lease_expires_at < ${ahead(db, bounds.leaseAheadMs)}) as running,
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
