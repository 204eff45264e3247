import { refundDocument } from "../../domain/documents.js";
import { getRefund, listRefunds } from "../../operations/read-refunds.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { listOf, refundSchema } from "../response-schemas.js";
import { noQuery, pageQuery } from "../schemas.js";
import { validatedQuery } from "../validate.js";
import { paymentId, refundId } from "./path-ids.js";

const TAG = "Refunds";

const read: Endpoint = {
  method: "get",
  path: "/v1/refunds/{id}",
  scope: "payments:read",
  documentation: {
    operationId: "getRefund",
    tags: [TAG],
    summary: "Read a refund",
    request: { params: refundId.schema },
    responses: {
      200: { description: "The refund as it is now.", content: jsonContent(refundSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = refundId.of(request);
    validatedQuery(noQuery, request.http.req.url);
    const { refund, resolution } = await getRefund(request.deps, request.caller, id);
    return jsonAnswer(200, refundDocument(refund, resolution));
  },
};

const list: Endpoint = {
  method: "get",
  path: "/v1/payments/{id}/refunds",
  scope: "payments:read",
  documentation: {
    operationId: "listRefunds",
    tags: [TAG],
    summary: "List a payment's refunds",
    description: "Ours and those made outside Pawl.",
    request: { params: paymentId.schema, query: pageQuery },
    responses: {
      200: {
        description: "A page of refunds, the newest first.",
        content: jsonContent(listOf(refundSchema)),
      },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = paymentId.of(request);
    const { limit, cursor } = validatedQuery(pageQuery, request.http.req.url);
    const page = await listRefunds(request.deps, request.caller, id, { limit, cursor: cursor ?? null });
    return listAnswer(page, ({ refund, resolution }) => refundDocument(refund, resolution));
  },
};

export const refundEndpoints: readonly Endpoint[] = [read, list];
