import { webhookEndpointDocument } from "../../domain/webhook.js";
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  enableWebhookEndpoint,
  rotateWebhookSecret,
} from "../../operations/manage-webhook-endpoints.js";
import {
  type Delivery,
  getWebhookEndpoint,
  listDeliveries,
  listWebhookEndpoints,
} from "../../operations/read-webhook-endpoints.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { keyedAnswer, keyedCallOf } from "../keyed.js";
import { bodilessWrite, KEYED_WRITE, keyedWriteHeaders, keyedWriteRequestHeaders } from "../keyed-writes.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { readJson } from "../read-json.js";
import { listOf } from "../response-schemas.js";
import { noQuery, pageQuery } from "../schemas.js";
import { validated, validatedQuery } from "../validate.js";
import { deliverySchema, noBody, webhookEndpointInput, webhookEndpointSchema } from "../webhook-schemas.js";
import { webhookEndpointId } from "./path-ids.js";

const TAG = "Webhooks";
const PATH = "/v1/webhook_endpoints";
const SCOPE = "webhooks:manage";

const create: Endpoint = {
  method: "post",
  path: PATH,
  scope: SCOPE,
  documentation: {
    operationId: "createWebhookEndpoint",
    tags: [TAG],
    summary: "Register a receiver",
    description: "The answer shows the endpoint's secret, once.",
    request: {
      headers: keyedWriteRequestHeaders,
      body: { required: true, content: jsonContent(webhookEndpointInput) },
    },
    responses: {
      201: {
        description: "The endpoint, with its secret.",
        headers: keyedWriteHeaders,
        content: jsonContent(webhookEndpointSchema),
      },
      ...problems(...KEYED_WRITE),
    },
  },
  async handle(request) {
    const { deps, http } = request;
    validatedQuery(noQuery, http.req.url);
    const call = keyedCallOf(request);
    const body = await readJson(http.env.incoming, deps.settings.requestBodyTimeoutMs);
    const input = validated(webhookEndpointInput, body);
    return keyedAnswer(await createWebhookEndpoint(deps, call, input), null);
  },
};

const list: Endpoint = {
  method: "get",
  path: PATH,
  scope: SCOPE,
  documentation: {
    operationId: "listWebhookEndpoints",
    tags: [TAG],
    summary: "List receivers",
    request: { query: pageQuery },
    responses: {
      200: {
        description: "A page of endpoints, the newest first.",
        content: jsonContent(listOf(webhookEndpointSchema)),
      },
      ...problems("validation_failed"),
    },
  },
  async handle({ deps, caller, http }) {
    const { limit, cursor } = validatedQuery(pageQuery, http.req.url);
    const page = await listWebhookEndpoints(deps, caller, { limit, cursor: cursor ?? null });
    return listAnswer(page, (endpoint) => webhookEndpointDocument(endpoint));
  },
};

const read: Endpoint = {
  method: "get",
  path: `${PATH}/{id}`,
  scope: SCOPE,
  documentation: {
    operationId: "getWebhookEndpoint",
    tags: [TAG],
    summary: "Read a receiver",
    request: { params: webhookEndpointId.schema },
    responses: {
      200: { description: "The endpoint as it is now.", content: jsonContent(webhookEndpointSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = webhookEndpointId.of(request);
    validatedQuery(noQuery, request.http.req.url);
    const endpoint = await getWebhookEndpoint(request.deps, request.caller, id);
    return jsonAnswer(200, webhookEndpointDocument(endpoint));
  },
};

const remove: Endpoint = {
  method: "delete",
  path: `${PATH}/{id}`,
  scope: SCOPE,
  documentation: {
    operationId: "deleteWebhookEndpoint",
    tags: [TAG],
    summary: "Delete a receiver",
    description: "Nothing more is sent to it, what is under way excepted.",
    request: { params: webhookEndpointId.schema },
    responses: { 204: { description: "It is gone." }, ...problems("validation_failed", "not_found") },
  },
  async handle(request) {
    const id = webhookEndpointId.of(request);
    validatedQuery(noQuery, request.http.req.url);
    await deleteWebhookEndpoint(request.deps, request.caller, id);
    return { status: 204, headers: {}, body: "" };
  },
};

const deliveries: Endpoint = {
  method: "get",
  path: `${PATH}/{id}/deliveries`,
  scope: SCOPE,
  documentation: {
    operationId: "listWebhookDeliveries",
    tags: [TAG],
    summary: "List what was sent to a receiver",
    request: { params: webhookEndpointId.schema, query: pageQuery },
    responses: {
      200: {
        description: "A page of deliveries, those of the newest events first.",
        content: jsonContent(listOf(deliverySchema)),
      },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = webhookEndpointId.of(request);
    const { limit, cursor } = validatedQuery(pageQuery, request.http.req.url);
    const page = await listDeliveries(request.deps, request.caller, id, { limit, cursor: cursor ?? null });
    return listAnswer(page, deliveryDocument);
  },
};

/** A call on one endpoint that changes it. */
function change(
  name: string,
  operation: typeof enableWebhookEndpoint,
  texts: { operationId: string; summary: string; description: string; result: string },
): Endpoint {
  const { result, ...documentation } = texts;
  return {
    method: "post",
    path: `${PATH}/{id}/${name}`,
    scope: SCOPE,
    documentation: {
      ...documentation,
      tags: [TAG],
      request: {
        params: webhookEndpointId.schema,
        headers: keyedWriteRequestHeaders,
        body: { required: false, content: jsonContent(noBody) },
      },
      responses: {
        200: { description: result, headers: keyedWriteHeaders, content: jsonContent(webhookEndpointSchema) },
        ...problems("not_found", ...KEYED_WRITE),
      },
    },
    async handle(request) {
      const id = webhookEndpointId.of(request);
      return bodilessWrite(request, (call) => operation(request.deps, call, id));
    },
  };
}

const rotate = change("rotate_secret", rotateWebhookSecret, {
  operationId: "rotateWebhookSecret",
  summary: "Make a new secret",
  description: "Both the new and the old secret sign until `previous_secret_expires_at`.",
  result: "The endpoint, with its new secret.",
});

const enable = change("enable", enableWebhookEndpoint, {
  operationId: "enableWebhookEndpoint",
  summary: "Use a disabled receiver again",
  description: "What waited for it is sent; events of the time in between can be sent with a redelivery.",
  result: "The endpoint, enabled.",
});

function deliveryDocument(delivery: Delivery) {
  return {
    object: "webhook_delivery",
    endpoint_id: delivery.endpointId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    payment_id: delivery.paymentId,
    state: delivery.state,
    tries: delivery.tries,
    last_tried_at: delivery.lastTriedAt?.toISOString() ?? null,
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    last_answer: delivery.lastAnswer,
    next_try_at: delivery.dueAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
  };
}

export const webhookEndpoints: readonly Endpoint[] = [create, list, read, remove, rotate, enable, deliveries];
