import type { Instruction } from "./instruction.js";
import type { ProviderCall } from "./provider.js";

export const ATTEMPT_STATES = [
  "started",
  "creating",
  "create_unknown",
  "charge_created",
  "confirming",
  "confirm_unknown",
  "following",
  "fencing",
  "completed",
  "sending",
  "send_unknown",
] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

export const ATTEMPT_KINDS = ["charge", "capture", "cancel", "refund"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

export type RecoveryPoint = "started" | "charge_created" | "completed";

/** One external effect of a payment and everything that is known about its sends. Times are the database's. */
export interface Attempt {
  readonly tenantId: string;
  /** Derived from tenant, operation, client key and run: `att_` + 32 hex digits. */
  readonly id: string;
  readonly paymentId: string;
  readonly kind: AttemptKind;
  readonly operation: string;
  readonly idempotencyKey: string;
  readonly run: number;
  /** Of the HTTP request that this run began with: part of the stored answer. */
  readonly requestId: string;
  /** Of a capture or refund: what was asked for, in the payment's minor unit. */
  readonly amount: number | null;
  readonly refundId: string | null;
  readonly state: AttemptState;
  /** Raised by every claim; every write of an outcome names it. */
  readonly fence: number;
  readonly provider: string;
  /** Null only until the first claim of an attempt accepted before the account was known. */
  readonly providerAccount: string | null;
  readonly livemode: boolean;
  /** The adapter's text, sent verbatim. */
  readonly parameters: string;
  readonly providerPaymentId: string | null;
  /** Some send of the present call has an outcome that is not known: a question must be answered before another send. */
  readonly unresolved: boolean;
  /** The present call's provider key can never perform it any more. */
  readonly keySpent: boolean;
  readonly createFirstSentAt: Date | null;
  readonly confirmFirstSentAt: Date | null;
  readonly fenceFirstSentAt: Date | null;
  /** Of a capture, cancel or refund. */
  readonly effectFirstSentAt: Date | null;
  /** Grows when the key of a fence, capture or cancel is spent: each round has its own key. Never of a refund. */
  readonly fenceRound: number;
  /** Waits in a row without progress: what the back-off counts. */
  readonly waits: number;
  readonly waitReason: string | null;
  readonly unknownSince: Date | null;
  /** What a person has decided and no worker has carried out yet. */
  readonly instruction: Instruction | null;
  readonly createdAt: Date;
}

/**
 * When the attempt's last call was first sent, which is what the lifetime of its provider key is counted from. Null: none
 * was, or it was only fenced.
 */
export function lastCallFirstSentAt(attempt: Attempt): Date | null {
  return attempt.effectFirstSentAt ?? attempt.confirmFirstSentAt ?? attempt.createFirstSentAt;
}

/**
 * The provider's idempotency key of a call: derived from the attempt's id alone, the same for every send of that
 * call across retries, restarts, workers and deploys. At most 60 characters.
 */
export function providerKey(attempt: Pick<Attempt, "id" | "fenceRound">, call: ProviderCall): string {
  const base = `payment-attempt:${attempt.id}`;
  if (call === "create") return base;
  if (call === "confirm") return `${base}:confirm`;
  const round = attempt.fenceRound === 1 ? "" : `-${attempt.fenceRound}`;
  if (call === "fence") return `${base}:fence${round}`;
  return round === "" ? base : `${base}:${call}${round}`;
}
