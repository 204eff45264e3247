import type postgres from "postgres";
import { expect } from "vitest";
import { newId } from "../../src/lib/ids.js";
import type { Lived } from "./doctor.js";
import type { BrokenCase } from "./doctor-money-cases.js";

const anything = expect.any(String) as string;

function insertKey(sql: postgres.Sql, { tenantId }: Lived, changes: Readonly<Record<string, unknown>>) {
  return sql`insert into idempotency_keys ${sql({
    tenant_id: tenantId,
    operation: "payments.capture",
    key: "by-hand",
    fingerprint: "v1:0",
    resource_id: "pay_gone",
    request_id: "req_1",
    state: "completed",
    response_status: 200,
    response_body: "{}",
    completed_at: new Date(),
    expires_at: new Date(Date.now() + 3_600_000),
    ...changes,
  })}`;
}

function insertEvent(sql: postgres.Sql, { tenantId }: Lived, changes: Readonly<Record<string, unknown>>) {
  return sql`insert into outbox ${sql({
    tenant_id: tenantId,
    id: newId("evt"),
    type: "webhook_endpoint.disabled",
    data: "{}",
    ...changes,
  })}`;
}

/** Deadlines, keys, fences and events, broken by hand. */
export const OPEN_CASES: readonly BrokenCase[] = [
  {
    breaks: "an authorized payment that nobody will look at",
    by: (sql, { lives }) =>
      sql`update attempts set state = 'completed', due_at = null where payment_id = ${lives.held}`,
    finds: ({ lives }) => [["payment_stuck", lives.held, { attempt_id: anything }]],
  },
  {
    breaks: "a capture that is kept as in flight for ever",
    by: (sql, { lives }) => sql`
      update payments p set open_effect = a.id from attempts a
       where p.id = ${lives.captured} and a.payment_id = p.id and a.kind = 'capture'`,
    finds: ({ lives }) => [["payment_stuck", lives.captured, { attempt_id: anything }]],
  },
  {
    breaks: "a declined payment whose object is never closed",
    by: (sql, { lives }) =>
      sql`update attempts set state = 'fencing', due_at = null where payment_id = ${lives.declined}`,
    finds: ({ lives }) => [["attempt_stuck", lives.declined, { attempt_id: anything }]],
  },
  {
    breaks: "a review that nobody is shown",
    by: (sql, { lives }) => sql`update payments set status = 'needs_review' where id = ${lives.action}`,
    finds: ({ lives }) => [
      ["review_missing", lives.action],
      ["status_without_fact", lives.action],
    ],
  },
  {
    breaks: "a refund's review that nobody is shown",
    by: (sql, { lives }) =>
      sql`update refunds set status = 'needs_review' where payment_id = ${lives.refunded} and amount = 500`,
    finds: ({ lives }) => [
      ["review_missing", lives.refunded, { attempt_id: anything, refund_id: anything }],
      ["refund_sums_differ", lives.refunded],
    ],
  },
  {
    breaks: "an attempt that no worker takes",
    by: (sql, { lives }) =>
      sql`update attempts set due_at = now() - interval '1 hour' where payment_id = ${lives.action}`,
    finds: ({ lives }) => [["attempt_overdue", lives.action, { attempt_id: anything }]],
  },
  {
    breaks: "an attempt that a dead worker left and nobody takes over",
    by: (sql, { lives }) => sql`
      update attempts set due_at = now() - interval '1 hour', lease_owner = 'dead',
             lease_expires_at = now() - interval '1 hour' where payment_id = ${lives.action}`,
    finds: ({ lives }) => [["lease_abandoned", lives.action, { attempt_id: anything }]],
  },
  {
    breaks: "an authorization that has ended",
    by: (sql, { lives }) =>
      sql`update payments set authorized_until = now() - interval '1 day' where id = ${lives.held}`,
    finds: ({ lives }) => [["authorization_past_end", lives.held]],
  },
  {
    breaks: "a delivery that nobody tries",
    by: (sql, { tenantId, lives }) => sql`
      insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at)
      values (${tenantId}, 'we_1', 'evt_1', ${lives.sale}, 1, 0, now() - interval '2 hours')`,
    finds: ({ lives }) => [["delivery_overdue", lives.sale, { endpoint_id: "we_1", event_id: "evt_1" }]],
  },
  {
    breaks: "an event that nobody relays",
    by: (sql, lived) => insertEvent(sql, lived, { created_at: new Date(Date.now() - 3_600_000) }),
    finds: () => [["event_not_relayed", null, { event_id: anything, type: "webhook_endpoint.disabled" }]],
  },
  {
    breaks: "a provider's event that nobody applies",
    by: (sql) => sql`
      insert into provider_events (provider, event_id, type, livemode, object_id, payload, due_at)
      values ('stripe', 'evt_theirs', 'charge.succeeded', false, 'pi_1', '{}', now() - interval '1 hour')`,
    finds: () => [
      [
        "provider_event_overdue",
        null,
        { provider: "stripe", provider_event_id: "evt_theirs", type: "charge.succeeded" },
      ],
    ],
  },
  {
    breaks: "an entry that nobody counts",
    by: async (sql, { lives }) => {
      await sql`update ledger_entries set created_at = now() - interval '1 hour' where payment_id = ${lives.sale}`;
      await sql`
        insert into ledger_uncounted select tenant_id, payment_id, fact, leg, currency, debit_account, credit_account,
               amount from ledger_entries where payment_id = ${lives.sale} and fact = 'captured'`;
    },
    finds: ({ lives }) => [["entry_not_counted", lives.sale, { fact: "captured", leg: "1" }]],
  },
  {
    breaks: "a recovery without an end",
    by: (sql) =>
      sql`update installation set recovering_since = now() - interval '2 hours', recovery_reason = 'said so'`,
    finds: () => [["recovery_running_long", null]],
  },
  {
    breaks: "comparisons that have ceased",
    by: (sql) => sql`update installation set created_at = now() - interval '3 days'`,
    finds: () => [["comparison_overdue", null]],
  },
  {
    breaks: "a key that stands for nothing",
    by: (sql, lived) => insertKey(sql, lived, {}),
    finds: () => [
      [
        "key_without_resource",
        null,
        { operation: "payments.capture", key: "by-hand", resource_id: "pay_gone" },
      ],
    ],
  },
  {
    breaks: "a key in progress without an attempt",
    by: (sql, lived) => {
      const open = { state: "in_progress", response_status: null, response_body: null };
      const changes = { ...open, completed_at: null, expires_at: null, resource_id: lived.lives.captured };
      return insertKey(sql, lived, changes);
    },
    finds: ({ lives }) => [
      [
        "key_left_open",
        lives.captured,
        { operation: "payments.capture", key: "by-hand", resource_id: lives.captured },
      ],
    ],
    onlyInAll: [0],
  },
  {
    breaks: "a key in progress whose attempt has ended",
    by: (sql, { lives }) => sql`
      update idempotency_keys set state = 'in_progress', completed_at = null, expires_at = null
       where resource_id = ${lives.sale}`,
    finds: ({ lives }) => [
      ["key_left_open", lives.sale, expect.objectContaining({ resource_id: lives.sale }) as never],
      ["key_left_open", lives.sale, expect.objectContaining({ attempt_id: anything }) as never],
    ],
    onlyInAll: [0],
  },
  {
    breaks: "a key that names another payment",
    by: (sql, { lives }) =>
      sql`update idempotency_keys set resource_id = ${lives.captured} where resource_id = ${lives.sale}`,
    finds: ({ lives }) => [["key_of_another", lives.sale]],
  },
  {
    breaks: "a key without its answer",
    by: (sql, { lives }) =>
      sql`update idempotency_keys set response_body = null where resource_id = ${lives.sale}`,
    finds: ({ lives }) => [["key_without_answer", lives.sale]],
  },
  {
    breaks: "a fence that is lower than what was written under it",
    by: (sql, { lives }) => sql`update attempts set fence = 0 where payment_id = ${lives.sale}`,
    finds: ({ lives }) => [["fence_went_back", lives.sale, { attempt_id: anything }]],
  },
  {
    breaks: "fences that grew, fell and grew again",
    by: async (sql, { lives }) => {
      await sql`
        insert into timeline (tenant_id, payment_id, id, at, kind, reason, attempt_id, fence)
        select tenant_id, payment_id, ${`tl_${"0".repeat(32)}`}, now() - interval '1 hour', 'send', 'by hand', id, 9
          from attempts where payment_id = ${lives.sale}`;
      await sql`update attempts set fence = 9 where payment_id = ${lives.sale}`;
    },
    finds: ({ lives }) => [["fence_went_back", lives.sale, { attempt_id: anything }]],
  },
  {
    breaks: "a success that no event tells of",
    by: (sql, { lives }) =>
      sql`delete from outbox where payment_id = ${lives.sale} and type = 'payment.succeeded'`,
    finds: ({ lives }) => [
      ["fact_without_event", lives.sale, { timeline_id: anything, type: "payment.succeeded" }],
    ],
  },
  {
    breaks: "two events of one transition",
    by: (sql, { lives }) => sql`
      insert into outbox select (o).* from (
        select json_populate_record(o, json_build_object('id', left(o.id, -4) || 'ffff')) as o from outbox o
         where payment_id = ${lives.sale} and type = 'payment.succeeded') copied`,
    finds: ({ lives }) => [
      ["fact_told_twice", lives.sale, { timeline_id: anything, type: "payment.succeeded" }],
    ],
  },
  {
    breaks: "an event that is told again later",
    by: (sql, lived) =>
      insertEvent(sql, lived, { payment_id: lived.lives.sale, type: "payment.succeeded", sequence: 2 }),
    finds: ({ lives }) => [
      ["fact_told_twice", lives.sale, { event_id: anything, type: "payment.succeeded" }],
    ],
  },
  {
    breaks: "a status that nothing has led to",
    by: (sql, { lives }) => sql`update payments set status = 'canceled' where id = ${lives.declined}`,
    finds: ({ lives }) => [["status_without_fact", lives.declined]],
  },
  {
    breaks: "an event of a payment that is gone",
    by: (sql, lived) => insertEvent(sql, lived, { payment_id: "pay_gone", type: "payment.succeeded" }),
    finds: () => [["payment_missing", "pay_gone", { event_id: anything, type: "payment.succeeded" }]],
  },
];

/** What looks odd and is none: by hand, as it comes about. */
export const ALLOWED_CASES: readonly Pick<BrokenCase, "breaks" | "by">[] = [
  {
    breaks: "events that were purged from the oldest on",
    by: (sql, { lives }) => sql`
      delete from outbox where id <= (select max(id) from outbox where payment_id = ${lives.partly})`,
  },
  {
    breaks: "an order that is paid twice, as a person has decided in a review",
    by: async (sql, { lives }) => {
      await sql`delete from order_ids where payment_id = ${lives.captured}`;
      await sql`update payments set merchant_order_id = 'life-sale', holds_order_id = false where id = ${lives.captured}`;
      const [timelineId, eventId] = [newId("tl"), newId("evt")];
      await sql`
        with decided as (
          insert into timeline (tenant_id, payment_id, id, kind, from_status, to_status, reason)
          select tenant_id, id, ${timelineId}, 'transition', 'needs_review', 'succeeded', 'adopt_provider_object'
            from payments where id = ${lives.captured}
        )
        insert into outbox (tenant_id, id, type, payment_id, sequence, data)
        select tenant_id, ${eventId}, 'payment.succeeded', id, version + 1, '{}' from payments where id = ${lives.captured}`;
    },
  },
  {
    breaks: "a refund made outside beside one of ours, which the provider will refuse",
    by: async (sql, { lives }) => {
      await sql`
        insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider, external)
        select tenant_id, ${newId("re")}, payment_id, attempt_id, 9000, currency, '{}', provider, true from refunds
         where payment_id = ${lives.refunded} limit 1`;
      await sql`update payments set refund_reserved = refund_reserved + 9000 where id = ${lives.refunded}`;
    },
  },
  {
    breaks: "an attempt that has been due for long, in the hands of a worker",
    by: (sql, { lives }) => sql`
      update attempts set due_at = now() - interval '1 hour', lease_owner = 'alive',
             lease_expires_at = now() + interval '1 minute' where payment_id = ${lives.action}`,
  },
  {
    breaks: "a lease that has just ended",
    by: (sql, { lives }) => sql`
      update attempts set due_at = now(), lease_owner = 'dead', lease_expires_at = now()
       where payment_id = ${lives.action}`,
  },
  {
    breaks: "a key that was purged and stands for something newer",
    by: (sql, { lives }) => sql`
      update idempotency_keys set resource_id = ${lives.captured}, created_at = now() + interval '1 second'
       where resource_id = ${lives.sale}`,
  },
  {
    breaks: "a database clock that was set back for a moment between two workers",
    by: async (sql, { lives }) => {
      await sql`
        insert into timeline (tenant_id, payment_id, id, at, kind, reason, attempt_id, fence)
        select t.tenant_id, t.payment_id, ${`tl_${"0".repeat(32)}`}, t.at - interval '2 seconds', 'send', 'by hand',
               t.attempt_id, t.fence + 1
          from timeline t where t.payment_id = ${lives.sale} and t.fence is not null order by t.at limit 1`;
      await sql`update attempts set fence = fence + 1 where payment_id = ${lives.sale}`;
    },
  },
];
