import type { z } from "@hono/zod-openapi";
import type { EffectRequest } from "../../domain/admit-effect.js";
import type { ErrorCode } from "../../domain/errors.js";
import type { Scope } from "../../domain/scopes.js";
import { requestEffect } from "../../operations/request-effect.js";
import type { ApiRequest, Endpoint } from "../endpoint.js";
import { answerAsPreferred, keyedCallOf } from "../keyed.js";
import { jsonContent, keyedHeaders, keyedRequestHeaders, problems } from "../openapi-parts.js";
import { parsePrefer } from "../prefer.js";
import type { Answer } from "../problem.js";
import { readOptionalJson } from "../read-json.js";
import { headerLines } from "../request-headers.js";
import { paymentSchema, problemSchema, refundSchema } from "../response-schemas.js";
import { cancelInput, captureInput, noQuery, refundInput } from "../schemas.js";
import { validated, validatedQuery } from "../validate.js";
import { paymentId } from "./path-ids.js";

/** What differs between the three. */
interface Effect<Input> {
  readonly path: string;
  readonly scope: Scope;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  readonly result: { readonly status: 200 | 201; readonly schema: z.ZodType; readonly description: string };
  readonly refusals: readonly ErrorCode[];
  request(input: Input): EffectRequest;
}

/** Codes of any request that carries a body and a key. */
const KEYED_REQUEST: readonly ErrorCode[] = [
  "malformed_request",
  "validation_failed",
  "card_number_refused",
  "idempotency_key_missing",
  "idempotency_key_invalid",
  "request_timeout",
  "not_found",
  "idempotency_key_in_progress",
  "idempotency_key_expired",
  "body_too_large",
  "unsupported_media_type",
  "idempotency_key_reused",
  "amount_not_supported",
  "provider_unavailable",
];

function endpointOf<Input>(effect: Effect<Input>): Endpoint {
  const { status, schema, description } = effect.result;
  return {
    method: "post",
    path: effect.path,
    scope: effect.scope,
    documentation: {
      operationId: effect.operationId,
      tags: [effect.tag],
      summary: effect.summary,
      description: effect.description,
      request: {
        params: paymentId.schema,
        headers: keyedRequestHeaders,
        body: { required: false, content: jsonContent(effect.input) },
      },
      responses: {
        [status]: { description, headers: keyedHeaders, content: jsonContent(schema) },
        202: {
          description: "No outcome yet; the work goes on.",
          headers: keyedHeaders,
          content: jsonContent(schema),
        },
        402: {
          description: "Refused by the provider; see `code`.",
          headers: keyedHeaders,
          content: { "application/problem+json": { schema: problemSchema } },
        },
        ...problems(...effect.refusals, ...KEYED_REQUEST),
      },
    },
    handle: (request) => handle(effect, request),
  };
}

async function handle<Input>(effect: Effect<Input>, request: ApiRequest): Promise<Answer> {
  const { deps, http } = request;
  const { incoming } = http.env;
  const id = paymentId.of(request);
  validatedQuery(noQuery, http.req.url);
  const call = keyedCallOf(request);
  const body = await readOptionalJson(incoming, deps.settings.requestBodyTimeoutMs);
  const asked = effect.request(validated(effect.input, body));
  const prefer = parsePrefer(headerLines(incoming, "prefer").join(","), deps.settings.defaultWaitMs);
  return answerAsPreferred(prefer, requestEffect(deps, call, id, asked, prefer));
}

const capture = endpointOf({
  path: "/v1/payments/{id}/capture",
  scope: "payments:write",
  operationId: "capturePayment",
  tag: "Payments",
  summary: "Capture an authorized payment",
  description: "Takes all or part of the authorization, once; the rest is released.",
  input: captureInput,
  result: { status: 200, schema: paymentSchema, description: "Captured." },
  refusals: [
    "invalid_state",
    "operation_in_progress",
    "authorization_expired",
    "amount_too_large",
    "payment_rejected",
  ],
  request: ({ amount }) => ({ kind: "capture", amount }),
});

const cancel = endpointOf({
  path: "/v1/payments/{id}/cancel",
  scope: "payments:write",
  operationId: "cancelPayment",
  tag: "Payments",
  summary: "Cancel a payment that is not paid",
  description: "Releases an authorization, or ends a payment that waits for its customer.",
  input: cancelInput,
  result: { status: 200, schema: paymentSchema, description: "Canceled." },
  refusals: ["invalid_state", "operation_in_progress", "payment_rejected"],
  request: ({ reason }) => ({ kind: "cancel", reason }),
});

const refund = endpointOf({
  path: "/v1/payments/{id}/refunds",
  scope: "refunds:write",
  operationId: "createRefund",
  tag: "Refunds",
  summary: "Refund a payment",
  description:
    "Any number of refunds, never more than was captured in sum: each reserves its amount when it is accepted.",
  input: refundInput,
  result: { status: 201, schema: refundSchema, description: "Refunded." },
  refusals: ["invalid_state", "amount_too_large", "refund_failed", "payment_rejected"],
  request: ({ amount, reason, metadata }) => ({ kind: "refund", amount, reason, metadata }),
});

export const effectEndpoints: readonly Endpoint[] = [capture, cancel, refund];
