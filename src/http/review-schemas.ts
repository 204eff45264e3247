import { z } from "@hono/zod-openapi";
import { ATTEMPT_KINDS, ATTEMPT_STATES } from "../domain/attempt.js";
import { REVIEW_RESOLUTIONS } from "../domain/instruction.js";
import { nullableText, paymentSchema, refundSchema, time, timelineEntrySchema } from "./response-schemas.js";
import { pageQuery } from "./schemas.js";
import { optionalText, requiredText } from "./text-schema.js";

export const reviewsQuery = z.strictObject({
  status: z.enum(["open", "closed"], { error: "must be open or closed" }).optional(),
  ...pageQuery.shape,
});

/** The body of POST /v1/reviews/{id}/resolve. */
export const resolutionInput = z
  .strictObject({
    resolution: z
      .enum(REVIEW_RESOLUTIONS, { error: `must be one of ${REVIEW_RESOLUTIONS.join(", ")}` })
      .openapi({
        description: "One of the review's `allowed_resolutions`.",
        example: "adopt_provider_object",
      }),
    reason: requiredText({ most: 1000, lines: true }).openapi({
      description: "Why, for whoever looks later. Kept with the review and in the timeline.",
      example: "The card network's report shows the charge.",
    }),
    provider_object_id: optionalText({ most: 255, visibleAscii: true }).openapi({
      description:
        "The charge's object at the provider, where only you know it, or where its metadata was changed and you vouch for it.",
      example: "pi_3NxYz2eZvKYlo2C1",
    }),
    version: z
      .int({ error: "must be the version of a review" })
      .min(1, { error: "must be the version of a review" })
      .nullish()
      .transform((version) => version ?? null)
      .openapi({
        description:
          "The `version` of the review that you have looked at: if it has come to be about more since, nothing is decided.",
        example: 1,
      }),
  })
  .openapi("ReviewResolutionInput");

const review = {
  id: z.string().openapi({ example: "rev_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
  object: z.literal("review"),
  status: z.enum(["open", "closed"]),
  version: z.int().openapi({ description: "Grows with each reason.", example: 1 }),
  reason: z.string().openapi({ description: "What it is about now.", example: "outcome_unknown" }),
  former_reasons: z
    .array(z.strictObject({ reason: z.string(), until: z.string() }))
    .openapi({ description: "What it was about before the provider showed more, the oldest first." }),
  payment_id: z.string(),
  attempt_id: z.string(),
  attempt_kind: z.enum(ATTEMPT_KINDS),
  refund_id: nullableText.openapi({ description: "Set where it is about a refund." }),
  provider_object_id: nullableText.openapi({
    description:
      "Set where it is about an object of the provider's that is not the attempt's own, such as a second charge.",
  }),
  opened_at: time,
  closed_at: time.nullable(),
  closed_by: z.enum(["fact", "person"]).nullable().openapi({
    description: "`fact`: what the provider showed came before any person's decision took effect.",
  }),
  resolution: z
    .enum(REVIEW_RESOLUTIONS)
    .nullable()
    .openapi({ description: "What a person decided. While the review is open, it is being carried out." }),
  resolution_reason: nullableText,
  resolved_by: nullableText.openapi({ description: "The API key's id, or `command-line`." }),
  resolved_at: time.nullable(),
};

export const reviewSchema = z.strictObject(review).openapi("Review");

const reviewedAttempt = z
  .strictObject({
    id: z.string(),
    kind: z.enum(ATTEMPT_KINDS),
    state: z.enum(ATTEMPT_STATES),
    recovery_point: z.enum(["started", "charge_created", "completed"]),
    fence: z.int().openapi({ description: "How often a worker has claimed it." }),
    unresolved: z.boolean().openapi({ description: "The outcome of a send is not known." }),
    key_spent: z
      .boolean()
      .openapi({ description: "The provider will answer this call's key with an error for ever." }),
    provider: z.string(),
    provider_account: nullableText,
    provider_payment_id: nullableText,
    livemode: z.boolean(),
    create_first_sent_at: time.nullable(),
    confirm_first_sent_at: time.nullable(),
    fence_first_sent_at: time.nullable(),
    effect_first_sent_at: time.nullable().openapi({ description: "Of a capture, cancel or refund." }),
    key_guards_until: time
      .nullable()
      .openapi({ description: "Until when a send under the same key cannot take effect twice." }),
    unknown_since: time.nullable(),
    unknown_for_ms: z.int().nullable(),
    wait_reason: nullableText,
    next_question_at: time.nullable().openapi({ description: "When the provider is asked next." }),
  })
  .openapi("ReviewedAttempt");

export const reviewEvidenceSchema = z
  .strictObject({
    ...review,
    payment: paymentSchema,
    refund: refundSchema.nullable(),
    attempt: reviewedAttempt,
    timeline: z
      .array(timelineEntrySchema)
      .openapi({ description: "The last 100 entries of the attempt, the oldest first." }),
    allowed_resolutions: z.array(
      z.strictObject({
        resolution: z.enum(REVIEW_RESOLUTIONS),
        does: z.string().openapi({ description: "What it does." }),
      }),
    ),
  })
  .openapi("ReviewEvidence");
