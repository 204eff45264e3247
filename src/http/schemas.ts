import { z } from "@hono/zod-openapi";
import { normalizeCurrency } from "../domain/currency.js";
import { CAPTURE_METHODS, PAYMENT_STATUSES, type PaymentInput } from "../domain/payment.js";
import { CREATE_PAYMENT } from "../operations/create-payment.js";
import {
  CREATE_WEBHOOK_ENDPOINT,
  ENABLE_WEBHOOK_ENDPOINT,
  ROTATE_WEBHOOK_SECRET,
} from "../operations/manage-webhook-endpoints.js";
import { REDELIVER_EVENT } from "../operations/redeliver-event.js";
import { EFFECT_OPERATIONS } from "../operations/request-effect.js";
import { RESOLVE_REVIEW } from "../operations/resolve-review.js";
import { metadata } from "./metadata-schema.js";
import { optionalText, requiredText } from "./text-schema.js";

/** What requests must be: these schemas validate, and the served OpenAPI document is made from them. */

const MAX_AMOUNT = 999_999_999_999;
const AMOUNT_RULE = `must be an integer from 1 to ${MAX_AMOUNT}, in the currency's ISO 4217 minor unit`;
const CURRENCY_RULE = "must be an active ISO 4217 code of three letters";
const DESCRIPTOR_RULE = "must hold a letter and none of < > \\ ' \" *";

const amount = z
  .number({ error: AMOUNT_RULE })
  .int({ error: AMOUNT_RULE })
  .min(1, { error: AMOUNT_RULE })
  .max(MAX_AMOUNT, { error: AMOUNT_RULE })
  .openapi({ description: "Integer in the currency's ISO 4217 minor unit.", example: 4200 });

const currency = z
  .string({ error: CURRENCY_RULE })
  .transform((code, context) => {
    const normalized = normalizeCurrency(code);
    if (normalized !== null) return normalized;
    context.addIssue({ code: "custom", message: CURRENCY_RULE });
    return z.NEVER;
  })
  .openapi({
    type: "string",
    pattern: "^[A-Za-z]{3}$",
    description: "Active ISO 4217 code in any case; shown in lower case.",
    example: "usd",
  });

function isWebUrl(text: string): boolean {
  // The URL parser drops white space and control characters; what it repairs is refused.
  if (!/^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === "" && url.password === "";
}

/** The body of POST /v1/payments. The limits of texts are counted in characters (code points), not UTF-16 units. */
export const paymentInput = z
  .strictObject({
    amount,
    currency,
    payment_method: requiredText({ most: 255, visibleAscii: true }).openapi({
      description: "The provider's token. Never a card number.",
      example: "pm_card_visa",
    }),
    capture_method: z
      .enum(CAPTURE_METHODS, { error: "must be automatic or manual" })
      .default("automatic")
      .openapi({ description: "`manual` only authorizes; a capture takes the money later." }),
    merchant_order_id: optionalText({ most: 255 }).openapi({
      description:
        "Your identity of the order, kept for ever: while a payment holds it, another key with it gets 409 `merchant_order_id_taken`.",
      example: "order-17",
    }),
    customer: optionalText({ most: 255, visibleAscii: true }).openapi({
      description: "The provider's customer id.",
    }),
    description: optionalText({ most: 1000, lines: true }),
    statement_descriptor: optionalText({ most: 22, visibleAscii: "with spaces" })
      .refine((text) => text === null || (/[A-Za-z]/.test(text) && !/[<>\\'"*]/.test(text)), DESCRIPTOR_RULE)
      .openapi({ description: "What the customer's statement shows." }),
    return_url: optionalText({ most: 2048 })
      .refine((text) => text === null || isWebUrl(text), "must be an http or https URL without a user name")
      .openapi({ description: "Where the customer comes back to after acting.", format: "uri" }),
    metadata,
  })
  .openapi("PaymentInput") satisfies z.ZodType<PaymentInput>;

/** Bodies of what follows a payment. Every member may be left out, and so may the whole body. */
export const captureInput = z
  .strictObject({
    amount: amount
      .optional()
      .transform((asked) => asked ?? null)
      .openapi({ description: "All of the authorization where it is left out; the rest is released." }),
  })
  .openapi("CaptureInput");
export const cancelInput = z
  .strictObject({ reason: optionalText({ most: 255 }).openapi({ description: "Kept in the timeline." }) })
  .openapi("CancelInput");
export const refundInput = z
  .strictObject({
    amount: amount
      .optional()
      .transform((asked) => asked ?? null)
      .openapi({ description: "All that is left where it is left out." }),
    reason: optionalText({ most: 255 }),
    metadata,
  })
  .openapi("RefundInput");

/** RFC 3339, with an offset. */
const time = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time with an offset, e.g. 2026-01-31T12:00:00Z" })
  .transform((text) => new Date(text))
  .refine(
    (moment) => moment.getUTCFullYear() >= 1 && moment.getUTCFullYear() <= 9999,
    "must lie in the years 0001 to 9999 of UTC",
  )
  .openapi({ type: "string", format: "date-time" });

const LIMIT_RULE = "must be an integer from 1 to 100";
const page = {
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]?|100)$/, LIMIT_RULE)
    .transform(Number)
    .default(20)
    .openapi({ type: "integer", minimum: 1, maximum: 100, default: 20 }),
  cursor: requiredText({ most: 512, visibleAscii: true })
    .optional()
    .openapi({ description: "`next_cursor` of the page before." }),
};

export const pageQuery = z.strictObject(page);

export const paymentsQuery = z.strictObject({
  status: z.enum(PAYMENT_STATUSES, { error: `must be one of ${PAYMENT_STATUSES.join(", ")}` }).optional(),
  merchant_order_id: requiredText({ most: 255 }).optional(),
  created_after: time.optional(),
  created_before: time.optional(),
  ...page,
});

const KEYED_OPERATIONS = [
  CREATE_PAYMENT,
  ...Object.values(EFFECT_OPERATIONS),
  CREATE_WEBHOOK_ENDPOINT,
  ROTATE_WEBHOOK_SECRET,
  ENABLE_WEBHOOK_ENDPOINT,
  REDELIVER_EVENT,
  RESOLVE_REVIEW,
] as const;
export const idempotencyKeyQuery = z.strictObject({
  operation: z.enum(KEYED_OPERATIONS, { error: `must be one of ${KEYED_OPERATIONS.join(", ")}` }),
});

export const noQuery = z.strictObject({});
