import { createHash } from "node:crypto";
import type postgres from "postgres";

/** Payments of many tenants, one every `stepMs`, each of them here and at the provider. */
export interface Crowd {
  readonly count: number;
  readonly tenants: number;
  readonly stepMs: number;
  /** Milliseconds since 1970. The n-th payment, from 1, is `n` steps later. */
  readonly startMs: number;
  readonly account: string;
}

export const CURRENCY = "usd";
export const REFUND_AMOUNT = 100;
export const DISPUTE_FEE = 1_500;
/** Of so many payments one has a refund, and of so many one has a dispute. */
const REFUND_EVERY = 20;
const DISPUTE_EVERY = 100;
const DISPUTED = 50;
/** The places of what was planted are told from multiples of this. */
const PLANTED_WITHIN = 100;
const PLACES = 3;

/** What was made to differ, by its distance from a place, and what the comparison must find of it. */
const PLANTED = {
  missing_here: { at: 1, object: "pi", state: "open" },
  missing_there: { at: 2, object: "pi", state: "open" },
  amount_differs: { at: 3, object: "pi", state: "open" },
  currency_differs: { at: 4, object: "pi", state: "open" },
  status_differs: { at: 5, object: "pi", state: "open" },
  fee_differs: { at: 6, object: "txn", state: "open" },
  orphaned_object: { at: 7, object: "pi_stray", state: "repaired" },
  refund_outside: { at: 8, object: "re", state: "repaired" },
  second_object: { at: 9, object: "pi_stray", state: "open" },
  refund_missing_here: { at: 20, object: "re", state: "open" },
  refund_missing_there: { at: 40, object: "re", state: "open" },
  refund_differs: { at: 60, object: "re", state: "open" },
  dispute_differs: { at: DISPUTED, object: "dp", state: "repaired" },
} as const;
export type PlantedKind = keyof typeof PLANTED;

/** The least that has room for all that is planted. */
export const LEAST_PAYMENTS = 1_000;

/** Numbers of the payments that this was planted at: near the window's end, in its middle, near its beginning. */
function placesOf({ count }: Crowd, kind: PlantedKind): number[] {
  const place = (at: number) =>
    Math.floor((count * (2 * at + 1)) / (2 * PLACES * PLANTED_WITHIN)) * PLANTED_WITHIN;
  return Array.from({ length: PLACES }, (_, at) => place(at) + PLANTED[kind].at);
}

export function kindAt(crowd: Crowd): ReadonlyMap<number, PlantedKind> {
  const kinds = Object.keys(PLANTED) as PlantedKind[];
  return new Map(kinds.flatMap((kind) => placesOf(crowd, kind).map((n) => [n, kind] as const)));
}

/** Every difference that there is, in words: `amount_differs pi_… open`. */
export function plantedWords(crowd: Crowd): string[] {
  return [...kindAt(crowd)]
    .map(([n, kind]) => `${kind} ${PLANTED[kind].object}_${uuidOf(crowd, n)} ${PLANTED[kind].state}`)
    .toSorted();
}

export function hasRefund(n: number): boolean {
  return n % REFUND_EVERY === 0;
}

export function hasDispute(n: number): boolean {
  return n % DISPUTE_EVERY === DISPUTED;
}

export function uuidOf({ startMs, stepMs }: Crowd, n: number): string {
  return (startMs + n * stepMs).toString(16).padStart(12, "0") + n.toString(16).padStart(20, "0");
}

export function attemptIdOf(uuid: string): string {
  return `att_${createHash("md5").update(uuid).digest("hex")}`;
}

export function tenantIdOf({ tenants }: Crowd, n: number): string {
  return `ten_${(n % tenants).toString(16).padStart(32, "0")}`;
}

export function amountOf(n: number): number {
  return 1_000 + (n % 9_000);
}

/** 2.9 % and 30, as the rows' statement counts it. */
export function feeOf(amount: number): number {
  return Math.floor((amount * 29 + 500) / 1_000) + 30;
}

/** The rows on our side, as the payments' outcomes wrote them, and with what was planted made to differ. */
export async function makeRows(sql: postgres.Sql, crowd: Crowd): Promise<void> {
  await sql.begin(async (tx) => {
    await fill(tx, crowd);
    await plant(tx, crowd);
  });
  await sql`vacuum analyze`;
}

async function fill(sql: postgres.TransactionSql, crowd: Crowd): Promise<void> {
  const { count, tenants, startMs, stepMs, account } = crowd;
  await sql`
    insert into tenants (id, name) select 'ten_' || lpad(to_hex(n), 32, '0'), 'tenant ' || n
      from generate_series(0, ${tenants}::int - 1) n`;
  await sql`
    create temporary table crowd on commit drop as
    select *, 'pay_' || uuid as payment_id, 'att_' || md5(uuid) as attempt_id,
           'ten_' || lpad(to_hex(n % ${tenants}::int), 32, '0') as tenant_id, 1000 + n % 9000 as amount,
           n % ${REFUND_EVERY}::int = 0 as refunded, n % ${DISPUTE_EVERY}::int = ${DISPUTED}::int as disputed
      from (select n, to_timestamp(ms / 1000.0) as at, lpad(to_hex(ms), 12, '0') || lpad(to_hex(n), 20, '0') as uuid
              from (select n, ${startMs}::bigint + n * ${stepMs}::bigint as ms
                      from generate_series(1, ${count}::int) n) counted) timed`;
  await sql`
    insert into payments (tenant_id, id, status, version, amount, currency, capture_method, payment_method, attempt_id,
      holds_order_id, metadata, provider, amount_captured, amount_refunded, refund_reserved, disputes, livemode,
      created_at, updated_at)
    select tenant_id, payment_id, 'succeeded', 2, amount, ${CURRENCY}, 'automatic', 'pm_card_visa', attempt_id, false,
           '{}', 'stripe', amount, case when refunded then ${REFUND_AMOUNT}::int else 0 end,
           case when refunded then ${REFUND_AMOUNT}::int else 0 end,
           case when disputed then json_build_array(json_build_object('id', 'dp_' || uuid, 'status', 'open',
             'amount', amount, 'currency', ${CURRENCY}::text, 'reason', 'fraudulent', 'opened_at', at, 'read_at', at,
             'movements', json_build_array(json_build_object('transactionId', 'txn_dp_' || uuid, 'amount', -amount,
               'currency', ${CURRENCY}::text, 'fee', ${DISPUTE_FEE}::int)))) end, false, at, at from crowd`;
  await sql`
    insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, state, fence, due_at,
      provider, provider_account, livemode, parameters, provider_payment_id, created_at)
    select tenant_id, attempt_id, payment_id, 'payments.create', uuid, 1, 'req_1', 'completed', 1, null, 'stripe',
           ${account}, false, '{}', 'pi_' || uuid, at from crowd`;
  await sql`
    insert into ledger_entries (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
    select tenant_id, payment_id, 'captured', 1, ${CURRENCY}, 'provider_balance', 'sales', amount from crowd
    union all
    select tenant_id, payment_id, 'fee:txn_' || uuid, 1, ${CURRENCY}, 'provider_fees', 'provider_balance',
           (amount * 29 + 500) / 1000 + 30 from crowd`;
  await sql`
    insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
      refund_id, state, fence, due_at, provider, provider_account, livemode, parameters, provider_payment_id, created_at)
    select tenant_id, 'att_' || md5('re_' || uuid), payment_id, 'refund', 'refunds.create', 're_' || uuid, 1, 'req_1',
           ${REFUND_AMOUNT}::int, 're_' || uuid, 'completed', 1, null, 'stripe', ${account}, false, '{}',
           'pi_' || uuid, at from crowd where refunded`;
  await sql`
    insert into refunds (tenant_id, id, payment_id, attempt_id, status, amount, currency, metadata, provider,
      provider_refund_id, created_at, updated_at)
    select tenant_id, 're_' || uuid, payment_id, 'att_' || md5('re_' || uuid), 'succeeded', ${REFUND_AMOUNT}::int,
           ${CURRENCY}, '{}', 'stripe', 're_' || uuid, at, at from crowd where refunded`;
}

/** What differs on our side; what differs at the provider is left out or added where its objects are written. */
async function plant(sql: postgres.TransactionSql, crowd: Crowd): Promise<void> {
  const ids = (prefix: string, kind: PlantedKind) =>
    sql(placesOf(crowd, kind).map((n) => `${prefix}_${uuidOf(crowd, n)}`));
  for (const table of ["ledger_entries", "attempts"]) {
    await sql`delete from ${sql(table)} where payment_id in ${ids("pay", "missing_here")}`;
  }
  await sql`delete from payments where id in ${ids("pay", "missing_here")}`;
  await sql`
    update payments set amount = amount + 1, amount_captured = amount_captured + 1
     where id in ${ids("pay", "amount_differs")}`;
  await sql`update payments set currency = 'eur' where id in ${ids("pay", "currency_differs")}`;
  await sql`
    update payments set status = 'authorized', amount_capturable = amount, amount_captured = 0
     where id in ${ids("pay", "status_differs")}`;
  await sql`
    update ledger_entries set amount = amount + 1
     where payment_id in ${ids("pay", "fee_differs")} and fact like 'fee:%'`;
  await sql`delete from attempts where refund_id in ${ids("re", "refund_missing_here")}`;
  await sql`delete from refunds where id in ${ids("re", "refund_missing_here")}`;
  await sql`update refunds set amount = amount + 1 where id in ${ids("re", "refund_differs")}`;
  await sql`update payments set disputes = null where id in ${ids("pay", "dispute_differs")}`;
}
