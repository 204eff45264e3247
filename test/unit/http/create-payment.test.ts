import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { operations } from "./fake-operations.js";
import {
  given,
  INPUT,
  PAYMENT,
  post,
  SECRET,
  STILL_PROCESSING,
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

let app: TestServer;
beforeAll(async () => {
  app = await startApp();
});
beforeEach(() => {
  operations.createPayment.mockReset().mockResolvedValue(STILL_PROCESSING);
});
afterAll(() => app.server.close(1_000));

describe("a create that is accepted", () => {
  it("gives the operation the validated input with its defaults applied", async () => {
    const response = await post(app, INPUT);
    expect(response.status).toBe(202);
    expect(response.headers.get("location")).toBe(`/v1/payments/${PAYMENT.id}`);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await response.json()).toMatchObject({ id: PAYMENT.id, status: "processing" });
    expect(given()).toMatchObject({
      key: "K",
      wait: { waitMs: 10_000, explicit: false },
      input: {
        ...INPUT,
        capture_method: "automatic",
        merchant_order_id: null,
        customer: null,
        description: null,
        statement_descriptor: null,
        return_url: null,
        metadata: {},
      },
    });
  });

  it.each([
    ["fields in another order", '{"payment_method":"pm_card_visa","currency":"usd","amount":4200}'],
    ["white space", '\r\n{ "amount" :\t4200 , "currency":"usd", "payment_method":"pm_card_visa" }\n'],
    ["an exponent", '{"amount":42e2,"currency":"usd","payment_method":"pm_card_visa"}'],
    ["a fraction of zero", '{"amount":4200.00,"currency":"usd","payment_method":"pm_card_visa"}'],
    ["upper case", '{"amount":4200,"currency":"USD","payment_method":"pm_card_visa"}'],
    ["escapes", '{"\\u0061mount":4200,"currency":"\\u0075sd","payment_method":"pm_card_visa"}'],
    [
      "defaults spelt out",
      JSON.stringify({
        ...INPUT,
        capture_method: "automatic",
        metadata: {},
        merchant_order_id: null,
        customer: null,
        description: null,
        statement_descriptor: null,
        return_url: null,
      }),
    ],
  ])("is the same input for %s", async (_what, body) => {
    await post(app, INPUT);
    const plain = given().input;
    operations.createPayment.mockClear();
    expect((await post(app, body)).status).toBe(202);
    expect(given().input).toEqual(plain);
  });

  it("keeps every text character for character", async () => {
    const metadata = {
      "😀": "שלום é e\u0301 \u202e <b>'\"; DROP TABLE payments; --",
      "10": "ten",
      constructor: "c",
      toString: "t",
      empty: "",
      long: "😀".repeat(500),
    };
    const body = { ...INPUT, metadata, description: "line\nline\t😀", merchant_order_id: "ø".repeat(255) };
    expect((await post(app, body)).status).toBe(202);
    expect(given().input?.metadata).toEqual(metadata);
    expect(given().input?.description).toBe(body.description);
    expect(given().input?.merchant_order_id).toBe(body.merchant_order_id);
  });

  it.each([
    ["application/json;charset=utf-8"],
    ["Application/JSON; Charset=UTF-8"],
    ['application/json; charset="utf-8"'],
    ["application/json ;charset=utf-8;"],
  ])("may say its content type as %s", async (type) => {
    expect((await post(app, INPUT, { "Content-Type": type })).status).toBe(202);
  });

  it("may say that its encoding is identity", async () => {
    expect((await post(app, INPUT, { "Content-Encoding": "identity" })).status).toBe(202);
  });

  it("answers a final outcome byte for byte as it is stored, and marks replays alone", async () => {
    const response = {
      status: 402,
      headers: { "Content-Type": "application/problem+json", Location: `/v1/payments/${PAYMENT.id}` },
      body: '{"b" :1,  "a":"é"}',
    };
    const keyExpiresAt = new Date("2026-12-06T12:00:00Z");
    operations.createPayment.mockResolvedValueOnce({
      type: "final",
      response,
      replayed: false,
      keyExpiresAt,
    });
    const first = await post(app, INPUT);
    operations.createPayment.mockResolvedValueOnce({ type: "final", response, replayed: true, keyExpiresAt });
    const second = await post(app, INPUT);
    for (const answer of [first, second]) {
      expect(answer.status).toBe(402);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.headers.get("location")).toBe(response.headers.Location);
      expect(answer.headers.get("idempotency-key-expires")).toBe("2026-12-06T12:00:00.000Z");
      expect(answer.headers.get("retry-after")).toBeNull();
      expect(await answer.text()).toBe(response.body);
    }
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
  });

  it.each([
    ["wait=5", { waitMs: 5_000, explicit: true }, "wait=5"],
    ["wait=99", { waitMs: 30_000, explicit: true }, "wait=30"],
    ["respond-async", { waitMs: 0, explicit: true }, "respond-async"],
    ["wait=soon", { waitMs: 10_000, explicit: false }, null],
  ])("waits as Prefer: %s says", async (prefer, wait, applied) => {
    const response = await post(app, INPUT, { Prefer: prefer });
    expect(given().wait).toMatchObject(wait);
    expect(response.headers.get("preference-applied")).toBe(applied);
  });

  it("echoes a well-formed request id, passes it on, and makes one where it is not", async () => {
    const echoed = await post(app, INPUT, { "X-Request-Id": "a.B_9-x" });
    expect(echoed.headers.get("x-request-id")).toBe("a.B_9-x");
    const digits = await post(app, INPUT, { "X-Request-Id": "4242424242424241" });
    expect(digits.headers.get("x-request-id")).toBe("4242424242424241");
    expect(given().context?.requestId).toBe("a.B_9-x");
    for (const id of [
      "a b",
      "x".repeat(129),
      "<script>",
      "",
      "4242424242424242",
      "req-4242-4242-4242-4242",
    ]) {
      const made = await post(app, INPUT, { "X-Request-Id": id });
      expect(made.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    }
  });

  it("passes a valid traceparent on, and no other", async () => {
    const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await post(app, INPUT, { traceparent: valid });
    expect(given().context?.traceparent).toBe(valid);
    expect(app.lines.at(-1)).toContain('"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"');
    const broken = [
      "",
      "00-0-0-01",
      valid.toUpperCase(),
      `${valid}-more`,
      valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0".repeat(32)),
      `ff${valid.slice(2)}`,
    ];
    for (const traceparent of broken) {
      operations.createPayment.mockClear();
      await post(app, INPUT, { traceparent });
      expect(given().context?.traceparent).toBeNull();
    }
  });
});

describe("the access log", () => {
  it("has one line a request, with the pattern and the tenant and without body, key or credential", async () => {
    const before = app.lines.length;
    await post(app, { ...INPUT, description: "very private" }, { "Idempotency-Key": "a-private-key" });
    const lines = app.lines.slice(before);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      method: "POST",
      route: "/v1/payments",
      status: 202,
      tenant_id: "ten_1",
      request_id: expect.stringMatching(/^req_/) as string,
      ms: expect.any(Number) as number,
    });
    for (const secret of ["very private", "a-private-key", "pm_card_visa", SECRET])
      expect(lines[0]).not.toContain(secret);
  });
});
