import type { DoctorBounds } from "../domain/doctor.js";
import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";
import { openReviewOf } from "./open-reviews.js";

/**
 * Checks of payments, each one statement and so of one snapshot. For a statement with a CTE `subject (n, tenant_id, id)`.
 * Every row is looked up in a lateral sub-query of its own: with a LIMIT (or an aggregate) in it the planner can neither
 * join nor hash the whole table, whatever settings and statistics the session has.
 */

/** A person has taken the provider's object as it is, whoever holds the order id. */
const ADOPTED = "adopt_provider_object";

function payment(db: Queryable): SqlPart {
  return db`cross join lateral (
      select * from payments p where p.tenant_id = s.tenant_id and p.id = s.id limit 1) p`;
}

/** Whether the payment `alias` shows money because a person has decided so. */
function adoption(db: Queryable, alias: "p" | "other", name: "adopted" | "other_adopted"): SqlPart {
  return db`left join lateral (
      select t.id from timeline t
       where t.tenant_id = ${db(alias)}.tenant_id and t.payment_id = ${db(alias)}.id
         and t.kind = 'transition' and t.reason = ${ADOPTED} limit 1) ${db(name)} on true`;
}

/** What is open has something due or a review; who holds an order id, and who was charged for it. */
export function checkPayments(db: Queryable, bounds: DoctorBounds): SqlPart {
  return db`
    select s.n, v.invariant, p.tenant_id, p.id as payment_id, v.ids, v.detail
      from subject s ${payment(db)}
      left join lateral (
        select a.id, a.due_at, a.provider_payment_id from attempts a where a.tenant_id = p.tenant_id and a.id = p.attempt_id limit 1
      ) charge on true
      left join lateral (
        select a.id, a.due_at, a.state from attempts a where a.tenant_id = p.tenant_id and a.id = p.open_effect limit 1
      ) effect on true
      left join lateral (
        select r.id from reviews r where ${openReviewOf(db, db`p.tenant_id`, db`p.attempt_id`)} limit 1
      ) review on true
      left join lateral (
        select o.payment_id from order_ids o
         where o.tenant_id = p.tenant_id and o.merchant_order_id = p.merchant_order_id limit 1
      ) held on true
      left join lateral (
        select o.tenant_id, o.id from payments o
         where o.merchant_order_id = p.merchant_order_id and o.tenant_id = p.tenant_id and o.id <> p.id
           and o.status in ('authorized', 'succeeded') and p.status in ('authorized', 'succeeded') limit 1
      ) other on true
      ${adoption(db, "p", "adopted")} ${adoption(db, "other", "other_adopted")}
     cross join lateral (values
       ('payment_stuck',
        p.status in ('processing', 'requires_action', 'authorized', 'needs_review')
          and charge.due_at is null and effect.due_at is null and review.id is null,
        json_build_object('attempt_id', p.attempt_id),
        format('it is %s, nothing is due and no review is open', p.status)),
       ('payment_stuck', p.open_effect is not null and (effect.id is null or effect.state = 'completed'),
        json_build_object('attempt_id', p.open_effect),
        'a capture or cancel is kept as in flight, and it has ended or is not there'),
       ('charge_without_object',
        (p.status in ('authorized', 'succeeded') or p.amount_captured > 0 or p.amount_capturable > 0)
          and charge.id is not null and charge.provider_payment_id is null,
        json_build_object('attempt_id', p.attempt_id),
        format('it is %s, and its charge names no provider object', p.status)),
       ('review_missing', p.status = 'needs_review' and review.id is null, null, 'it needs a review, and none is open'),
       ('authorization_past_end',
        p.status = 'authorized' and p.authorized_until < now() - ${bounds.authorizationMs}::float8 * interval '1 millisecond',
        null, format('it is authorized, and the authorization ended at %s', p.authorized_until)),
       ('two_charges_of_order_id', other.id is not null and adopted.id is null and other_adopted.id is null,
        json_build_object('merchant_order_id', p.merchant_order_id, 'other_payment_id', other.id),
        format('it is %s, and so is another payment of its order id', p.status)),
       ('order_id_disagrees',
        case when p.holds_order_id then held.payment_id is distinct from p.id
             else coalesce(held.payment_id = p.id, false)
                  or (p.status in ('authorized', 'succeeded') and p.merchant_order_id is not null
                      and adopted.id is null and other.id is null) end,
        json_build_object('merchant_order_id', p.merchant_order_id),
        format('it says that it %s its order id, and is %s; held by %s',
               case when p.holds_order_id then 'holds' else 'does not hold' end, p.status,
               coalesce(held.payment_id, 'nobody')))
     ) as v(invariant, broken, ids, detail)
     where v.broken`;
}

/** Columns against entries and refunds. What is reserved beyond the captured by a refund made outside ends by itself. */
export function checkBooks(db: Queryable): SqlPart {
  const net = (account: string) =>
    db`coalesce(sum(case when e.debit_account = ${account} then e.amount else 0 end
                  - case when e.credit_account = ${account} then e.amount else 0 end)
                  filter (where e.currency = p.currency), 0)`;
  return db`
    select s.n, v.invariant, p.tenant_id, p.id as payment_id, null::json as ids, v.detail
      from subject s ${payment(db)}
      cross join lateral (
        select ${net("authorized")} as held, ${net("authorized_contra")} as contra, -${net("sales")} as sold,
               ${net("refunds")} as refunded,
               count(*) filter (where e.amount <= 0 or e.debit_account = e.credit_account) as uneven,
               count(*) filter (where e.currency <> p.currency and (
                 e.debit_account in ('authorized', 'authorized_contra', 'sales', 'refunds')
                 or e.credit_account in ('authorized', 'authorized_contra', 'sales', 'refunds'))) as elsewhere
          from ledger_entries e where e.tenant_id = p.tenant_id and e.payment_id = p.id
      ) books
      cross join lateral (
        select coalesce(sum(r.amount) filter (where r.status = 'succeeded'), 0) as refunded,
               coalesce(sum(r.amount) filter (where r.status <> 'failed'), 0) as reserved,
               coalesce(sum(r.amount) filter (where r.status <> 'failed' and r.external), 0) as outside
          from refunds r where r.payment_id = p.id and r.tenant_id = p.tenant_id
      ) refunds
     cross join lateral (values
       ('books_differ',
        books.held <> p.amount_capturable or books.held + books.contra <> 0 or books.sold <> p.amount_captured
          or books.refunded <> p.amount_refunded or books.uneven > 0 or books.elsewhere > 0,
        format('held, captured, refunded: it says %s, %s, %s, its entries %s, %s, %s; %s entries move nothing, %s are in another currency',
               p.amount_capturable, p.amount_captured, p.amount_refunded, books.held, books.sold, books.refunded,
               books.uneven, books.elsewhere)),
       ('refunds_out_of_order',
        p.amount_refunded < 0 or p.amount_refunded > p.refund_reserved or p.amount_refunded > p.amount_captured
          or p.refund_reserved - refunds.outside > p.amount_captured,
        format('refunded %s, reserved %s (of that %s outside), captured %s', p.amount_refunded, p.refund_reserved,
               refunds.outside, p.amount_captured)),
       ('refund_sums_differ',
        refunds.refunded <> p.amount_refunded or refunds.reserved <> p.refund_reserved,
        format('refunded and reserved: it says %s, %s, its refunds %s, %s', p.amount_refunded, p.refund_reserved,
               refunds.refunded, refunds.reserved))
     ) as v(invariant, broken, detail)
     where v.broken`;
}
