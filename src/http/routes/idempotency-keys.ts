import { z } from "@hono/zod-openapi";
import { PawlError } from "../../domain/errors.js";
import { getIdempotencyKey, type IdempotencyKeyView } from "../../operations/read-idempotency-key.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer } from "../json-answer.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { idempotencyKeySchema } from "../response-schemas.js";
import { idempotencyKeyQuery } from "../schemas.js";
import { validatedQuery } from "../validate.js";

const KEY = /^[\x20-\x7e]{1,255}$/;

const read: Endpoint = {
  method: "get",
  path: "/v1/idempotency_keys/{key}",
  scope: "payments:read",
  documentation: {
    operationId: "getIdempotencyKey",
    tags: ["Idempotency keys"],
    summary: "Read a key's state",
    description: "What became of a key, so that a client can ask instead of guess.",
    request: {
      params: z.object({
        key: z.string().openapi({
          description:
            "The key itself, percent-encoded, without quotes. The keys `.` and `..` cannot be asked about: clients and servers alike take them, encoded or not, for steps in a path (RFC 3986 section 5.2.4).",
        }),
      }),
      query: idempotencyKeyQuery,
    },
    responses: {
      200: { description: "The key's record.", content: jsonContent(idempotencyKeySchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle({ deps, caller, http }) {
    const { operation } = validatedQuery(idempotencyKeyQuery, http.req.url);
    const key = http.req.param("key") ?? "";
    if (!KEY.test(key)) throw new PawlError("not_found", "There is no such key.");
    return jsonAnswer(200, keyDocument(await getIdempotencyKey(deps, caller, operation, key)));
  },
};

function keyDocument(view: IdempotencyKeyView) {
  return {
    object: "idempotency_key",
    key: view.key,
    operation: view.operation,
    state: view.state,
    resource_id: view.resourceId,
    run: view.run,
    created_at: view.createdAt.toISOString(),
    completed_at: view.completedAt?.toISOString() ?? null,
    expires_at: view.expiresAt?.toISOString() ?? null,
    response_status: view.responseStatus,
  };
}

export const idempotencyKeyEndpoints: readonly Endpoint[] = [read];
