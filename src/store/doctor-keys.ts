import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";

/** Checks of keys and order ids, each one statement and so of one snapshot; lateral look-ups as in doctor-payments. */

/** For a CTE `subject (n, tenant_id, operation, key)`. Only payments and refunds are never deleted. */
export function checkKeys(db: Queryable): SqlPart {
  return db`
    select s.n, v.invariant, k.tenant_id, coalesce(p.id, r.payment_id) as payment_id,
           json_build_object('operation', k.operation, 'key', k.key, 'resource_id', k.resource_id) as ids, v.detail
      from subject s
      cross join lateral (
        select k.tenant_id, k.operation, k.key, k.state, k.run, k.resource_id, k.expires_at,
               k.response_status is not null and k.response_body is not null as has_answer
          from idempotency_keys k
         where k.tenant_id = s.tenant_id and k.operation = s.operation and k.key = s.key limit 1) k
      left join lateral (
        select p.id, p.attempt_id, p.open_effect from payments p
         where p.tenant_id = k.tenant_id and p.id = k.resource_id limit 1) p on true
      left join lateral (
        select r.id, r.payment_id, r.attempt_id from refunds r
         where r.tenant_id = k.tenant_id and r.id = k.resource_id limit 1) r on true
      left join lateral (
        select a.id from attempts a
         where a.tenant_id = k.tenant_id
           and a.id = case k.operation when 'payments.create' then p.attempt_id when 'refunds.create' then r.attempt_id
                                       else p.open_effect end
           and a.operation = k.operation and a.idempotency_key = k.key and a.run = k.run and a.state <> 'completed'
         limit 1) a on true
     cross join lateral (values
       ('key_without_resource', k.resource_id ~ '^(pay|re)_' and p.id is null and r.id is null,
        format('the key is %s, and what it names is not there', k.state)),
       ('key_left_open', k.state = 'in_progress' and (p.id is not null or r.id is not null) and a.id is null,
        format('run %s of the key is in progress, and no attempt of it is', k.run)),
       ('key_without_answer', k.state = 'completed' and (not k.has_answer or k.expires_at is null),
        'the key is completed without an answer or an expiry')
     ) as v(invariant, broken, detail)
     where v.broken`;
}

/** For a CTE `subject (n, tenant_id, merchant_order_id)`. */
export function checkOrderIds(db: Queryable): SqlPart {
  return db`
    select s.n, 'order_id_disagrees' as invariant, s.tenant_id, o.payment_id,
           json_build_object('merchant_order_id', s.merchant_order_id) as ids,
           case when p.holds_order_id is null then 'the order id is held by a payment that is not there'
                else format('the order id is held by it, and it says that it %s %s',
                            case when p.holds_order_id then 'holds' else 'does not hold' end,
                            coalesce(p.merchant_order_id, 'none')) end as detail
      from subject s
      cross join lateral (
        select o.payment_id from order_ids o
         where o.tenant_id = s.tenant_id and o.merchant_order_id = s.merchant_order_id limit 1) o
      left join lateral (
        select p.holds_order_id, p.merchant_order_id from payments p
         where p.tenant_id = s.tenant_id and p.id = o.payment_id limit 1) p on true
     where p.holds_order_id is distinct from true or p.merchant_order_id is distinct from s.merchant_order_id`;
}
