import type { Sql } from "../../src/store/db.js";

/** Our rows when everything is over. */

export interface PaymentRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  readonly amount_captured: string;
  readonly amount_capturable: string;
  readonly amount_refunded: string;
  readonly refund_reserved: string;
  readonly merchant_order_id: string | null;
  readonly holds_order_id: boolean;
  readonly open_effect: string | null;
  readonly attempt_id: string;
  readonly disputes: string | null;
}

export interface AttemptRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly kind: string;
  readonly operation: string;
  readonly idempotency_key: string;
  readonly run: number;
  readonly state: string;
  readonly provider_payment_id: string | null;
  readonly provider_account: string | null;
  readonly lease_expires_at: string | null;
  readonly due_at: string | null;
  readonly confirm_first_sent_at: string | null;
  readonly created_at: string;
  readonly wait_reason: string | null;
}

export interface KeyRow {
  readonly tenant_id: string;
  readonly key: string;
  readonly operation: string;
  readonly run: number;
  readonly state: string;
  readonly resource_id: string;
  readonly response_status: number | null;
  readonly response_body: string | null;
  readonly created_at: string;
}

export interface RefundRow {
  readonly id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly status: string;
  readonly amount: string;
  readonly provider_refund_id: string | null;
  readonly external: boolean;
}

export interface TransitionRow {
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly from_status: string | null;
  readonly to_status: string | null;
}

export interface EventRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly type: string;
  readonly payment_id: string | null;
  readonly sequence: number;
  readonly ordinal: number;
  readonly data: { readonly id?: string };
}

export interface EntryRow {
  readonly payment_id: string;
  readonly fact: string;
  readonly debit_account: string;
  readonly credit_account: string;
  readonly amount: string;
}

export interface ReviewRow {
  readonly id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly reason: string;
  readonly closed_at: string | null;
  readonly closed_by: string | null;
  readonly resolution: string | null;
  readonly resolution_reason: string | null;
  readonly resolved_by: string | null;
  readonly resolved_at: string | null;
}

export interface EndState {
  readonly payments: readonly PaymentRow[];
  readonly attempts: readonly AttemptRow[];
  readonly keys: readonly KeyRow[];
  readonly refunds: readonly RefundRow[];
  readonly transitions: readonly TransitionRow[];
  readonly events: readonly EventRow[];
  readonly entries: readonly EntryRow[];
  /** Those that are open. */
  readonly reviews: readonly ReviewRow[];
  readonly allReviews: readonly ReviewRow[];
  /** What people and clients asked for, as the timeline has it. */
  readonly requests: readonly { payment_id: string; reason: string; outcome: string | null }[];
  /** Decisions that were given back, by their attempts. */
  readonly returned: readonly { attempt_id: string; times: number }[];
  readonly recoveringSince: string | null;
  readonly deliveries: readonly { endpoint_id: string; event_id: string; state: string }[];
  readonly providerEvents: readonly {
    event_id: string;
    object_id: string;
    type: string;
    state: string;
    outcome: string | null;
  }[];
  readonly findings: readonly {
    kind: string;
    object_id: string;
    payment_id: string | null;
    state: string;
    detail: string;
  }[];
  readonly heldOrders: readonly { payment_id: string; merchant_order_id: string }[];
}

export async function readEndState(sql: Sql): Promise<EndState> {
  const allReviews = await sql<ReviewRow[]>`select * from reviews order by id`;
  const [installation] = await sql<{ since: string | null }[]>`
    select recovering_since as since from installation`;
  return {
    payments: await sql<PaymentRow[]>`select * from payments order by id`,
    attempts: await sql<AttemptRow[]>`select * from attempts order by payment_id, created_at`,
    keys: await sql<KeyRow[]>`select * from idempotency_keys order by tenant_id, operation, key`,
    refunds: await sql<RefundRow[]>`select * from refunds order by id`,
    transitions: await sql<TransitionRow[]>`
      select * from timeline where kind = 'transition' order by payment_id, id`,
    events: await sql<EventRow[]>`select * from outbox order by payment_id, sequence, ordinal`,
    entries: await sql<EntryRow[]>`select * from ledger_entries`,
    reviews: allReviews.filter(({ closed_at: closedAt }) => closedAt === null),
    allReviews,
    requests: await sql<EndState["requests"][number][]>`select * from timeline where kind = 'request'`,
    returned: await sql<EndState["returned"][number][]>`
      select attempt_id, count(*)::int as times from timeline
       where reason like '% is not possible: %' group by attempt_id`,
    recoveringSince: installation?.since ?? null,
    deliveries: await sql<EndState["deliveries"][number][]>`select * from deliveries`,
    providerEvents: await sql<EndState["providerEvents"][number][]>`select * from provider_events`,
    findings: await sql<EndState["findings"][number][]>`select * from reconciliation_findings`,
    heldOrders: await sql<EndState["heldOrders"][number][]>`select * from order_ids`,
  };
}

export function sumOf(rows: readonly { readonly amount: string | number }[]): number {
  return rows.reduce((sum, row) => sum + Number(row.amount), 0);
}
