import { paymentDocument } from "../../domain/documents.js";
import { timelineEntryDocument } from "../../domain/timeline-entry.js";
import { createPayment } from "../../operations/create-payment.js";
import { getPayment, getTimeline, listPayments } from "../../operations/read-payments.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { answerAsPreferred, keyedCallOf } from "../keyed.js";
import { jsonContent, keyedHeaders, keyedRequestHeaders, problems } from "../openapi-parts.js";
import { parsePrefer } from "../prefer.js";
import { readJson } from "../read-json.js";
import { headerLines } from "../request-headers.js";
import { listOf, paymentSchema, problemSchema, timelineEntrySchema } from "../response-schemas.js";
import { noQuery, pageQuery, paymentInput, paymentsQuery } from "../schemas.js";
import { validated, validatedQuery } from "../validate.js";
import { paymentId } from "./path-ids.js";

const TAG = "Payments";

const create: Endpoint = {
  method: "post",
  path: "/v1/payments",
  scope: "payments:write",
  documentation: {
    operationId: "createPayment",
    tags: [TAG],
    summary: "Create a payment",
    description:
      "Records the payment under its Idempotency-Key and waits for the outcome as `Prefer` says. Sent again with the same key, it is answered with the first outcome and charges nothing.",
    request: {
      headers: keyedRequestHeaders,
      body: { required: true, content: jsonContent(paymentInput) },
    },
    responses: {
      201: {
        description: "The outcome, or the customer must act.",
        headers: keyedHeaders,
        content: jsonContent(paymentSchema),
      },
      202: {
        description: "Still processing; the work goes on.",
        headers: keyedHeaders,
        content: jsonContent(paymentSchema),
      },
      402: {
        description: "Declined, or rejected by the provider: `payment_declined`, `payment_rejected`.",
        headers: keyedHeaders,
        content: { "application/problem+json": { schema: problemSchema } },
      },
      ...problems(
        "malformed_request",
        "validation_failed",
        "card_number_refused",
        "idempotency_key_missing",
        "idempotency_key_invalid",
        "request_timeout",
        "idempotency_key_in_progress",
        "idempotency_key_expired",
        "merchant_order_id_taken",
        "body_too_large",
        "unsupported_media_type",
        "idempotency_key_reused",
        "amount_not_supported",
        "provider_unavailable",
      ),
    },
  },
  async handle(request) {
    const { deps, http } = request;
    const { incoming } = http.env;
    validatedQuery(noQuery, http.req.url);
    const call = keyedCallOf(request);
    const input = validated(paymentInput, await readJson(incoming, deps.settings.requestBodyTimeoutMs));
    const prefer = parsePrefer(headerLines(incoming, "prefer").join(","), deps.settings.defaultWaitMs);
    return answerAsPreferred(prefer, createPayment(deps, call, input, prefer));
  },
};

const read: Endpoint = {
  method: "get",
  path: "/v1/payments/{id}",
  scope: "payments:read",
  documentation: {
    operationId: "getPayment",
    tags: [TAG],
    summary: "Read a payment",
    request: { params: paymentId.schema },
    responses: {
      200: { description: "The payment as it is now.", content: jsonContent(paymentSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = paymentId.of(request);
    validatedQuery(noQuery, request.http.req.url);
    return jsonAnswer(200, paymentDocument(await getPayment(request.deps, request.caller, id)));
  },
};

const list: Endpoint = {
  method: "get",
  path: "/v1/payments",
  scope: "payments:read",
  documentation: {
    operationId: "listPayments",
    tags: [TAG],
    summary: "List payments",
    request: { query: paymentsQuery },
    responses: {
      200: {
        description: "A page of payments, the newest first.",
        content: jsonContent(listOf(paymentSchema)),
      },
      ...problems("validation_failed"),
    },
  },
  async handle({ deps, caller, http }) {
    const query = validatedQuery(paymentsQuery, http.req.url);
    const filter = {
      ...(query.status === undefined ? {} : { status: query.status }),
      ...(query.merchant_order_id === undefined ? {} : { merchantOrderId: query.merchant_order_id }),
      ...(query.created_after === undefined ? {} : { createdAfter: query.created_after }),
      ...(query.created_before === undefined ? {} : { createdBefore: query.created_before }),
    };
    const page = await listPayments(deps, caller, filter, {
      limit: query.limit,
      cursor: query.cursor ?? null,
    });
    return listAnswer(page, paymentDocument);
  },
};

const timeline: Endpoint = {
  method: "get",
  path: "/v1/payments/{id}/timeline",
  scope: "payments:read",
  documentation: {
    operationId: "getPaymentTimeline",
    tags: [TAG],
    summary: "Read a payment's timeline",
    description: "Every transition, and every send and question that did not go as usual.",
    request: { params: paymentId.schema, query: pageQuery },
    responses: {
      200: {
        description: "A page of entries, the oldest first.",
        content: jsonContent(listOf(timelineEntrySchema)),
      },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = paymentId.of(request);
    const { limit, cursor } = validatedQuery(pageQuery, request.http.req.url);
    const page = await getTimeline(request.deps, request.caller, id, { limit, cursor: cursor ?? null });
    return listAnswer(page, timelineEntryDocument);
  },
};

export const paymentEndpoints: readonly Endpoint[] = [create, list, read, timeline];
