import { z } from "@hono/zod-openapi";
import { EVENT_TYPES } from "../domain/events.js";
import { DELIVERY_FAULTS } from "../domain/webhook.js";
import { nullableText, time } from "./response-schemas.js";
import { requiredText } from "./text-schema.js";

const EVENTS_RULE = "must be an array of one or more event types, each once";

const eventTypes = z
  .array(z.enum(EVENT_TYPES, { error: "must be a type of event" }), { error: EVENTS_RULE })
  .min(1, EVENTS_RULE)
  .max(EVENT_TYPES.length, EVENTS_RULE)
  .refine((types) => new Set(types).size === types.length, EVENTS_RULE);

/** The body of POST /v1/webhook_endpoints. The order of the types says nothing, so they are sorted. */
export const webhookEndpointInput = z
  .strictObject({
    url: requiredText({ most: 2048 }).openapi({
      description: "https, a host of the public internet, no user name. It is not called to find out.",
      format: "uri",
      example: "https://example.com/pawl",
    }),
    events: eventTypes
      .nullable()
      .default(null)
      .transform((types) => types?.toSorted() ?? null)
      .openapi({
        type: ["array", "null"],
        items: { type: "string", enum: [...EVENT_TYPES] },
        description: "The event types that are sent to it; left out, all of them.",
      }),
  })
  .openapi("WebhookEndpointInput");

export const noBody = z.strictObject({});

export const webhookEndpointSchema = z
  .strictObject({
    id: z.string().openapi({ example: "we_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
    object: z.literal("webhook_endpoint"),
    url: z.string(),
    events: z.array(z.string()).nullable().openapi({ description: "Null: all types." }),
    enabled: z.boolean(),
    disabled_reason: z
      .enum(["gone", "failing"])
      .nullable()
      .openapi({ description: "`gone`: it answered 410. `failing`: it had taken nothing for too long." }),
    failing_since: time.nullable().openapi({ description: "Since when it has taken nothing." }),
    secret: nullableText.openapi({
      description: "Signs what is sent. Shown once, where it is made; null everywhere else.",
    }),
    previous_secret_expires_at: time
      .nullable()
      .openapi({ description: "Until when the secret before this one signs too." }),
    created_at: time,
    updated_at: time,
  })
  .openapi("WebhookEndpoint");

export const deliverySchema = z
  .strictObject({
    object: z.literal("webhook_delivery"),
    endpoint_id: z.string(),
    event_id: z.string(),
    event_type: z.string(),
    payment_id: nullableText,
    state: z.enum(["pending", "delivered", "failed"]),
    tries: z.int(),
    last_tried_at: time.nullable(),
    last_status: z.int().nullable().openapi({ description: "The HTTP status of the last answer." }),
    last_error: z.enum(DELIVERY_FAULTS).nullable().openapi({
      description: "Why the last try failed; docs/webhooks.md has the list.",
    }),
    last_answer: nullableText.openapi({ description: "The first 500 characters of the last answer." }),
    next_try_at: time.nullable(),
    created_at: time,
    delivered_at: time.nullable(),
  })
  .openapi("WebhookDelivery");

export const eventSchema = z
  .strictObject({
    id: z.string().openapi({ example: "evt_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
    object: z.literal("event"),
    type: z.string().openapi({ example: "payment.succeeded" }),
    created_at: time,
    data: z.strictObject({
      object: z.record(z.string(), z.unknown()).openapi({ description: "The object right after the fact." }),
    }),
  })
  .openapi("Event");

export const redeliverySchema = z
  .strictObject({
    object: z.literal("redelivery"),
    event_id: z.string(),
    deliveries: z.int().openapi({ description: "How many enabled endpoints it is sent to." }),
  })
  .openapi("Redelivery");
