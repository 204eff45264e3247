import { disputeDocument } from "./dispute.js";
import { ERROR_CODES, type ErrorCode, type FieldFault } from "./errors.js";
import type { Payment, Resolution } from "./payment.js";
import type { Refund } from "./refund.js";

/**
 * The documents that callers see. They are made here and not in http/ because the worker stores the final answer of
 * a keyed request in the transaction that makes it final (docs/adr/0003).
 */

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: JsonValue;
}

export interface StoredResponse {
  readonly status: number;
  /** Allowlisted for replays: Content-Type and Location. */
  readonly headers: { readonly "Content-Type": string; readonly Location: string };
  /** Sent byte for byte, now and at every replay. */
  readonly body: string;
}

export const JSON_TYPE = "application/json";
export const PROBLEM_TYPE = "application/problem+json";

export function paymentPath(paymentId: string): string {
  return `/v1/payments/${paymentId}`;
}

export function paymentDocument(payment: Payment): JsonObject {
  return {
    id: payment.id,
    object: "payment",
    status: payment.status,
    amount: payment.amount,
    currency: payment.currency,
    amount_capturable: payment.amountCapturable,
    amount_captured: payment.amountCaptured,
    amount_refunded: payment.amountRefunded,
    amount_refundable: refundable(payment),
    capture_method: payment.captureMethod,
    payment_method: payment.paymentMethod,
    customer: payment.customer,
    merchant_order_id: payment.merchantOrderId,
    description: payment.description,
    statement_descriptor: payment.statementDescriptor,
    return_url: payment.returnUrl,
    metadata: payment.metadata,
    provider: payment.provider,
    provider_payment_id: payment.providerPaymentId,
    next_action: payment.nextAction === null ? null : { ...payment.nextAction },
    failure: payment.failure === null ? null : { ...payment.failure },
    authorized_until: payment.authorizedUntil?.toISOString() ?? null,
    cancellation_reason: payment.cancellationReason,
    disputes: payment.disputes.map(disputeDocument),
    resolution: payment.resolution === null ? null : { ...payment.resolution },
    livemode: payment.livemode,
    created_at: payment.createdAt.toISOString(),
    updated_at: payment.updatedAt.toISOString(),
  };
}

/** As events show it: the client secret is for the answer to its payment alone, and events go to many. */
export function paymentEventDocument(payment: Payment): JsonObject {
  const { nextAction } = payment;
  return paymentDocument(
    nextAction === null ? payment : { ...payment, nextAction: { ...nextAction, client_secret: null } },
  );
}

/** What a refund may still ask for. A refund in the making counts as made until it has failed. */
export function refundable(payment: Payment): number {
  return Math.max(0, payment.amountCaptured - payment.refundReserved);
}

export function refundPath(refundId: string): string {
  return `/v1/refunds/${refundId}`;
}

/** `resolution`: while the outcome is unknown or a person must decide. */
export function refundDocument(refund: Refund, resolution: Resolution | null = null): JsonObject {
  return {
    id: refund.id,
    object: "refund",
    payment_id: refund.paymentId,
    status: refund.status,
    amount: refund.amount,
    currency: refund.currency,
    reason: refund.reason,
    metadata: refund.metadata,
    provider: refund.provider,
    provider_refund_id: refund.providerRefundId,
    external: refund.external,
    failure: refund.failure === null ? null : { ...refund.failure },
    resolution: resolution === null ? null : { ...resolution },
    created_at: refund.createdAt.toISOString(),
    updated_at: refund.updatedAt.toISOString(),
  };
}

export interface ProblemExtra {
  readonly requestId: string;
  readonly payment?: Payment | undefined;
  readonly refund?: Refund | undefined;
  readonly faults?: readonly FieldFault[] | undefined;
}

/** RFC 9457. `type` is relative to the API's own origin, where the page is served. */
export function problemDocument(code: ErrorCode, detail: string, extra: ProblemExtra): JsonObject {
  const { status, title } = ERROR_CODES[code];
  return {
    type: `/docs/errors/${code}`,
    title,
    status,
    detail,
    code,
    request_id: extra.requestId,
    ...(extra.faults === undefined ? {} : { errors: extra.faults.map((fault) => ({ ...fault })) }),
    ...(extra.payment === undefined ? {} : { payment: paymentDocument(extra.payment) }),
    ...(extra.refund === undefined ? {} : { refund: refundDocument(extra.refund) }),
  };
}
