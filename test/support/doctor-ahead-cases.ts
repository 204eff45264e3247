import type postgres from "postgres";
import { expect } from "vitest";
import type { BrokenCase } from "./doctor-money-cases.js";

const anything = expect.any(String) as string;

/** Of a payment that is not there; with a key that nobody has kept. */
function insertAttempt(sql: postgres.Sql, kind: "charge" | "capture", state: "following" | "completed") {
  return sql`
    insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, state, due_at,
      provider, livemode, parameters, provider_payment_id)
    select tenant_id, 'att_other', 'pay_gone', ${kind}::attempt_kind, operation, 'other', 1, request_id, ${state}::attempt_state,
           case when ${state} = 'completed' then null else now() + interval '1 minute' end, provider, livemode,
           parameters, 'pi_other' from attempts order by id limit 1`;
}

/** What nobody will ever come to: due years ahead, of a payment that is gone, or counted and never posted. */
export const AHEAD_CASES: readonly BrokenCase[] = [
  {
    breaks: "an attempt that is due when nobody lives any more, as a clock that ran ahead has left it",
    by: (sql, { lives }) =>
      sql`update attempts set due_at = now() + interval '10 years' where payment_id = ${lives.action}`,
    finds: ({ lives }) => [["attempt_due_too_late", lives.action, { attempt_id: anything }]],
  },
  {
    breaks: "an attempt under a lease that hardly ends",
    by: (sql, { lives }) => sql`
      update attempts set lease_owner = 'dead', lease_expires_at = now() + interval '10 years'
       where payment_id = ${lives.action}`,
    finds: ({ lives }) => [["attempt_due_too_late", lives.action, { attempt_id: anything }]],
  },
  {
    breaks: "an open attempt of a payment that is gone",
    by: (sql) => insertAttempt(sql, "charge", "following"),
    finds: () => [["payment_missing", "pay_gone", { attempt_id: "att_other" }]],
  },
  {
    breaks: "an attempt that has ended, of a payment that is gone",
    by: (sql) => insertAttempt(sql, "capture", "completed"),
    finds: () => [["payment_missing", "pay_gone", { attempt_id: "att_other" }]],
    onlyInAll: [0],
  },
  {
    breaks: "a delivery that is due when nobody lives any more",
    by: (sql, { tenantId, lives }) => sql`
      insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at)
      values (${tenantId}, 'we_1', 'evt_1', ${lives.sale}, 1, 0, now() + interval '10 years')`,
    finds: ({ lives }) => [["delivery_due_too_late", lives.sale, { endpoint_id: "we_1", event_id: "evt_1" }]],
  },
  {
    breaks: "a provider's event that is due when nobody lives any more",
    by: (sql) => sql`
      insert into provider_events (provider, event_id, type, livemode, object_id, payload, due_at)
      values ('stripe', 'evt_theirs', 'charge.succeeded', false, 'pi_1', '{}', now() + interval '10 years')`,
    finds: () => [["provider_event_due_too_late", null, expect.anything() as never]],
  },
  {
    breaks: "what is to be counted and no entry says",
    by: (sql, { lives }) => sql`
      insert into ledger_uncounted select tenant_id, payment_id, fact, leg + 7, currency, debit_account, credit_account,
             amount from ledger_entries where payment_id = ${lives.sale} and fact = 'captured'`,
    finds: ({ lives }) => [["uncounted_without_entry", lives.sale, { fact: "captured", leg: "8" }]],
  },
  {
    breaks: "what is to be counted and its entry says otherwise",
    by: (sql, { lives }) => sql`
      insert into ledger_uncounted select tenant_id, payment_id, fact, leg, currency, debit_account, credit_account,
             amount + 1 from ledger_entries where payment_id = ${lives.sale} and fact = 'captured'`,
    finds: ({ lives }) => [["uncounted_without_entry", lives.sale, { fact: "captured", leg: "1" }]],
  },
  {
    breaks: "comparisons that have ceased behind a lease that hardly ends",
    by: async (sql) => {
      await sql`update installation set created_at = now() - interval '3 days'`;
      await sql`
        insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, phase, lease_expires_at)
        values ('stripe', 'run_ahead', 'acct_1', 'worker', now(), now(), 'charges', now() + interval '10 years')`;
    },
    finds: () => [["comparison_overdue", null]],
  },
];
