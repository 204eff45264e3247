import { ERROR_CODES, type ErrorCode, type FieldFault } from "./errors.js";
import type { Payment } from "./payment.js";

/**
 * The documents that callers see. They are made here and not in http/ because the worker stores the final answer of
 * a keyed request in the transaction that makes it final (docs/adr/0003).
 */

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

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

export function paymentDocument(payment: Payment): { readonly [name: string]: JsonValue } {
  return {
    id: payment.id,
    object: "payment",
    status: payment.status,
    amount: payment.amount,
    currency: payment.currency,
    amount_capturable: payment.amountCapturable,
    amount_captured: payment.amountCaptured,
    amount_refunded: payment.amountRefunded,
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
    resolution: payment.resolution === null ? null : { ...payment.resolution },
    livemode: payment.livemode,
    created_at: payment.createdAt.toISOString(),
    updated_at: payment.updatedAt.toISOString(),
  };
}

export interface ProblemExtra {
  readonly requestId: string;
  readonly payment?: Payment | undefined;
  readonly faults?: readonly FieldFault[] | undefined;
}

/** RFC 9457. `type` is relative to the API's own origin, where the page is served. */
export function problemDocument(
  code: ErrorCode,
  detail: string,
  extra: ProblemExtra,
): { readonly [name: string]: JsonValue } {
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
  };
}
