import type { Attempt, AttemptKind, AttemptState } from "../domain/attempt.js";
import type { Instruction } from "../domain/instruction.js";
import type {
  CancellationReason,
  CaptureMethod,
  Dispute,
  Failure,
  NextAction,
  Payment,
  PaymentStatus,
  Resolution,
} from "../domain/payment.js";
import type { Refund, RefundStatus } from "../domain/refund.js";

/** A row as the raw client gives it: times and bigints as text, JSON as text. */
export type Row = Readonly<Record<string, unknown>>;

export function requiredDate(value: unknown): Date {
  const date = new Date(value as string | Date);
  if (Number.isNaN(date.getTime())) throw new Error("a timestamp of the database could not be read");
  return date;
}

export function dateOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : requiredDate(value);
}

export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : (value as string);
}

export function jsonOrNull<T>(value: unknown): T | null {
  if (value === null || value === undefined) return null;
  return (typeof value === "string" ? JSON.parse(value) : value) as T;
}

/** Columns of a payment, under a prefix so that they can stand beside an attempt's. */
export const PAYMENT_COLUMNS = [
  "tenant_id",
  "id",
  "status",
  "version",
  "amount",
  "currency",
  "capture_method",
  "payment_method",
  "customer",
  "merchant_order_id",
  "holds_order_id",
  "description",
  "statement_descriptor",
  "return_url",
  "metadata",
  "provider",
  "next_action",
  "failure",
  "amount_capturable",
  "amount_captured",
  "amount_refunded",
  "refund_reserved",
  "open_effect",
  "authorized_until",
  "cancellation_reason",
  "disputes",
  "livemode",
  "created_at",
  "updated_at",
] as const;

/** The payment of a row whose payment columns are named `p_…` and whose attempt columns are plain. */
export function paymentOf(row: Row): Payment {
  return {
    tenantId: row["p_tenant_id"] as string,
    id: row["p_id"] as string,
    status: row["p_status"] as PaymentStatus,
    version: Number(row["p_version"]),
    amount: Number(row["p_amount"]),
    currency: row["p_currency"] as string,
    captureMethod: row["p_capture_method"] as CaptureMethod,
    paymentMethod: row["p_payment_method"] as string,
    customer: textOrNull(row["p_customer"]),
    merchantOrderId: textOrNull(row["p_merchant_order_id"]),
    holdsOrderId: row["p_holds_order_id"] as boolean,
    description: textOrNull(row["p_description"]),
    statementDescriptor: textOrNull(row["p_statement_descriptor"]),
    returnUrl: textOrNull(row["p_return_url"]),
    metadata: jsonOrNull<Record<string, string>>(row["p_metadata"]) ?? {},
    provider: row["p_provider"] as string,
    providerPaymentId: textOrNull(row["provider_payment_id"]),
    nextAction: jsonOrNull<NextAction>(row["p_next_action"]),
    failure: jsonOrNull<Failure>(row["p_failure"]),
    resolution: resolutionOf(row),
    amountCapturable: Number(row["p_amount_capturable"]),
    amountCaptured: Number(row["p_amount_captured"]),
    amountRefunded: Number(row["p_amount_refunded"]),
    refundReserved: Number(row["p_refund_reserved"]),
    openEffect: textOrNull(row["p_open_effect"]),
    authorizedUntil: dateOrNull(row["p_authorized_until"]),
    cancellationReason: textOrNull(row["p_cancellation_reason"]) as CancellationReason | null,
    disputes: jsonOrNull<Dispute[]>(row["p_disputes"]) ?? [],
    livemode: row["p_livemode"] as boolean,
    createdAt: requiredDate(row["p_created_at"]),
    updatedAt: requiredDate(row["p_updated_at"]),
  };
}

/**
 * Shown only while something is not known or a person must decide; read off the attempt that is waited for, the charge
 * or the capture or cancel in flight (columns `e_…`), and stored nowhere.
 */
function resolutionOf(row: Row): Resolution | null {
  const status = row["p_status"] as PaymentStatus;
  const open = status === "processing" || status === "needs_review";
  return open ? resolutionFrom(row, "", status === "needs_review") : resolutionFrom(row, "e_", false);
}

/** From the columns wait_reason, unknown_since and due_at of an attempt, under a prefix. */
export function resolutionFrom(row: Row, prefix: string, inReview: boolean): Resolution | null {
  const reason = textOrNull(row[`${prefix}wait_reason`]);
  if (reason === null) return null;
  const unknown = textOrNull(row[`${prefix}unknown_since`]) !== null;
  const state = inReview ? "review" : unknown ? "unknown" : "held";
  return { state, reason, next_check_at: dateOrNull(row[`${prefix}due_at`])?.toISOString() ?? null };
}

/** Columns of a refund, under the prefix `r_` where they stand beside others. */
export const REFUND_COLUMNS = [
  "tenant_id",
  "id",
  "payment_id",
  "attempt_id",
  "status",
  "version",
  "amount",
  "currency",
  "reason",
  "metadata",
  "provider",
  "provider_refund_id",
  "failure",
  "external",
  "created_at",
  "updated_at",
] as const;

/** The refund of a row whose refund columns are named `r_…`; null where it has none. */
export function refundOf(row: Row): Refund | null {
  if (textOrNull(row["r_id"]) === null) return null;
  return {
    tenantId: row["r_tenant_id"] as string,
    id: row["r_id"] as string,
    paymentId: row["r_payment_id"] as string,
    attemptId: row["r_attempt_id"] as string,
    status: row["r_status"] as RefundStatus,
    version: Number(row["r_version"]),
    amount: Number(row["r_amount"]),
    currency: row["r_currency"] as string,
    reason: textOrNull(row["r_reason"]),
    metadata: jsonOrNull<Record<string, string>>(row["r_metadata"]) ?? {},
    provider: row["r_provider"] as string,
    providerRefundId: textOrNull(row["r_provider_refund_id"]),
    failure: jsonOrNull<Failure>(row["r_failure"]),
    external: row["r_external"] as boolean,
    createdAt: requiredDate(row["r_created_at"]),
    updatedAt: requiredDate(row["r_updated_at"]),
  };
}

export function attemptOf(row: Row): Attempt {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    paymentId: row["payment_id"] as string,
    kind: row["kind"] as AttemptKind,
    operation: row["operation"] as string,
    idempotencyKey: row["idempotency_key"] as string,
    run: Number(row["run"]),
    requestId: row["request_id"] as string,
    amount: row["amount"] === null ? null : Number(row["amount"]),
    refundId: textOrNull(row["refund_id"]),
    state: row["state"] as AttemptState,
    fence: Number(row["fence"]),
    provider: row["provider"] as string,
    providerAccount: textOrNull(row["provider_account"]),
    livemode: row["livemode"] as boolean,
    parameters: row["parameters"] as string,
    providerPaymentId: textOrNull(row["provider_payment_id"]),
    unresolved: row["unresolved"] as boolean,
    keySpent: row["key_spent"] as boolean,
    createFirstSentAt: dateOrNull(row["create_first_sent_at"]),
    confirmFirstSentAt: dateOrNull(row["confirm_first_sent_at"]),
    fenceFirstSentAt: dateOrNull(row["fence_first_sent_at"]),
    effectFirstSentAt: dateOrNull(row["effect_first_sent_at"]),
    fenceRound: Number(row["fence_round"]),
    waits: Number(row["waits"]),
    waitReason: textOrNull(row["wait_reason"]),
    unknownSince: dateOrNull(row["unknown_since"]),
    instruction: jsonOrNull<Instruction>(row["instruction"]),
    createdAt: requiredDate(row["created_at"]),
  };
}
