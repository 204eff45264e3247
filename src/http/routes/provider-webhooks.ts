import { z } from "@hono/zod-openapi";
import { JSON_TYPE } from "../../domain/documents.js";
import { PawlError } from "../../domain/errors.js";
import type { NoticeRefusal } from "../../domain/provider-event.js";
import type { Deps } from "../../operations/deps.js";
import { receiveProviderEvent } from "../../operations/receive-provider-event.js";
import type { Documented } from "../endpoint.js";
import type { Work } from "../exchange.js";
import { jsonContent, problemsAlone } from "../openapi-parts.js";
import { readBody } from "../read-body.js";
import { headerLines } from "../request-headers.js";

export const PROVIDER_WEBHOOKS_PATH = "/v1/providers/stripe/webhooks";

const MAX_BODY_BYTES = 1024 * 1024;
const RECEIVED = { status: 200, headers: { "Content-Type": JSON_TYPE }, body: '{"received":true}' } as const;

export const providerWebhooks: Documented = {
  method: "post",
  path: PROVIDER_WEBHOOKS_PATH,
  scope: null,
  documentation: {
    operationId: "receiveProviderEvent",
    tags: ["Provider"],
    summary: "Take in an event of Stripe's",
    description:
      "For Stripe alone: no API key and no Idempotency-Key, since the signature over the raw bytes is the credential and each event id is applied once. Up to 1 MiB; unknown fields are kept.",
    request: {
      headers: z.object({
        "Stripe-Signature": z.string().openapi({
          description: "As Stripe signs it, with a secret of this endpoint and no longer than 5 minutes ago.",
          example: "t=1790000000,v1=5257a869e7ec…",
        }),
      }),
      body: { required: true, content: jsonContent(z.looseObject({ id: z.string(), type: z.string() })) },
    },
    responses: {
      200: {
        description:
          "It is stored, was stored before, or is about nothing of ours: Stripe need not send it again.",
        content: jsonContent(z.strictObject({ received: z.literal(true) })),
      },
      ...problemsAlone(
        "webhook_signature_invalid",
        "malformed_request",
        "request_timeout",
        "body_too_large",
        "internal_error",
        "provider_webhooks_closed",
        "service_unavailable",
      ),
    },
  },
};

/**
 * Stripe's events: no key of ours, for the signature over the raw bytes is the credential, and no look at the content
 * type. 2xx once the event is stored or needs no storing; anything else makes Stripe send it again.
 */
export function receiveStripeEvent(deps: Deps): Work {
  return async ({ http }) => {
    if (deps.settings.stripeWebhookSecrets.length === 0) {
      throw new PawlError("provider_webhooks_closed", "STRIPE_WEBHOOK_SECRET is not set.");
    }
    const { incoming } = http.env;
    const timeoutMs = deps.settings.requestBodyTimeoutMs;
    const body = await readBody(incoming, { maxBytes: MAX_BODY_BYTES, timeoutMs });
    const received = await receiveProviderEvent(deps, body, headerLines(incoming, "stripe-signature"));
    if (received.type === "refused") throw refusal(received.reason);
    return RECEIVED;
  };
}

/** One text for all that is not signed: whoever guesses learns nothing from how he failed. */
function refusal(reason: NoticeRefusal): PawlError {
  if (reason === "malformed") {
    return new PawlError("malformed_request", "The body is signed, and is no event as Stripe sends them.");
  }
  return new PawlError(
    "webhook_signature_invalid",
    "No Stripe-Signature over exactly these bytes, by a secret of this endpoint and within 5 minutes.",
  );
}
