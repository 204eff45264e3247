import { describe, expect, test } from "vitest";
import { createApp } from "../../src/http/app.js";
import { listOf } from "../../src/http/response-schemas.js";
import { reviewEvidenceSchema, reviewSchema } from "../../src/http/review-schemas.js";
import { serve } from "../../src/http/serve.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { type ApiAnswer, ApiClient, newKey } from "../support/api-client.js";
import type { Harness } from "../support/harness.js";
import { IMPATIENT, silentProvider, untilClosed } from "../support/reviews.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

async function keyFor(harness: Harness, tenantId: string, scopes: readonly ("admin" | "payments:read")[]) {
  const key = await createApiKey(harness.deps, { tenantId, scopes, livemode: false });
  if (key === null) throw new Error("the tenant vanished");
  return key;
}

/** An API with a review in it, and the clients of an administrator, of another tenant's, and of nobody in particular. */
async function withApi(
  work: (api: {
    harness: Harness;
    admin: ApiClient;
    adminKeyId: string;
    stranger: ApiClient;
    merchant: ApiClient;
    reviewId: string;
    paymentId: string;
  }) => Promise<void>,
): Promise<void> {
  const harness = await stage.start({ env: IMPATIENT });
  const { review, id: paymentId } = await silentProvider(harness);
  const server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  try {
    const url = `http://127.0.0.1:${server.port}`;
    const other = await createTenant(harness.deps, "other");
    const key = await keyFor(harness, harness.caller.tenantId, ["admin"]);
    await work({
      harness,
      admin: new ApiClient(url, key.secret),
      adminKeyId: key.id,
      stranger: new ApiClient(url, (await keyFor(harness, other.id, ["admin"])).secret),
      merchant: new ApiClient(url, harness.secret),
      reviewId: review.id,
      paymentId,
    });
  } finally {
    await server.close(1_000);
  }
}

function resolve(client: ApiClient, reviewId: string, body: object, key = newKey()): Promise<ApiAnswer> {
  return client.request("POST", `/v1/reviews/${reviewId}/resolve`, {
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
  });
}

const CANCEL = { resolution: "cancel_at_provider", reason: "the bank's report has no charge" };

describe("reviews over HTTP", () => {
  test("show what was sent, asked and answered, and what may be decided", async () => {
    await withApi(async ({ harness, admin, reviewId, paymentId }) => {
      const answer = await admin.get(`/v1/reviews/${reviewId}`);
      expect(answer.status).toBe(200);
      const review = reviewEvidenceSchema.parse(answer.json);
      expect(review).toMatchObject({
        status: "open",
        reason: "outcome_unknown",
        resolution: null,
        payment: { id: paymentId, status: "needs_review" },
        refund: null,
        attempt: {
          kind: "charge",
          state: "confirm_unknown",
          recovery_point: "charge_created",
          unresolved: true,
        },
      });
      expect(review.attempt.unknown_for_ms).toBeGreaterThanOrEqual(200);
      expect(review.attempt.next_question_at).not.toBeNull();
      expect(Date.parse(review.attempt.key_guards_until ?? "")).toBe(
        Date.parse(review.attempt.confirm_first_sent_at ?? "") + harness.deps.settings.providerKeyLifetimeMs,
      );
      const [object] = await harness.sandbox.control.listPaymentIntents();
      expect(review.attempt.provider_payment_id).toBe(object?.payment_intent.id);
      const questions = review.timeline.filter((entry) => entry.call === "get");
      expect(questions[0]).toMatchObject({ outcome: "unanswered: server_error" });
      expect(questions[0]?.provider_request_id).toMatch(/^req_/);
      expect(review.timeline.some((entry) => entry.outcome === "unknown: connection_lost")).toBe(true);
      expect(review.allowed_resolutions.map((one) => one.resolution)).toEqual([
        "adopt_provider_object",
        "cancel_at_provider",
        "retry_same_key",
      ]);
    });
  });

  test("are listed open or closed, in pages, and each of its tenant's alone", async () => {
    await withApi(async ({ harness, admin, stranger, reviewId, paymentId }) => {
      const list = async (client: ApiClient, query: string) =>
        listOf(reviewSchema).parse((await client.get(`/v1/reviews${query}`)).json);
      expect((await list(admin, "?status=open")).data).toMatchObject([
        { id: reviewId, payment_id: paymentId },
      ]);
      expect((await list(admin, "?status=closed")).data).toEqual([]);
      expect((await list(stranger, "")).data).toEqual([]);
      await resolve(admin, reviewId, CANCEL);
      await harness.sandbox.control.clearFaults();
      await untilClosed(harness, reviewId);
      const again = await silentProvider(harness);
      const first = await list(admin, "?limit=1");
      expect(first).toMatchObject({ data: [{ id: again.review.id, status: "open" }], has_more: true });
      const second = await list(admin, `?limit=1&cursor=${first.next_cursor}`);
      expect(second).toMatchObject({
        data: [{ id: reviewId, status: "closed", closed_by: "person" }],
        has_more: false,
      });
      expect((await list(admin, "?status=closed")).data.map((one) => one.id)).toEqual([reviewId]);
      expect((await admin.get("/v1/reviews?status=done")).json.code).toBe("validation_failed");
      expect((await stranger.get(`/v1/reviews/${reviewId}`)).status).toBe(404);
      expect((await resolve(stranger, reviewId, CANCEL)).status).toBe(404);
    });
  });

  test("take a key with the scope admin, and no other", async () => {
    await withApi(async ({ merchant, reviewId }) => {
      for (const answer of [
        await merchant.get("/v1/reviews"),
        await merchant.get(`/v1/reviews/${reviewId}`),
        await resolve(merchant, reviewId, CANCEL),
      ]) {
        expect(answer.status).toBe(403);
        expect(answer.json.code).toBe("permission_denied");
      }
    });
  });

  test("are resolved once, with who and why, and the answer is replayed byte for byte", async () => {
    await withApi(async ({ harness, admin, adminKeyId, merchant, reviewId }) => {
      const key = newKey();
      const answer = await resolve(admin, reviewId, CANCEL, key);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("location")).toBe(`/v1/reviews/${reviewId}`);
      expect(answer.headers.get("idempotency-key-expires")).not.toBeNull();
      expect(reviewSchema.parse(answer.json)).toMatchObject({
        status: "open",
        resolution: "cancel_at_provider",
        resolution_reason: CANCEL.reason,
        resolved_by: adminKeyId,
        closed_at: null,
      });
      const open = reviewEvidenceSchema.parse((await admin.get(`/v1/reviews/${reviewId}`)).json);
      expect(open.allowed_resolutions).toEqual([]);
      expect(open.timeline.find((entry) => entry.kind === "request")).toMatchObject({
        reason: `cancel_at_provider requested: ${CANCEL.reason}`,
        outcome: `by ${adminKeyId}`,
      });
      const lateKey = newKey();
      expect((await resolve(admin, reviewId, CANCEL, lateKey)).json.code).toBe("review_closed");
      expect((await merchant.get(`/v1/idempotency_keys/${lateKey}?operation=reviews.resolve`)).status).toBe(
        404,
      );
      await harness.sandbox.control.clearFaults();
      await untilClosed(harness, reviewId);
      const replay = await resolve(admin, reviewId, CANCEL, key);
      expect(replay.text).toBe(answer.text);
      expect(replay.headers.get("idempotent-replayed")).toBe("true");
      const known = await merchant.get(`/v1/idempotency_keys/${key}?operation=reviews.resolve`);
      expect(known.json).toMatchObject({ state: "completed", resource_id: reviewId, response_status: 200 });
      const closed = reviewEvidenceSchema.parse((await admin.get(`/v1/reviews/${reviewId}`)).json);
      expect(closed).toMatchObject({ status: "closed", closed_by: "person", payment: { status: "failed" } });
    });
  });

  test("refuse what they do not take, by name, and a request that is not whole", async () => {
    await withApi(async ({ admin, reviewId }) => {
      const refused = await resolve(admin, reviewId, { ...CANCEL, resolution: "mark_not_performed" });
      expect(refused.status).toBe(409);
      expect(refused.json).toMatchObject({
        code: "resolution_not_allowed",
        detail:
          "This review does not take mark_not_performed; it takes adopt_provider_object, cancel_at_provider, retry_same_key.",
      });
      const pointersOf = async (body: object) =>
        (await resolve(admin, reviewId, body)).json.errors?.map((fault) => fault.pointer);
      expect(await pointersOf({ resolution: "cancel_at_provider" })).toEqual(["/reason"]);
      expect(await pointersOf({ ...CANCEL, reason: " " })).toEqual(["/reason"]);
      expect(await pointersOf({ ...CANCEL, reason: "x".repeat(1_001) })).toEqual(["/reason"]);
      expect(await pointersOf({ ...CANCEL, resolution: "forget" })).toEqual(["/resolution"]);
      expect(await pointersOf({ ...CANCEL, object: "pi_1" })).toEqual(["/object"]);
      expect(await pointersOf({ ...CANCEL, provider_object_id: "pi_other" })).toEqual([
        "/provider_object_id",
      ]);
      const retry = { resolution: "retry_same_key", reason: "x", provider_object_id: "pi_other" };
      expect(await pointersOf(retry)).toEqual(["/provider_object_id"]);
      const keyless = await admin.request("POST", `/v1/reviews/${reviewId}/resolve`, {
        body: JSON.stringify(CANCEL),
        headers: { "Content-Type": "application/json" },
      });
      expect(keyless.json.code).toBe("idempotency_key_missing");
      expect((await resolve(admin, `rev_${"0".repeat(32)}`, CANCEL)).status).toBe(404);
      expect((await admin.get("/v1/reviews/rev_1")).status).toBe(404);
      // None of it has touched the review.
      expect((await resolve(admin, reviewId, { ...CANCEL, reason: "x".repeat(1_000) })).status).toBe(200);
    });
  });
});
