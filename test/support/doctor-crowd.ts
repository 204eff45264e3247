import type postgres from "postgres";

/**
 * Makes `count` paid payments of the tenant with all their rows, one every `stepMs`, the last of them `agoMs` ago. As the
 * accept and the outcome write them: whole, and with nothing left to do save, where
 * `waits`, for every 50th, which waits for its customer.
 */
export async function makeCrowd(
  sql: postgres.Sql,
  crowd: {
    readonly tenantId: string;
    readonly count: number;
    readonly stepMs: number;
    readonly agoMs: number;
    readonly waits: boolean;
  },
): Promise<void> {
  const { tenantId, count, stepMs, agoMs } = crowd;
  const name = `${agoMs}`;
  await sql`
    create temporary table crowd as
    select *, 'pay_' || uuid as payment_id, 'att_' || md5(uuid) as attempt_id, ${crowd.waits}::boolean and n % 50 = 0 as waits
      from (select n, at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || lpad(to_hex(n), 20, '0') as uuid
              from (select n, now() - (${agoMs}::float8 + (${count}::int - n) * ${stepMs}::float8)
                              * interval '1 millisecond' as at from generate_series(1, ${count}::int) n) timed) named`;
  await sql`
    insert into payments (tenant_id, id, status, version, amount, currency, capture_method, payment_method, attempt_id,
      merchant_order_id, holds_order_id, metadata, provider, amount_captured, livemode, created_at)
    select ${tenantId}, payment_id, case when waits then 'requires_action' else 'succeeded' end::payment_status, 2, 4200,
           'usd', 'automatic', 'pm_card_visa', attempt_id, ${name} || '-order-' || n, true, '{}', 'stripe',
           case when waits then 0 else 4200 end, false, at from crowd`;
  await sql`
    insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, state, fence, due_at,
      provider, provider_account, livemode, parameters, provider_payment_id, created_at)
    select ${tenantId}, attempt_id, payment_id, 'payments.create', ${name} || '-key-' || n, 1, 'req_1',
           case when waits then 'following' else 'completed' end::attempt_state, 1,
           case when waits then now() + interval '5 minutes' end, 'stripe', 'acct_1', false, '{}', 'pi_' || uuid, at
      from crowd`;
  await sql`
    insert into idempotency_keys (tenant_id, operation, key, fingerprint, state, resource_id, request_id,
      response_status, response_body, created_at, completed_at, expires_at)
    select ${tenantId}, 'payments.create', ${name} || '-key-' || n, 'v1:0', 'completed', payment_id, 'req_1', 201, '{}', at, at,
           at + interval '7 days' from crowd`;
  await sql`
    insert into order_ids select ${tenantId}, ${name} || '-order-' || n, payment_id from crowd`;
  await sql`
    insert into timeline (tenant_id, payment_id, id, at, kind, from_status, to_status, reason, attempt_id, fence)
    select ${tenantId}, payment_id, 'tl_' || uuid, at, 'transition', null, 'processing', 'accepted', attempt_id, null from crowd
    union all
    select ${tenantId}, payment_id, 'tl_' || left(uuid, 12) || 'f' || right(uuid, 19), at + interval '1 microsecond', 'transition',
           'processing', case when waits then 'requires_action' else 'succeeded' end, 'by hand', attempt_id, 1 from crowd`;
  await sql`
    insert into outbox (tenant_id, id, type, payment_id, sequence, data, created_at, relayed_at)
    select ${tenantId}, 'evt_' || uuid, 'payment.created', payment_id, 1, '{}'::json, at, at from crowd
    union all
    select ${tenantId}, 'evt_' || left(uuid, 12) || 'f' || right(uuid, 19),
           case when waits then 'payment.requires_action' else 'payment.succeeded' end, payment_id, 2, '{}'::json,
           at + interval '1 microsecond', at from crowd`;
  await sql`
    insert into ledger_entries
    select ${tenantId}, payment_id, 'captured', 1, 'usd', 'provider_balance', 'sales', 4200, at from crowd where not waits`;
  await sql`
    insert into refunds (tenant_id, id, payment_id, attempt_id, status, amount, currency, metadata, provider)
    select ${tenantId}, 're_' || uuid, payment_id, attempt_id, 'failed', 4200, 'usd', '{}', 'stripe' from crowd
     where n % 10 = 0`;
  await sql`drop table crowd`;
}

/** Rows that this connection's statements have read of each table so far, by whatever way. */
export async function rowsRead(sql: postgres.Sql): Promise<ReadonlyMap<string, number>> {
  await sql`select pg_stat_force_next_flush()`;
  const rows = await sql<{ relname: string; read: number }[]>`
    select relname, (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_user_tables`;
  return new Map(rows.map(({ relname, read }) => [relname, read]));
}
