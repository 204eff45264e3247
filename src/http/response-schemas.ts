import { z } from "@hono/zod-openapi";
import { ERROR_CODES, type ErrorCode } from "../domain/errors.js";
import { CANCELLATION_REASONS, CAPTURE_METHODS, PAYMENT_STATUSES } from "../domain/payment.js";
import { REFUND_STATUSES } from "../domain/refund.js";

/** What answers look like, for the OpenAPI document. Tests hold the documents that are sent against these. */

export const time = z.iso.datetime().openapi({ format: "date-time" });
export const nullableText = z.string().nullable();

const failure = z
  .strictObject({
    code: z.string(),
    decline_code: nullableText,
    message: nullableText,
    advice_code: nullableText,
    retry: z.enum(["same_key", "new_key"]),
  })
  .nullable()
  .openapi({ description: "Why it failed, and what another try needs." });

const resolution = z
  .strictObject({
    state: z.enum(["unknown", "held", "review"]),
    reason: z.string(),
    next_check_at: nullableText,
  })
  .nullable()
  .openapi({ description: "What is known while the outcome is unknown." });

export const paymentSchema = z
  .strictObject({
    id: z.string().openapi({ example: "pay_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
    object: z.literal("payment"),
    status: z.enum(PAYMENT_STATUSES),
    amount: z.int(),
    currency: z.string().openapi({ example: "usd" }),
    amount_capturable: z.int(),
    amount_captured: z.int(),
    amount_refunded: z.int(),
    amount_refundable: z.int().openapi({ description: "What a refund may still ask for." }),
    capture_method: z.enum(CAPTURE_METHODS),
    payment_method: z.string(),
    customer: nullableText,
    merchant_order_id: nullableText,
    description: nullableText,
    statement_descriptor: nullableText,
    return_url: nullableText,
    metadata: z.record(z.string(), z.string()),
    provider: z.string(),
    provider_payment_id: nullableText,
    next_action: z
      .strictObject({
        type: z.enum(["redirect_to_url", "use_client_secret"]),
        redirect_url: nullableText,
        client_secret: nullableText,
      })
      .nullable()
      .openapi({ description: "What the customer must do, while `requires_action`." }),
    failure,
    authorized_until: time.nullable().openapi({
      description: "Until when an authorization can be captured, where the provider says so.",
    }),
    cancellation_reason: z
      .enum(CANCELLATION_REASONS)
      .nullable()
      .openapi({ description: "Why the payment is `canceled`." }),
    disputes: z.array(
      z.strictObject({
        id: z.string(),
        status: z.string(),
        amount: z.int(),
        currency: z.string(),
        reason: nullableText,
      }),
    ),
    resolution,
    livemode: z.boolean(),
    created_at: time,
    updated_at: time,
  })
  .openapi("Payment");

export const refundSchema = z
  .strictObject({
    id: z.string().openapi({ example: "re_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
    object: z.literal("refund"),
    payment_id: z.string(),
    status: z.enum(REFUND_STATUSES),
    amount: z.int(),
    currency: z.string(),
    reason: nullableText,
    metadata: z.record(z.string(), z.string()),
    provider: z.string(),
    provider_refund_id: nullableText,
    external: z.boolean().openapi({ description: "Made outside Pawl, at the provider." }),
    failure,
    resolution,
    created_at: time,
    updated_at: time,
  })
  .openapi("Refund");

export const timelineEntrySchema = z
  .strictObject({
    id: z.string(),
    object: z.literal("timeline_entry"),
    refund_id: nullableText.openapi({ description: "Set where the statuses are those of a refund." }),
    at: time,
    kind: z.enum(["transition", "send", "question", "request", "fact"]),
    from: nullableText,
    to: nullableText,
    reason: z.string(),
    attempt_id: nullableText,
    call: nullableText,
    provider_key: nullableText,
    fence: z.int().nullable(),
    outcome: nullableText,
    provider_request_id: nullableText,
    sent_at: time.nullable(),
  })
  .openapi("TimelineEntry");

export const idempotencyKeySchema = z
  .strictObject({
    object: z.literal("idempotency_key"),
    key: z.string(),
    operation: z.string(),
    state: z.enum(["in_progress", "completed", "failed_retryable"]),
    resource_id: nullableText,
    run: z.int(),
    created_at: time,
    completed_at: time.nullable(),
    expires_at: time.nullable(),
    response_status: z.int().nullable(),
  })
  .openapi("IdempotencyKey");

export function listOf<T extends z.ZodType>(item: T) {
  return z.strictObject({ data: z.array(item), has_more: z.boolean(), next_cursor: nullableText });
}

export const problemSchema = z
  .strictObject({
    type: z.string().openapi({ format: "uri-reference", example: "/docs/errors/validation_failed" }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]),
    request_id: z.string(),
    errors: z
      .array(z.strictObject({ pointer: z.string(), detail: z.string() }))
      .optional()
      .openapi({ description: "RFC 6901 pointers into the body; `?name` for a query parameter." }),
    payment: paymentSchema.optional(),
    refund: refundSchema.optional(),
  })
  .openapi("Problem");
