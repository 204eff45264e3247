import { z } from "@hono/zod-openapi";
import { PawlError } from "../../domain/errors.js";
import { eventDocument } from "../../domain/events.js";
import { getEvent, listEvents } from "../../operations/read-events.js";
import { redeliverEvent } from "../../operations/redeliver-event.js";
import type { ApiRequest, Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { bodilessWrite, KEYED_WRITE, keyedWriteHeaders, keyedWriteRequestHeaders } from "../keyed-writes.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { listOf } from "../response-schemas.js";
import { noQuery, pageQuery } from "../schemas.js";
import { validatedQuery } from "../validate.js";
import { eventSchema, noBody, redeliverySchema } from "../webhook-schemas.js";

const TAG = "Events";
const EVENT_ID = /^evt_[0-9a-f]{32}$/;
const pathId = z.object({
  id: z.string().openapi({ example: "evt_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
});

/** Throws PawlError not_found for an id that no event can have. */
function eventIdOf(request: ApiRequest): string {
  const id = request.http.req.param("id") ?? "";
  if (!EVENT_ID.test(id)) throw new PawlError("not_found", "There is no such event.");
  return id;
}

const list: Endpoint = {
  method: "get",
  path: "/v1/events",
  scope: "payments:read",
  documentation: {
    operationId: "listEvents",
    tags: [TAG],
    summary: "List events",
    description: "One for each fact, whether there are receivers or not.",
    request: { query: pageQuery },
    responses: {
      200: { description: "A page of events, the newest first.", content: jsonContent(listOf(eventSchema)) },
      ...problems("validation_failed"),
    },
  },
  async handle({ deps, caller, http }) {
    const { limit, cursor } = validatedQuery(pageQuery, http.req.url);
    return listAnswer(await listEvents(deps, caller, { limit, cursor: cursor ?? null }), eventDocument);
  },
};

const read: Endpoint = {
  method: "get",
  path: "/v1/events/{id}",
  scope: "payments:read",
  documentation: {
    operationId: "getEvent",
    tags: [TAG],
    summary: "Read an event",
    request: { params: pathId },
    responses: {
      200: { description: "The event, as receivers get it.", content: jsonContent(eventSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = eventIdOf(request);
    validatedQuery(noQuery, request.http.req.url);
    return jsonAnswer(200, eventDocument(await getEvent(request.deps, request.caller, id)));
  },
};

const redeliver: Endpoint = {
  method: "post",
  path: "/v1/events/{id}/redeliver",
  scope: "webhooks:manage",
  documentation: {
    operationId: "redeliverEvent",
    tags: [TAG],
    summary: "Send an event again",
    description: "To every enabled receiver that wants its type, under the same event id.",
    request: {
      params: pathId,
      headers: keyedWriteRequestHeaders,
      body: { required: false, content: jsonContent(noBody) },
    },
    responses: {
      200: {
        description: "It is on its way.",
        headers: keyedWriteHeaders,
        content: jsonContent(redeliverySchema),
      },
      ...problems("not_found", ...KEYED_WRITE),
    },
  },
  async handle(request) {
    const id = eventIdOf(request);
    return bodilessWrite(request, (call) => redeliverEvent(request.deps, call, id));
  },
};

export const eventEndpoints: readonly Endpoint[] = [list, read, redeliver];
