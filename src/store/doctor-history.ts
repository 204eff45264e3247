import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";

/**
 * Checks of what was written once and for ever: timelines and events. A transition and its event are written by one
 * statement, so the two have the same time, `at` and `created_at`, to the microsecond. No index leads from a payment to
 * its events; the ids do, since both are made one after the other, by one clock.
 */

/** Where an event's id lies after its timeline row's: next to it, save that a process may have been stopped in between. */
const NEAR = { beforeMs: 5, afterMs: 50 };
const WIDE = { beforeMs: 60_000, afterMs: 60_000 };
/** A clock that was set back may turn what lies closer together around. */
const CLOCK_SET_BACK = "10 seconds";

/** For a CTE `subject (n, tenant_id, id)` of payments. */
export function checkHistory(db: Queryable): SqlPart {
  return db`
    select n, invariant, tenant_id, id as payment_id, ids, detail from (
      ${fences(db)} union all ${facts(db)} union all ${statuses(db)}) as history`;
}

/** An attempt's fence is the highest that was written under it; rows under a lower one do not follow. */
function fences(db: Queryable): SqlPart {
  return db`
    select s.n, 'fence_went_back' as invariant, s.tenant_id, s.id, json_build_object('attempt_id', f.attempt_id) as ids,
           format('its fence is %s, its timeline went up to %s%s', a.fence, f.highest,
                  case when f.turned then ' and back' else '' end) as detail
      from subject s
      cross join lateral (
        select w.attempt_id, max(w.fence) as highest, bool_or(w.fence < w.before_it and w.fence < w.before_its_id) as turned
          from (select t.attempt_id, t.fence,
                       max(t.fence) over (partition by t.attempt_id order by t.at
                         range between unbounded preceding and ${CLOCK_SET_BACK}::interval preceding) as before_it,
                       max(t.fence) over (partition by t.attempt_id order by t.id
                         rows between unbounded preceding and 1 preceding) as before_its_id
                  from timeline t
                 where t.tenant_id = s.tenant_id and t.payment_id = s.id and t.fence is not null) w
         group by w.attempt_id) f
      cross join lateral (
        select a.fence from attempts a where a.tenant_id = s.tenant_id and a.id = f.attempt_id limit 1) a
     where f.highest > a.fence or f.turned`;
}

/** A transition's kind of event, as record-outcome names it. */
function typeOf(db: Queryable): SqlPart {
  return db`case when t.refund_id is null then 'payment.' else 'refund.' end
    || case when t.from_status is null then 'created' else t.to_status end`;
}

/**
 * Events are counted beside each transition. Missing is one only where the tenant has an older event: what somebody has
 * purged from the beginning is not looked for.
 */
function facts(db: Queryable): SqlPart {
  const told = (range: { beforeMs: number; afterMs: number }, gate: SqlPart) => db`
        select count(*) as told from outbox o
         where ${gate} o.tenant_id = s.tenant_id and o.payment_id = s.id and o.type = f.type and o.created_at = f.at
           and o.id >= 'evt_' || lpad(to_hex(f.made_ms - ${range.beforeMs}::bigint), 12, '0')
           and o.id < 'evt_' || lpad(to_hex(f.made_ms + ${range.afterMs}::bigint), 12, '0')`;
  return db`
    select s.n, case when near.told > f.facts then 'fact_told_twice' else 'fact_without_event' end as invariant,
           s.tenant_id, s.id, json_build_object('timeline_id', f.timeline_id, 'type', f.type) as ids,
           format('%s events of a %s that happened %s times', greatest(near.told, wide.told), f.type, f.facts) as detail
      from subject s
      cross join lateral (
        select t.at, ${typeOf(db)} as type, count(*) as facts, min(t.id) as timeline_id,
               case when min(t.id) ~ '^tl_[0-9a-f]{32}$'
                    then ('x' || substr(min(t.id), 4, 12))::bit(48)::bigint end as made_ms
          from timeline t where t.tenant_id = s.tenant_id and t.payment_id = s.id and t.kind = 'transition'
         group by 1, 2) f
      cross join lateral (${told(NEAR, db``)}) near
      cross join lateral (${told(WIDE, db`near.told < f.facts and`)}) wide
      cross join lateral (
        select count(*) as kept from (
          select o.id from outbox o
           where near.told < f.facts and o.tenant_id = s.tenant_id and o.id < 'evt_' || substr(f.timeline_id, 4)
           order by o.id limit 1) oldest) older
     where f.made_ms is not null
       and (near.told > f.facts or (near.told < f.facts and wide.told < f.facts and older.kept > 0))`;
}

function statuses(db: Queryable): SqlPart {
  return db`
    select s.n, 'status_without_fact' as invariant, s.tenant_id, s.id, null::json as ids,
           format('it is %s, and its timeline never says so', p.status) as detail
      from subject s
      cross join lateral (
        select p.status from payments p where p.tenant_id = s.tenant_id and p.id = s.id limit 1) p
      left join lateral (
        select t.id from timeline t
         where t.tenant_id = s.tenant_id and t.payment_id = s.id and t.kind = 'transition' and t.refund_id is null
           and t.to_status = p.status::text limit 1) t on true
     where t.id is null`;
}

/** For a CTE `subject (n, tenant_id, id)` of events. One whose time no transition of its payment has was told of nothing. */
export function checkEvents(db: Queryable): SqlPart {
  return db`
    select s.n, v.invariant, s.tenant_id, o.payment_id, json_build_object('event_id', s.id, 'type', o.type) as ids, v.detail
      from subject s
      cross join lateral (
        select o.type, o.payment_id, o.created_at from outbox o
         where o.tenant_id = s.tenant_id and o.id = s.id limit 1) o
      left join lateral (
        select p.id from payments p where p.tenant_id = s.tenant_id and p.id = o.payment_id limit 1) p on true
      cross join lateral (
        select count(*) as facts from timeline t
         where t.tenant_id = s.tenant_id and t.payment_id = o.payment_id and t.kind = 'transition'
           and t.at = o.created_at and o.type = ${typeOf(db)}) f
     cross join lateral (values
       ('payment_missing', o.payment_id is not null and p.id is null, 'it is about a payment that is not there'),
       ('fact_told_twice', p.id is not null and (o.type like 'payment.%' or o.type like 'refund.%') and f.facts = 0,
        'no transition of its payment was written with it')
     ) as v(invariant, broken, detail)
     where v.broken`;
}
