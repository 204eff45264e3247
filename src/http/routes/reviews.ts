import { reviewDocument, reviewEvidenceDocument } from "../../domain/review-document.js";
import { getReview, listReviews } from "../../operations/read-reviews.js";
import { resolveReview } from "../../operations/resolve-review.js";
import type { Endpoint } from "../endpoint.js";
import { jsonAnswer, listAnswer } from "../json-answer.js";
import { keyedAnswer, keyedCallOf } from "../keyed.js";
import { KEYED_WRITE, keyedWriteHeaders, keyedWriteRequestHeaders } from "../keyed-writes.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { readJson } from "../read-json.js";
import { listOf } from "../response-schemas.js";
import { resolutionInput, reviewEvidenceSchema, reviewSchema, reviewsQuery } from "../review-schemas.js";
import { noQuery } from "../schemas.js";
import { validated, validatedQuery } from "../validate.js";
import { reviewId } from "./path-ids.js";

const TAG = "Reviews";
const PATH = "/v1/reviews";

const list: Endpoint = {
  method: "get",
  path: PATH,
  scope: "admin",
  documentation: {
    operationId: "listReviews",
    tags: [TAG],
    summary: "List what waits for a person",
    request: { query: reviewsQuery },
    responses: {
      200: {
        description: "A page of reviews, the newest first.",
        content: jsonContent(listOf(reviewSchema)),
      },
      ...problems("validation_failed"),
    },
  },
  async handle({ deps, caller, http }) {
    const { status, limit, cursor } = validatedQuery(reviewsQuery, http.req.url);
    const page = await listReviews(deps, caller, { status }, { limit, cursor: cursor ?? null });
    return listAnswer(page, reviewDocument);
  },
};

const read: Endpoint = {
  method: "get",
  path: `${PATH}/{id}`,
  scope: "admin",
  documentation: {
    operationId: "getReview",
    tags: [TAG],
    summary: "Read a review with its evidence",
    description: "What was sent, what was asked, what came back, and what may be decided now.",
    request: { params: reviewId.schema },
    responses: {
      200: { description: "The review as it is now.", content: jsonContent(reviewEvidenceSchema) },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle(request) {
    const id = reviewId.of(request);
    validatedQuery(noQuery, request.http.req.url);
    return jsonAnswer(200, reviewEvidenceDocument(await getReview(request.deps, request.caller, id)));
  },
};

const resolve: Endpoint = {
  method: "post",
  path: `${PATH}/{id}/resolve`,
  scope: "admin",
  documentation: {
    operationId: "resolveReview",
    tags: [TAG],
    summary: "Resolve a review",
    description:
      "Records the decision; a worker carries it out, after it has asked the provider. A fact that comes first still wins.",
    request: {
      params: reviewId.schema,
      headers: keyedWriteRequestHeaders,
      body: { required: true, content: jsonContent(resolutionInput) },
    },
    responses: {
      200: {
        description: "The review, with the decision.",
        headers: keyedWriteHeaders,
        content: jsonContent(reviewSchema),
      },
      ...problems("not_found", "review_closed", "review_changed", "resolution_not_allowed", ...KEYED_WRITE),
    },
  },
  async handle(request) {
    const id = reviewId.of(request);
    const { deps, http } = request;
    validatedQuery(noQuery, http.req.url);
    const call = keyedCallOf(request);
    const body = await readJson(http.env.incoming, deps.settings.requestBodyTimeoutMs);
    const { resolution, reason, provider_object_id, version } = validated(resolutionInput, body);
    const decision = { resolution, reason, providerObjectId: provider_object_id, version };
    return keyedAnswer(await resolveReview(deps, call, id, decision), null);
  },
};

export const reviewEndpoints: readonly Endpoint[] = [list, read, resolve];
