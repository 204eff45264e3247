import { eventDocument } from "../../domain/events.js";
import { getEvent, listEvents } from "../../operations/read-events.js";
import { redeliverEvent } from "../../operations/redeliver-event.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { bodilessWrite, KEYED_WRITE, keyedWriteHeaders, keyedWriteRequestHeaders } from "../keyed-writes.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { listOf } from "../response-schemas.js";
import { noQuery, pageQuery } from "../schemas.js";
import { validatedQuery } from "../validate.js";
import { eventSchema, noBody, redeliverySchema } from "../webhook-schemas.js";
import { eventId } from "./path-ids.js";

const TAG = "Events";

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
    request: { params: eventId.schema },
    responses: {
      200: { description: "The event, as receivers get it.", content: jsonContent(eventSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = eventId.of(request);
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
      params: eventId.schema,
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
    const id = eventId.of(request);
    return bodilessWrite(request, (call) => redeliverEvent(request.deps, call, id));
  },
};

export const eventEndpoints: readonly Endpoint[] = [list, read, redeliver];
