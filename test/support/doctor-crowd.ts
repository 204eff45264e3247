import postgres from "postgres";

/** `paid`: every payment. `mixed`: of 50, one waits, one is held, one failed, one is in review, five are partly refunded. */
export type Lives = "paid" | "mixed";

export interface Crowd {
  readonly tenantId: string;
  readonly count: number;
  readonly stepMs: number;
  readonly agoMs: number;
  readonly lives: Lives;
  /** Numbers of payments begin behind it: no two crowds of a database may share any. By default told by the time. */
  readonly firstNumber?: number;
}

/** For whoever looks at a crowd of mixed lives: it is made in hours, and what is open in it is due days after. */
export const CROWD_WAITS = { FOLLOW_MOST_MS: "259200000", WEBHOOK_RETRY_SCHEDULE_MS: "259200000" };

/** As superuser, on the one connection that temporary tables need; no foreign key is looked up or in the way. */
export function connectAdmin(url: string, settings: Readonly<Record<string, string>> = {}): postgres.Sql {
  const connection = { session_replication_role: "replica", ...settings };
  return postgres(url, { max: 1, onnotice: () => undefined, connection });
}

/** Milliseconds of a time, as the ids that are made then begin. */
const HEX_MS = (at: string) => `lpad(to_hex(floor(extract(epoch from ${at}) * 1000)::bigint), 12, '0')`;
const REFUND = 1_000;

/**
 * Makes `count` payments of the tenant with all their rows, one every `stepMs`, the last of them `agoMs` ago. As the
 * accept and the outcome write them: whole, with nothing overdue, and counted into the balances.
 */
export async function makeCrowd(sql: postgres.Sql, crowd: Crowd): Promise<void> {
  await sql`create temporary table crowd as ${named(sql, crowd)}`;
  await makePayments(sql, crowd.tenantId);
  await makeHistory(sql, crowd.tenantId);
  await postEntries(sql, crowd.tenantId);
  await sql`
    insert into refunds (tenant_id, id, payment_id, attempt_id, status, amount, currency, metadata, provider)
    select ${crowd.tenantId}, 're_' || uuid, payment_id, attempt_id, 'failed', 4200, 'usd', '{}', 'stripe' from crowd
     where n % 10 = 0 and life = 'paid'`;
  await sql`
    create temporary table returned as
    select n, payment_id, attempt_id, object_id, at + interval '950 milliseconds' as at from crowd where life = 'refunded'`;
  await makeRefunds(sql, crowd.tenantId);
  await sql`drop table crowd`;
}

/** Refunds `count` of the tenant's oldest paid payments at this moment: what is old and moves. */
export async function moveOldest(sql: postgres.Sql, tenantId: string, count: number): Promise<void> {
  await sql`
    create temporary table returned as
    select row_number() over () as n, payment_id, attempt_id, object_id, clock_timestamp() as at
      from (select p.id as payment_id, p.attempt_id, a.provider_payment_id as object_id
              from payments p join attempts a on a.tenant_id = p.tenant_id and a.id = p.attempt_id
             where p.tenant_id = ${tenantId} and p.status = 'succeeded' and p.refund_reserved = 0
             order by p.id limit ${count}) oldest`;
  await makeRefunds(sql, tenantId);
}

function named(sql: postgres.Sql, { tenantId, count, stepMs, agoMs, lives, firstNumber }: Crowd) {
  const first = firstNumber ?? agoMs;
  return sql`
    select n, at, life, 'pay_' || uuid as payment_id, 'att_' || md5(uuid || ${tenantId}) as attempt_id,
           'pi_' || left(md5(${tenantId} || uuid), 24) as object_id, uuid, 'order-' || n as order_id, md5('key-' || n) as key,
           case life when 'waiting' then 'requires_action' when 'held' then 'authorized' when 'failed' then 'failed'
                     when 'in_review' then 'needs_review' else 'succeeded' end as status,
           case when life in ('waiting', 'held', 'in_review') then now() + interval '1 day' + n % 1000 * interval '1 minute'
           end as due_at, at + interval '900 milliseconds' as ended,
           ${sql.unsafe(HEX_MS("at + interval '900 milliseconds'"))} || right(uuid, 20) as ended_uuid
      from (select *, ${sql.unsafe(HEX_MS("at"))} || lpad(to_hex(n), 20, '0') as uuid,
                   case when ${lives} = 'paid' then 'paid' when n % 50 = 0 then 'waiting' when n % 50 = 1 then 'held'
                        when n % 50 = 2 then 'failed' when n % 50 = 3 then 'in_review'
                        when n % 10 = 4 then 'refunded' else 'paid' end as life
              from (select ${first}::bigint + i as n,
                           now() - (${agoMs}::float8 + (${count}::int - i) * ${stepMs}::float8) * interval '1 millisecond' as at
                      from generate_series(1, ${count}::int) i) timed) lived`;
}

async function makePayments(sql: postgres.Sql, tenantId: string): Promise<void> {
  await sql`
    insert into payments (tenant_id, id, status, version, amount, currency, capture_method, payment_method, attempt_id,
      merchant_order_id, holds_order_id, metadata, provider, amount_captured, amount_capturable, authorized_until, livemode,
      created_at, updated_at)
    select ${tenantId}, payment_id, status::payment_status, 2, 4200, 'usd',
           case when life = 'held' then 'manual' else 'automatic' end, 'pm_card_visa', attempt_id, order_id,
           life <> 'failed', '{}', 'stripe', case when status = 'succeeded' then 4200 else 0 end,
           case when life = 'held' then 4200 else 0 end, case when life = 'held' then now() + interval '7 days' end,
           false, at, at from crowd`;
  await sql`
    insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, state, fence, due_at,
      provider, provider_account, livemode, parameters, provider_payment_id, created_at)
    select ${tenantId}, attempt_id, payment_id, 'payments.create', key, 1, 'req_1',
           case when due_at is null then 'completed' else 'following' end::attempt_state, 1, due_at, 'stripe', 'acct_1',
           false, '{}', object_id, at from crowd`;
  await sql`
    insert into idempotency_keys (tenant_id, operation, key, fingerprint, state, resource_id, request_id,
      response_status, response_body, created_at, completed_at, expires_at)
    select ${tenantId}, 'payments.create', key, 'v1:0', 'completed', payment_id, 'req_1', 201, '{}', at, at,
           at + interval '7 days' from crowd`;
  await sql`
    insert into order_ids select ${tenantId}, order_id, payment_id from crowd where life <> 'failed'`;
  await sql`
    insert into reviews (tenant_id, id, payment_id, attempt_id, reason, opened_at)
    select ${tenantId}, 'rev_' || uuid, payment_id, attempt_id, 'unresolved', at from crowd where life = 'in_review'`;
}

/** Accepted, sent, and ended 0.9 s after; each transition with its event, of the same time. */
async function makeHistory(sql: postgres.Sql, tenantId: string): Promise<void> {
  await sql`
    insert into timeline (tenant_id, payment_id, id, at, kind, from_status, to_status, reason, attempt_id, call, fence)
    select ${tenantId}, payment_id, 'tl_' || uuid, at, 'transition', null, 'processing', 'accepted', attempt_id, null, null
      from crowd
    union all
    select ${tenantId}, payment_id, 'tl_' || left(uuid, 12) || 'f' || right(uuid, 19), at + interval '1 millisecond', 'send',
           null, null, 'sent', attempt_id, 'payment_intents.create', 1 from crowd
    union all
    select ${tenantId}, payment_id, 'tl_' || ended_uuid, ended, 'transition', 'processing', status, 'answered', attempt_id,
           null, 1 from crowd`;
  await sql`
    insert into outbox (tenant_id, id, type, payment_id, sequence, data, created_at, relayed_at)
    select ${tenantId}, 'evt_' || uuid, 'payment.created', payment_id, 1, '{}'::json, at, at from crowd
    union all
    select ${tenantId}, 'evt_' || ended_uuid, 'payment.' || status, payment_id, 2, '{}'::json, ended, ended from crowd`;
}

async function postEntries(sql: postgres.Sql, tenantId: string): Promise<void> {
  await sql`
    with posted as (
      insert into ledger_entries
      select ${tenantId}, payment_id, 'captured', 1, 'usd', 'provider_balance', 'sales', 4200, ended from crowd
       where status = 'succeeded'
      union all
      select ${tenantId}, payment_id, 'authorized-2', 1, 'usd', 'authorized', 'authorized_contra', 4200, ended from crowd
       where life = 'held'
      returning debit_account, credit_account, amount)
    ${counted(sql, tenantId)}`;
}

/** For a CTE `posted (debit_account, credit_account, amount)`. */
function counted(sql: postgres.Sql, tenantId: string) {
  return sql`
    insert into ledger_balances as b (tenant_id, currency, account, debits, credits)
    select ${tenantId}, 'usd', account, sum(debits), sum(credits) from (
      select debit_account as account, amount as debits, 0 as credits from posted
      union all select credit_account, 0, amount from posted) sides group by account
    on conflict (tenant_id, currency, account) do update set debits = b.debits + excluded.debits,
      credits = b.credits + excluded.credits`;
}

/** Of the temporary table `returned`: an accepted refund that succeeded 30 ms after, with an attempt and key of its own. */
async function makeRefunds(sql: postgres.Sql, tenantId: string): Promise<void> {
  await sql`
    create temporary table refunded as
    select *, ${sql.unsafe(HEX_MS("at"))} || right(payment_id, 20) as uuid, at + interval '30 milliseconds' as ended,
           ${sql.unsafe(HEX_MS("at + interval '30 milliseconds'"))} || right(payment_id, 20) as ended_uuid,
           'att_' || md5('refund' || payment_id) as own_id, md5('refund-key' || payment_id) as key from returned`;
  await sql`
    insert into refunds (tenant_id, id, payment_id, attempt_id, status, amount, currency, metadata, provider, created_at)
    select ${tenantId}, 're_' || uuid, payment_id, own_id, 'succeeded', ${REFUND}, 'usd', '{}', 'stripe', at from refunded`;
  await sql`
    update payments p set amount_refunded = ${REFUND}, refund_reserved = ${REFUND}, version = 3 from refunded r
     where p.tenant_id = ${tenantId} and p.id = r.payment_id`;
  await sql`
    insert into attempts (tenant_id, id, payment_id, kind, refund_id, amount, operation, idempotency_key, run, request_id,
      state, fence, due_at, provider, livemode, parameters, provider_payment_id, created_at)
    select ${tenantId}, own_id, payment_id, 'refund', 're_' || uuid, ${REFUND}, 'refunds.create', key, 1, 'req_1',
           'completed', 1, null, 'stripe', false, '{}', object_id, at from refunded`;
  await sql`
    insert into idempotency_keys (tenant_id, operation, key, fingerprint, state, resource_id, request_id,
      response_status, response_body, created_at, completed_at, expires_at)
    select ${tenantId}, 'refunds.create', key, 'v1:0', 'completed', 're_' || uuid, 'req_1', 201, '{}', at, ended,
           ended + interval '7 days' from refunded`;
  const steps = sql`(values (uuid, at, null, 'processing', 'created', null::bigint),
    (ended_uuid, ended, 'processing', 'succeeded', 'succeeded', 1)) as steps(step_id, step_at, was, is_now, told, fence)`;
  await sql`
    insert into timeline (tenant_id, payment_id, refund_id, id, at, kind, from_status, to_status, reason, attempt_id, fence)
    select ${tenantId}, payment_id, 're_' || uuid, 'tl_' || step_id, step_at, 'transition', was, is_now, 'answered', own_id, fence
      from refunded cross join lateral ${steps}`;
  await sql`
    insert into outbox (tenant_id, id, type, payment_id, sequence, data, created_at, relayed_at)
    select ${tenantId}, 'evt_' || step_id, 'refund.' || told, payment_id, 3, '{}'::json, step_at, step_at
      from refunded cross join lateral ${steps}`;
  await sql`
    with posted as (
      insert into ledger_entries
      select ${tenantId}, payment_id, 'refunded-' || uuid, 1, 'usd', 'refunds', 'provider_balance', ${REFUND}, ended from refunded
      returning debit_account, credit_account, amount)
    ${counted(sql, tenantId)}`;
  await sql`drop table returned, refunded`;
}

/** Rows that this connection's statements have read of each table so far, by whatever way. */
export async function rowsRead(sql: postgres.Sql): Promise<ReadonlyMap<string, number>> {
  await sql`select pg_stat_force_next_flush()`;
  const rows = await sql<{ relname: string; read: number }[]>`
    select relname, (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_user_tables`;
  return new Map(rows.map(({ relname, read }) => [relname, read]));
}
