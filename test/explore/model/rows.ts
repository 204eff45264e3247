import type { KeptDispute } from "../../../src/domain/dispute.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import type { Ref } from "../refs.js";

/** Rows as the store has them, named as its columns. Columns that no decision reads are left out. */

export interface AttemptRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly payment_id: string;
  readonly kind: "charge" | "capture" | "cancel" | "refund";
  readonly operation: string;
  readonly idempotency_key: string;
  readonly run: number;
  readonly request_id: string;
  readonly amount: number | null;
  readonly refund_id: string | null;
  readonly state: string;
  /** 1, and 0 in the hands of a worker whose fence has moved on: only whether it is the present one matters. */
  readonly fence: number;
  readonly lease: "none" | "live" | "over";
  /** `due_at` is set. When exactly does not matter: time is not measured. */
  readonly due: boolean;
  readonly nudged: boolean;
  readonly provider: string;
  readonly provider_account: string | null;
  readonly livemode: boolean;
  readonly parameters: string;
  readonly provider_payment_id: string | null;
  readonly unresolved: boolean;
  readonly key_spent: boolean;
  readonly create_first_sent_at: string | null;
  readonly confirm_first_sent_at: string | null;
  readonly fence_first_sent_at: string | null;
  readonly effect_first_sent_at: string | null;
  readonly fence_round: number;
  readonly waits: number;
  readonly wait_reason: string | null;
  readonly unknown_since: string | null;
  /** What a person has decided, as JSON text. */
  readonly instruction: string | null;
  readonly created_at: string;
}

export interface PaymentRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly attempt_id: string;
  readonly status: string;
  readonly version: number;
  readonly amount: number;
  readonly currency: string;
  readonly capture_method: string;
  readonly payment_method: string;
  readonly merchant_order_id: string | null;
  readonly holds_order_id: boolean;
  readonly metadata: object;
  readonly provider: string;
  readonly next_action: object | null;
  readonly failure: object | null;
  readonly amount_capturable: number;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  readonly refund_reserved: number;
  readonly open_effect: string | null;
  readonly authorized_until: string | null;
  readonly cancellation_reason: string | null;
  readonly disputes: readonly KeptDispute[] | null;
  readonly livemode: boolean;
  readonly created_at: string;
}

/** What else is written about a payment. */
export interface SideRow {
  readonly ledger: readonly LedgerRow[];
  /** At most one is open an attempt; in the order of their attempts' ids. */
  readonly reviews: readonly OpenReview[];
  /** The events that its disputes have made, in order. */
  readonly told: readonly string[];
}

export interface OpenReview {
  readonly attemptId: string;
  /** What it is about now; empty where nobody looks. */
  readonly reason: string;
  /** What a person has decided, and no worker has carried out yet. */
  readonly resolution: string | null;
}

export interface LedgerRow {
  readonly fact: string;
  readonly leg: number;
  readonly debit_account: string;
  readonly credit_account: string;
  readonly amount: number;
}

export interface RefundRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly status: string;
  readonly version: number;
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly provider_refund_id: string | null;
  readonly failure: object | null;
  readonly external: boolean;
  readonly created_at: string;
}

export interface KeyRow {
  readonly state: "in_progress" | "completed" | "failed_retryable";
  readonly run: number;
  /** Of the stored answer. */
  readonly status: number | null;
  readonly payment_id: string;
}

/** The tables. A payment, its side row and what belongs to it are found by their place or by their ids. */
export interface Tables {
  readonly attempts: readonly Ref<AttemptRow>[];
  readonly payments: readonly Ref<PaymentRow>[];
  /** By the payment's place. */
  readonly sides: readonly Ref<SideRow>[];
  readonly refunds: readonly Ref<RefundRow>[];
  /** By the place of the client's request in the scenario; null: no record. */
  readonly keys: readonly (Ref<KeyRow> | null)[];
  /** Who holds an order id. */
  readonly orders: Ref<Readonly<Record<string, string>>>;
}

/** The row at `at` replaced. */
export function replaced<T>(rows: readonly T[], at: number, row: T): readonly T[] {
  if (rows[at] === row) return rows;
  const next = rows.slice();
  next[at] = row;
  return next;
}

/** One commit of an attempt's progress, and the database's time of it. */
export type Write = AdvanceRow & { readonly at: string };

/** What the accept of a capture, cancel or refund writes. */
export interface EffectRows {
  readonly attempt: Ref<AttemptRow>;
  readonly payment: Ref<PaymentRow>;
  readonly refund: Ref<RefundRow> | null;
}
