import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type postgres from "postgres";
import type { LoggedRequest, PaymentIntentRecord, SandboxControl } from "../../src/sandbox/index.js";

export interface PaymentRow {
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  readonly capture_method: string;
  readonly attempt_id: string;
  readonly merchant_order_id: string | null;
  readonly amount_captured: string;
  readonly amount_capturable: string;
  readonly amount_refunded: string;
  readonly refund_reserved: string;
}

export interface AttemptRow {
  readonly id: string;
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly kind: string;
  readonly operation: string;
  readonly idempotency_key: string;
  readonly provider_payment_id: string | null;
}

export interface RefundRow {
  readonly id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly status: string;
  readonly amount: string;
  readonly provider_refund_id: string | null;
}

export interface KeyRow {
  readonly operation: string;
  readonly key: string;
  readonly state: string;
  readonly resource_id: string;
}

export interface TransitionRow {
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly from_status: string | null;
  readonly to_status: string;
}

export interface OutboxRow {
  readonly id: string;
  readonly type: string;
  readonly payment_id: string | null;
  readonly data: { readonly id?: string };
}

/** What a worker wrote down of one send; without a key and a time where another one found it under way. */
export interface SendRow {
  readonly attempt_id: string;
  readonly provider_key: string | null;
  readonly outcome: string | null;
  readonly sent_at: Date | null;
  readonly at: Date;
}

/** Of one payment in one account: debits less credits. */
export interface BalanceRow {
  readonly payment_id: string;
  readonly account: string;
  readonly balance: string;
}

/** Everything that there is when all has come to rest: our rows, and what the provider has. */
export interface Snapshot {
  readonly payments: readonly PaymentRow[];
  readonly attempts: readonly AttemptRow[];
  readonly refunds: readonly RefundRow[];
  readonly keys: readonly KeyRow[];
  /** In the order in which they were written. */
  readonly transitions: readonly TransitionRow[];
  /** In the order of each payment's facts. */
  readonly outbox: readonly OutboxRow[];
  readonly balances: readonly BalanceRow[];
  readonly reviews: readonly {
    readonly payment_id: string;
    readonly attempt_id: string;
    readonly reason: string;
  }[];
  readonly deliveries: readonly { readonly event_id: string; readonly state: string }[];
  readonly parked: readonly {
    readonly event_id: string;
    readonly type: string;
    readonly outcome: string | null;
  }[];
  readonly sends: readonly SendRow[];
  readonly longestPaymentMs: number;
  readonly objects: readonly PaymentIntentRecord[];
  /** Provider keys whose first result, kept for ever, is a failure of the provider's own. */
  readonly spentKeys: ReadonlySet<string>;
  /** Of each life of the sandbox. */
  readonly logs: readonly (readonly LoggedRequest[])[];
}

export async function takeSnapshot(
  sql: postgres.Sql,
  control: SandboxControl,
  logs: Snapshot["logs"],
): Promise<Snapshot> {
  const [objects, keys] = [await control.listPaymentIntents(), await control.listIdempotencyKeys()];
  const rows = await sql.begin("isolation level repeatable read read only", async (tx) => ({
    payments: await tx<PaymentRow[]>`select * from payments order by id`,
    attempts: await tx<AttemptRow[]>`select * from attempts order by id`,
    refunds: await tx<RefundRow[]>`select * from refunds order by id`,
    keys: await tx<KeyRow[]>`select operation, key, state, resource_id from idempotency_keys`,
    transitions: await tx<TransitionRow[]>`
      select * from timeline where kind = 'transition' order by payment_id, id`,
    outbox: await tx<OutboxRow[]>`select * from outbox order by payment_id, sequence, ordinal`,
    balances: await tx<BalanceRow[]>`
      select payment_id, account, sum(amount) as balance from (
        select payment_id, debit_account as account, amount from ledger_entries
        union all select payment_id, credit_account, -amount from ledger_entries) as sides
       group by payment_id, account having sum(amount) <> 0 order by account`,
    reviews: await tx<Snapshot["reviews"][number][]>`select * from reviews where closed_at is null`,
    deliveries: await tx<Snapshot["deliveries"][number][]>`select event_id, state from deliveries`,
    parked: await tx<Snapshot["parked"][number][]>`select * from provider_events where state = 'parked'`,
    sends: await tx<SendRow[]>`
      select attempt_id, provider_key, outcome, sent_at, at from timeline
       where provider_key is not null or outcome = 'unknown: worker_lost' order by sent_at`,
  }));
  const [longest] = await sql<{ ms: number }[]>`
    select coalesce(max(extract(epoch from t.at - p.created_at)) * 1000, 0)::int as ms
      from timeline t join payments p on p.tenant_id = t.tenant_id and p.id = t.payment_id
     where t.kind = 'transition' and t.refund_id is null and t.from_status = 'processing'`;
  const spent = keys.filter(({ status }) => status !== null && status >= 500).map(({ key }) => key);
  return { ...rows, longestPaymentMs: longest?.ms ?? 0, objects, spentKeys: new Set(spent), logs };
}

/** What a fault is looked into with, once the database is gone: every row of these tables, and what the provider was sent. */
const EVIDENCE = [
  ...["payments", "attempts", "refunds", "idempotency_keys", "timeline", "outbox", "deliveries"],
  ...["provider_events", "ledger_entries", "reviews", "reconciliation_findings"],
];

export async function keepEvidence(folder: string, sql: postgres.Sql, logs: Snapshot["logs"]): Promise<void> {
  const write = (name: string, content: unknown) =>
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(content, null, 1));
  for (const table of EVIDENCE) write(table, await sql`select * from ${sql(table)}`);
  write("requests", logs);
}
