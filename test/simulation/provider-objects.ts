import type { Failure } from "../../src/domain/payment.js";
import type { DisputeMovement, DisputeStatus } from "../../src/domain/provider.js";

/** What the simulated provider keeps. Amounts are integers in the minor unit; there is one currency. */

export const CURRENCY = "usd";
/** The account of the credential that processes have, and one that they have by mistake. */
export const ACCOUNT = "acct_simulated";
export const OTHER_ACCOUNT = "acct_other";

/** How the card behaves when it is charged. */
export const CARDS = ["pm_pays", "pm_declines", "pm_asks_customer", "pm_takes_time"] as const;
export type Card = (typeof CARDS)[number];

/** Stripe's own names (docs.stripe.com/payments/paymentintents/lifecycle). */
export type IntentStatus =
  | "requires_confirmation"
  | "requires_payment_method"
  | "requires_action"
  | "processing"
  | "requires_capture"
  | "succeeded"
  | "canceled";

/** What its metadata says; null: that it says nothing. */
export interface Marks {
  readonly attemptId: string | null;
  readonly tenantId: string | null;
}

export interface Intent {
  readonly id: string;
  readonly card: string;
  readonly manual: boolean;
  /** Whom it was made for, whatever its metadata says by now. */
  readonly attemptId: string;
  readonly tenantId: string;
  readonly createdAtMs: number;
  /** Somebody at the dashboard may change what follows of it. */
  amount: number;
  marks: Marks;
  /** The provider answers 404 for it until then. */
  missingUntilMs: number;
  /** Which account's it is. */
  readonly account: string;
  status: IntentStatus;
  captured: number;
  capturable: number;
  /** How often its card was charged, or an amount held on it, with success. */
  charges: number;
  /** When money moved on it, or was held, first. */
  paidAtMs: number | null;
  failure: Failure | null;
  authorizedUntilMs: number | null;
  lapsed: boolean;
  /** The request that works on it now. */
  lockedBy: string | null;
}

export interface SimulatedRefund {
  readonly id: string;
  readonly intentId: string;
  readonly amount: number;
  /** Null: made by somebody at the dashboard. */
  readonly attemptId: string | null;
  readonly tenantId: string | null;
  readonly createdAtMs: number;
  status: "pending" | "succeeded" | "failed";
}

export interface SimulatedDispute {
  readonly id: string;
  readonly intentId: string;
  readonly amount: number;
  readonly createdAtMs: number;
  status: DisputeStatus;
  readonly movements: DisputeMovement[];
}

/** What was settled to the bank: a movement a charge, net of its fee. */
export interface SimulatedPayout {
  readonly id: string;
  readonly movements: readonly {
    readonly transactionId: string;
    readonly intentId: string;
    readonly amount: number;
  }[];
}

/** A call that may change something, as it goes over the wire. */
export interface Post {
  readonly id: string;
  readonly call: "create" | "confirm" | "cancel" | "capture" | "refund";
  readonly key: string;
  /** Whose credential it carries. */
  readonly account: string;
  /** The object that it acts on; of a create none. */
  readonly intentId: string | null;
  /** Sent verbatim; what a key must not be used for twice. */
  readonly parameters: string;
}

/** An answer of the provider's. */
export interface WireAnswer {
  readonly status: number;
  readonly code?: string;
  readonly type?: string;
  readonly param?: string;
  readonly replayed: boolean;
  readonly body: Body | null;
  readonly failure?: Failure;
}

/** Objects as they were when the answer was made: what happens later is not in it. */
export type Body =
  | { readonly intent: Intent; readonly fee: number | null }
  | { readonly refund: SimulatedRefund };

/** 2.9 % + 30, rounded to the nearest. */
export function feeOf(captured: number): number {
  return Math.round(captured * 0.029) + 30;
}

export function cardFailure(code: string): Failure {
  return { code, decline_code: "generic_decline", message: "Declined.", advice_code: null, retry: "new_key" };
}
