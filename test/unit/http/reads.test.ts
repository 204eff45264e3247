import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { PawlError } from "../../../src/domain/errors.js";
import {
  idempotencyKeySchema,
  paymentSchema,
  timelineEntrySchema,
} from "../../../src/http/response-schemas.js";
import { operations } from "./fake-operations.js";
import {
  CALLER,
  get,
  INPUT,
  PAYMENT,
  pointersOf,
  post,
  problemOf,
  startApp,
  type TestServer,
} from "./harness.js";

vi.mock(
  "../../../src/operations/authenticate.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/create-payment.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/read-payments.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/read-idempotency-key.js",
  async () => (await import("./fake-operations.js")).operations,
);

const PATH = `/v1/payments/${PAYMENT.id}`;
const AT = new Date("2026-11-29T12:00:00Z");
const ENTRY = {
  id: "tl_1",
  at: AT,
  kind: "send" as const,
  from: null,
  to: null,
  reason: "timeout",
  attemptId: "att_1",
  refundId: null,
  call: "confirm",
  providerKey: "payment-attempt:att_1:confirm",
  fence: 2,
  outcome: "unknown",
  providerRequestId: "req_1",
  sentAt: AT,
};
const KEY = {
  key: "a/b",
  operation: "payments.create",
  state: "completed" as const,
  resourceId: PAYMENT.id,
  run: 1,
  createdAt: AT,
  completedAt: AT,
  expiresAt: AT,
  responseStatus: 201,
};

let app: TestServer;
beforeAll(async () => {
  app = await startApp();
});
beforeEach(() => {
  operations.authenticate.mockReset().mockResolvedValue(CALLER);
  operations.createPayment.mockReset();
  operations.getPayment.mockReset().mockResolvedValue(PAYMENT);
  operations.listPayments
    .mockReset()
    .mockResolvedValue({ data: [PAYMENT], hasMore: true, nextCursor: "abc" });
  operations.getTimeline.mockReset().mockResolvedValue({ data: [ENTRY], hasMore: false, nextCursor: null });
  operations.getIdempotencyKey.mockReset().mockResolvedValue(KEY);
});
afterAll(() => app.server.close(1_000));

describe("a caller", () => {
  it.each([
    ["no credential", undefined],
    ["an empty one", ""],
    ["another scheme", "Basic cGF3bDp4"],
    ["no token", "Bearer"],
    ["two tokens", "Bearer a b"],
    ["other characters", "Bearer a'b"],
    ["a token without end", `Bearer ${"x".repeat(600)}`],
  ])("with %s gets 401 without a look-up", async (_what, authorization) => {
    for (const response of [
      await fetch(app.url + PATH, authorization === undefined ? {} : { headers: { authorization } }),
      await post(app, INPUT, { Authorization: authorization }),
    ]) {
      expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
      expect(await problemOf(response)).toMatchObject({ code: "authentication_required", status: 401 });
    }
    expect(operations.authenticate).not.toHaveBeenCalled();
  });

  it("is known before anything of the request is looked at", async () => {
    operations.authenticate.mockResolvedValue(null);
    const response = await post(app, "{", { "Idempotency-Key": undefined, "Content-Type": "text/plain" });
    expect((await problemOf(response)).code).toBe("authentication_required");
  });

  it("without the scope gets 403, for reads as for writes", async () => {
    operations.authenticate.mockResolvedValue({ ...CALLER, scopes: ["payments:write"] });
    expect(await problemOf(await get(app, PATH))).toMatchObject({ code: "permission_denied", status: 403 });
    operations.authenticate.mockResolvedValue({ ...CALLER, scopes: ["payments:read"] });
    expect(await problemOf(await post(app, INPUT))).toMatchObject({ code: "permission_denied" });
    expect(operations.getPayment).not.toHaveBeenCalled();
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("gets 503 and not 401 while keys cannot be looked up", async () => {
    operations.authenticate.mockRejectedValue(new PawlError("service_unavailable", "down"));
    expect(await problemOf(await get(app, PATH))).toMatchObject({ status: 503 });
  });
});

describe("a payment", () => {
  it("is shown as the OpenAPI document says", async () => {
    const response = await get(app, PATH);
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const document: unknown = await response.json();
    expect(paymentSchema.parse(document)).toMatchObject({
      id: PAYMENT.id,
      amount: 4200,
      created_at: "2026-11-29T12:00:00.000Z",
    });
    expect(operations.getPayment.mock.calls[0]?.slice(1)).toEqual([CALLER, PAYMENT.id]);
  });

  it.each([
    "pay_1",
    "pay_",
    `${PAYMENT.id}0`,
    PAYMENT.id.toUpperCase(),
    "re_0198d5f2a3c47b1e9d20f6c1a8e45b77",
    "%00",
    "..%2f..",
  ])("of the id %s cannot exist", async (id) => {
    expect(await problemOf(await get(app, `/v1/payments/${id}`))).toMatchObject({ code: "not_found" });
    expect(operations.getPayment).not.toHaveBeenCalled();
  });

  it("is the same with a key header or a method override, which mean nothing on a GET", async () => {
    const headers = {
      "Idempotency-Key": "K",
      "X-HTTP-Method-Override": "DELETE",
      "X-Method-Override": "POST",
    };
    expect((await get(app, PATH, headers)).status).toBe(200);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("answers HEAD with GET's headers and no body", async () => {
    const whole = await get(app, PATH);
    const length = (await whole.arrayBuffer()).byteLength;
    const head = await fetch(app.url + PATH, { method: "HEAD", headers: { authorization: "Bearer x" } });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect(head.headers.get("content-length")).toBe(String(length));
    const names = (response: Response) =>
      [...response.headers.keys()].filter((name) => name !== "keep-alive").sort();
    expect(names(head)).toEqual(names(whole));
  });
});

describe("lists", () => {
  it("are pages of what the filters leave", async () => {
    const query =
      "status=succeeded&merchant_order_id=order%2017&created_after=2026-01-01T00:00:00%2B09:00&created_before=2026-02-01T00:00:00.5Z&limit=100&cursor=abc";
    const response = await get(app, `/v1/payments?${query}`);
    expect(await response.json()).toMatchObject({
      data: [{ id: PAYMENT.id }],
      has_more: true,
      next_cursor: "abc",
    });
    expect(operations.listPayments.mock.calls[0]?.slice(2)).toEqual([
      {
        status: "succeeded",
        merchantOrderId: "order 17",
        createdAfter: new Date("2025-12-31T15:00:00Z"),
        createdBefore: new Date("2026-02-01T00:00:00.500Z"),
      },
      { limit: 100, cursor: "abc" },
    ]);
  });

  it("have 20 items where no limit is given", async () => {
    await get(app, "/v1/payments");
    expect(operations.listPayments.mock.calls[0]?.slice(2)).toEqual([{}, { limit: 20, cursor: null }]);
  });

  it.each([
    ["limit=0", "?limit"],
    ["limit=101", "?limit"],
    ["limit=-1", "?limit"],
    ["limit=1e1", "?limit"],
    ["limit=05", "?limit"],
    ["limit=", "?limit"],
    ["limit=10&limit=10", "?limit"],
    ["status=paid", "?status"],
    ["status=", "?status"],
    ["merchant_order_id=", "?merchant_order_id"],
    ["merchant_order_id=%00", "?merchant_order_id"],
    ["created_after=yesterday", "?created_after"],
    ["created_after=2026-01-01", "?created_after"],
    ["created_after=2026-01-01T00:00:00", "?created_after"],
    ["created_after=2026-02-30T00:00:00Z", "?created_after"],
    ["created_before=1764435600", "?created_before"],
    ["cursor=", "?cursor"],
    ["cursor=%00", "?cursor"],
    ["merchant_order_id=%ff", "?merchant_order_id"],
    ["merchant_order_id=%ed%a0%80", "?merchant_order_id"],
    ["merchant_order_id=%c3", "?merchant_order_id"],
    ["merchant_order_id=100%", "?merchant_order_id"],
    ["merchant_order_id=a&cursor=%C0%80", "?cursor"],
    ["%ff=1", "?"],
    ["staus=succeeded", "?staus"],
    ["__proto__=1", "?__proto__"],
    ["constructor=1", "?constructor"],
  ])("refuse ?%s and name the parameter", async (query, pointer) => {
    const problem = await problemOf(await get(app, `/v1/payments?${query}`));
    expect(problem).toMatchObject({ code: "validation_failed", status: 400 });
    expect(new Set(pointersOf(problem))).toEqual(new Set([pointer]));
    expect(operations.listPayments).not.toHaveBeenCalled();
  });
});

describe("a path", () => {
  it.each([
    "/v1/payments/%ff",
    "/v1/payments/%zz",
    "/v1/payments/%ed%a0%80/timeline",
    "/v1/idempotency_keys/%ff?operation=payments.create",
    "/v1/idempotency_keys/a%?operation=payments.create",
  ])("that is no percent-encoded UTF-8 is refused, not read as something else: %s", async (path) => {
    const problem = await problemOf(await get(app, path));
    expect(problem).toMatchObject({ code: "validation_failed", status: 400 });
    expect(problem.detail).toBe("The URL must be percent-encoded UTF-8.");
    expect(problem.errors).toBeUndefined();
    expect(operations.getPayment).not.toHaveBeenCalled();
    expect(operations.getIdempotencyKey).not.toHaveBeenCalled();
  });

  it("is looked at after the caller", async () => {
    operations.authenticate.mockResolvedValue(null);
    expect(await problemOf(await get(app, "/v1/payments/%ff"))).toMatchObject({ status: 401 });
  });
});

describe("a timeline", () => {
  it("is shown as the OpenAPI document says", async () => {
    const response = await get(app, `${PATH}/timeline?limit=5`);
    const { data } = (await response.json()) as { data: unknown[] };
    expect(timelineEntrySchema.parse(data[0])).toMatchObject({
      attempt_id: "att_1",
      sent_at: "2026-11-29T12:00:00.000Z",
    });
    expect(operations.getTimeline.mock.calls[0]?.slice(2)).toEqual([PAYMENT.id, { limit: 5, cursor: null }]);
  });
});

describe("a key's state", () => {
  it.each([
    ["a%2Fb", "a/b"],
    ["K", "K"],
    ["a%20b", "a b"],
    ["%22K%22", '"K"'],
    ["50%25", "50%"],
    ["%2541", "%41"],
    ["a%3Fb%23c", "a?b#c"],
  ])("is found by the percent-encoded key %s", async (encoded, key) => {
    const response = await get(app, `/v1/idempotency_keys/${encoded}?operation=payments.create`);
    expect(idempotencyKeySchema.parse(await response.json())).toMatchObject({
      state: "completed",
      response_status: 201,
    });
    expect(operations.getIdempotencyKey.mock.calls[0]?.slice(2)).toEqual(["payments.create", key]);
  });

  it.each(["", "?operation=", "?operation=payments.refund"])(
    "needs a known operation, not %j",
    async (query) => {
      const problem = await problemOf(await get(app, `/v1/idempotency_keys/K${query}`));
      expect(pointersOf(problem)).toEqual(["?operation"]);
    },
  );

  it.each([".", "..", "%2E", "%2e%2E"])(
    "of a step in a path cannot be asked about, as the documentation says: %s",
    async (key) => {
      const path = `/v1/idempotency_keys/${key}?operation=payments.create`;
      expect(await problemOf(await get(app, path))).toMatchObject({ code: "not_found", status: 404 });
      expect(operations.getIdempotencyKey).not.toHaveBeenCalled();
    },
  );

  it.each(["%C3%A9", "k".repeat(256), "%00"])("of what cannot be a key does not exist: %s", async (key) => {
    expect(
      await problemOf(await get(app, `/v1/idempotency_keys/${key}?operation=payments.create`)),
    ).toMatchObject({
      status: 404,
    });
  });
});
