-- As 0001: what the planner is to believe of tables that are still empty.
--
-- attempts and outbox are among them again, since CREATE INDEX counts a table's rows anew: after 0002 an empty table was
-- believed to stay empty, its whole primary key was read for every accept, and accepts fell to a tenth. Whoever adds an
-- index to one of these tables must end the migration like this one. The seeds are of a tenant that nobody can have.
alter table refunds alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table deliveries alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table webhook_endpoints alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table ledger_entries alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table ledger_uncounted alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table ledger_balances alter column tenant_id set (n_distinct = 1), alter column tenant_id set statistics 1;--> statement-breakpoint
alter table provider_events alter column provider set (n_distinct = 1), alter column provider set statistics 1;--> statement-breakpoint
insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id, holds_order_id, metadata,
    provider, livemode)
  select 'ten_seed', 'pay_seed_' || n, n, 'usd', 'automatic', 'pm', 'att_' || n, false, '{}', 'none', false
    from generate_series(1, 1000) n;--> statement-breakpoint
insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, due_at, provider, livemode,
    parameters, provider_payment_id)
  select 'ten_seed', 'att_seed_' || n, 'pay_seed_' || n, 'none', 'key-' || n, 1, 'req_' || n,
         case when n % 20 = 0 then now() end, 'none', false, '{}', 'pi_' || n
    from generate_series(1, 1000) n;--> statement-breakpoint
insert into outbox (tenant_id, id, type, payment_id, data, relayed_at)
  select 'ten_seed', 'evt_seed_' || n, 'none', 'pay_seed_' || n, '{}', case when n % 20 <> 0 then now() end
    from generate_series(1, 1000) n;--> statement-breakpoint
insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider)
  select 'ten_seed', 're_' || n, 'pay_seed_' || n, 'att_' || n, n, 'usd', '{}', 'none' from generate_series(1, 1000) n;--> statement-breakpoint
insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at, state)
  select 'ten_' || n % 10, 'we_' || n % 20, 'evt_' || n, 'pay_' || n, 1, 0, case when n % 20 = 0 then now() end,
         case when n % 20 = 0 then 'pending' else 'delivered' end::delivery_state
    from generate_series(1, 1000) n;--> statement-breakpoint
insert into webhook_endpoints (tenant_id, id, url, secret)
  select 'ten_' || n % 10, 'we_' || n, 'none', 'none' from generate_series(1, 1000) n;--> statement-breakpoint
insert into ledger_entries (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
  select 'ten_' || n % 10, 'pay_' || n / 2, 'fact-' || n, 1, 'usd', 'one', 'other', n from generate_series(1, 1000) n;--> statement-breakpoint
insert into ledger_uncounted (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
  select 'ten_' || n % 10, 'pay_' || n / 2, 'fact-' || n, 1, 'usd', 'one', 'other', n from generate_series(1, 1000) n;--> statement-breakpoint
insert into ledger_balances (tenant_id, currency, account, debits, credits)
  select 'ten_' || n % 10, 'usd', 'account-' || n, 1, 0 from generate_series(1, 1000) n;--> statement-breakpoint
insert into provider_events (provider, event_id, type, livemode, object_id, payload, due_at, state)
  select 'none', 'evt_' || n, 'none', false, 'none', '{}', case when n % 20 = 0 then now() end,
         case when n % 20 = 0 then 'pending' else 'applied' end::provider_event_state
    from generate_series(1, 1000) n;--> statement-breakpoint
analyze payments, attempts, outbox, refunds, deliveries, webhook_endpoints, ledger_entries, ledger_uncounted, ledger_balances, provider_events;--> statement-breakpoint
do $$
begin
  -- Emptied by DELETE and then vacuumed, a table counts as one that stays empty; a truncated one as one of which nothing
  -- is known yet, and its statistics hold. Where there is data already, the next ANALYZE tells.
  if exists (select from tenants) then
    delete from attempts where tenant_id = 'ten_seed';
    delete from outbox where tenant_id = 'ten_seed';
    delete from refunds where tenant_id = 'ten_seed';
    delete from payments where tenant_id = 'ten_seed';
  else
    truncate idempotency_keys, payments, attempts, order_ids, timeline, outbox, reviews, refunds;
  end if;
end $$;--> statement-breakpoint
truncate deliveries, webhook_endpoints, ledger_entries, ledger_uncounted, ledger_balances, provider_events;
