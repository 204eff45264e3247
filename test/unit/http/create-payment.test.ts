import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { PawlError } from "../../../src/domain/errors.js";
import { operations } from "./fake-operations.js";
import { INPUT, PAYMENT, pointersOf, post, problemOf, SECRET, startApp, type TestServer } from "./harness.js";

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
  operations.createPayment.mockReset().mockResolvedValue({ type: "processing", payment: PAYMENT });
});
afterAll(() => app.server.close(1_000));

/** What the operation was given as key, input and wait. */
function given() {
  const [call] = operations.createPayment.mock.calls;
  return { context: call?.[2], key: call?.[3], input: call?.[4], wait: call?.[5] };
}

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
    expect(given().context?.requestId).toBe("a.B_9-x");
    for (const id of ["a b", "x".repeat(129), "<script>", ""]) {
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

describe("a create that is refused before the operation", () => {
  const without = (name: keyof typeof INPUT) =>
    Object.fromEntries(Object.entries(INPUT).filter(([key]) => key !== name));
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, "v"]));

  it.each<[string, unknown, string]>([
    ...[
      "10.5",
      "19.99",
      '"1999"',
      '""',
      "null",
      "true",
      "[]",
      "[5]",
      "{}",
      "1e400",
      "-0",
      "0",
      "-1",
      "0.1",
      "1000000000000",
      "9007199254740993",
      "1000.00000000000000001",
    ].map((amount): [string, string, string] => [
      `amount ${amount}`,
      `{"amount":${amount},"currency":"usd","payment_method":"pm_x"}`,
      "/amount",
    ]),
    ...["", "US", "USDT", "xyz", "840", "usd ", null, 5, ["usd"]].map(
      (currency): [string, unknown, string] => [
        `currency ${JSON.stringify(currency)}`,
        { ...INPUT, currency },
        "/currency",
      ],
    ),
    ["no amount", without("amount"), "/amount"],
    ["no currency", without("currency"), "/currency"],
    ["no payment method", without("payment_method"), "/payment_method"],
    ["an empty payment method", { ...INPUT, payment_method: "" }, "/payment_method"],
    ["a payment method with a line break", { ...INPUT, payment_method: "pm\n" }, "/payment_method"],
    ["a payment method of 256 characters", { ...INPUT, payment_method: "p".repeat(256) }, "/payment_method"],
    ["an unknown capture method", { ...INPUT, capture_method: "later" }, "/capture_method"],
    ["a capture method of null", { ...INPUT, capture_method: null }, "/capture_method"],
    ["an empty order id", { ...INPUT, merchant_order_id: "" }, "/merchant_order_id"],
    ["a blank order id", { ...INPUT, merchant_order_id: "  " }, "/merchant_order_id"],
    ["an order id of 256 characters", { ...INPUT, merchant_order_id: "x".repeat(256) }, "/merchant_order_id"],
    ["an order id that is a number", { ...INPUT, merchant_order_id: 17 }, "/merchant_order_id"],
    ["a description of 1001 characters", { ...INPUT, description: "é".repeat(1001) }, "/description"],
    ["a control character in the description", { ...INPUT, description: "a\u0007" }, "/description"],
    [
      "a statement descriptor of 23 characters",
      { ...INPUT, statement_descriptor: "x".repeat(23) },
      "/statement_descriptor",
    ],
    [
      "a statement descriptor without a letter",
      { ...INPUT, statement_descriptor: "123" },
      "/statement_descriptor",
    ],
    [
      "a statement descriptor with a star",
      { ...INPUT, statement_descriptor: "SHOP*17" },
      "/statement_descriptor",
    ],
    ...[
      "javascript:alert(1)",
      "ftp://shop.example/",
      "/relative",
      "https://",
      "https://user:secret@shop.example/",
      "https://shop.example/\nx",
      " https://shop.example/",
    ].map((return_url): [string, unknown, string] => [
      `the return URL ${JSON.stringify(return_url)}`,
      { ...INPUT, return_url },
      "/return_url",
    ]),
    ["metadata that is a list", { ...INPUT, metadata: [] }, "/metadata"],
    ["metadata that is null", { ...INPUT, metadata: null }, "/metadata"],
    ["51 pairs", { ...INPUT, metadata: pairs(51) }, "/metadata"],
    [
      "a name of 41 characters",
      { ...INPUT, metadata: { ["k".repeat(41)]: "v" } },
      `/metadata/${"k".repeat(41)}`,
    ],
    ["an empty name", { ...INPUT, metadata: { "": "v" } }, "/metadata/"],
    ["a value of 501 characters", { ...INPUT, metadata: { k: "😀".repeat(501) } }, "/metadata/k"],
    ["a value that is no string", { ...INPUT, metadata: { "a/b": 1 } }, "/metadata/a~1b"],
    [
      "the name __proto__ in metadata",
      '{"amount":1,"currency":"usd","payment_method":"p","metadata":{"__proto__":"x"}}',
      "/metadata/__proto__",
    ],
    ["an unknown field", { ...INPUT, amuont: 1 }, "/amuont"],
    [
      "__proto__ as a field",
      '{"amount":1,"currency":"usd","payment_method":"p","__proto__":{"amount":9}}',
      "/__proto__",
    ],
    ["constructor as a field", { ...INPUT, constructor: {} }, "/constructor"],
    ["a list", "[]", ""],
    ["a string", '"x"', ""],
    ["null", "null", ""],
    ["a number", "1", ""],
  ])("says where it is not valid: %s", async (_what, body, pointer) => {
    const response = await post(app, body);
    expect(response.status).toBe(400);
    const problem = await problemOf(response);
    expect(problem.code).toBe("validation_failed");
    expect([...new Set(pointersOf(problem))]).toEqual([pointer]);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("names every fault at once", async () => {
    const problem = await problemOf(
      await post(app, { amount: 0, currency: "q", extra: 1, metadata: { a: 1, b: 2 } }),
    );
    expect(pointersOf(problem).sort()).toEqual([
      "/amount",
      "/currency",
      "/extra",
      "/metadata/a",
      "/metadata/b",
      "/payment_method",
    ]);
  });

  it("names a bounded number of faults", async () => {
    const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, 1]));
    const problem = await problemOf(await post(app, fields));
    expect(problem.errors?.length).toBe(100);
  });

  it.each<[string, string | Uint8Array, string | undefined]>([
    ["an empty body", "", ""],
    ["half an object", "{", ""],
    ["a missing value", '{"amount":}', "/amount"],
    ["a byte order mark", `\ufeff${JSON.stringify(INPUT)}`, undefined],
    ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), undefined],
    ["an encoded surrogate", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), undefined],
    ["a repeated member", '{"amount":100,"amount":100000}', "/amount"],
    ["NUL", '{"metadata":{"a":"\\u0000"}}', "/metadata/a"],
    ["a lone surrogate", '{"description":"\\ud800"}', "/description"],
    ["deep nesting", '{"a":'.repeat(10_000), "/a".repeat(8)],
  ])("is not JSON as we take it: %s", async (_what, body, pointer) => {
    const problem = await problemOf(await post(app, body));
    expect(problem).toMatchObject({ code: "malformed_request", status: 400 });
    expect(problem.errors?.[0]?.pointer).toBe(pointer);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it.each([
    ["text/plain"],
    ["application/x-www-form-urlencoded"],
    ["application/json; charset=iso-8859-1"],
    ["application/jsonx"],
    ["application/problem+json"],
    ["application/json, text/plain"],
  ])("has a content type that we do not take: %s", async (type) => {
    expect(await problemOf(await post(app, INPUT, { "Content-Type": type }))).toMatchObject({ status: 415 });
  });

  it.each(["gzip", "br", "identity, gzip"])("is compressed: %s", async (encoding) => {
    expect(await problemOf(await post(app, INPUT, { "Content-Encoding": encoding }))).toMatchObject({
      code: "unsupported_media_type",
    });
  });

  it.each([
    [undefined, "idempotency_key_missing"],
    ["", "idempotency_key_invalid"],
    ["k".repeat(256), "idempotency_key_invalid"],
    ["k".repeat(4000), "idempotency_key_invalid"],
    ["K, K", "idempotency_key_invalid"],
  ])("has no usable key: %s", async (key, code) => {
    const problem = await problemOf(await post(app, INPUT, { "Idempotency-Key": key }));
    expect(problem).toMatchObject({ code, status: 400 });
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("takes a quoted key for the bare one", async () => {
    await post(app, INPUT, { "Idempotency-Key": '"K"' });
    expect(given().key).toBe("K");
  });

  it("has query parameters, of which a create knows none", async () => {
    const response = await fetch(`${app.url}/v1/payments?amount=1`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${SECRET}`,
        "Content-Type": "application/json",
        "Idempotency-Key": "K",
      },
      body: JSON.stringify(INPUT),
    });
    expect(pointersOf(await problemOf(response))).toEqual(["?amount"]);
  });
});

describe("a card number", () => {
  const CARD = "4242 4242 4242 4242";
  it.each<[string, unknown, string]>([
    ["the payment method", { ...INPUT, payment_method: "4242424242424242" }, "/payment_method"],
    ["the description", { ...INPUT, description: `paid with ${CARD}` }, "/description"],
    ["the order id", { ...INPUT, merchant_order_id: "4242424242424242" }, "/merchant_order_id"],
    ["a metadata value", { ...INPUT, metadata: { note: CARD } }, "/metadata/note"],
    ["a metadata name", { ...INPUT, metadata: { [CARD]: "x" } }, "/metadata"],
    ["an unknown field's name", { ...INPUT, [CARD]: "x" }, ""],
    ["an unknown field's value", { ...INPUT, card: { number: CARD } }, "/card/number"],
  ])("in %s is refused, and neither shown nor logged", async (_what, body, pointer) => {
    const response = await post(app, body);
    const text = await response.clone().text();
    const problem = await problemOf(response);
    expect(problem).toMatchObject({ code: "card_number_refused", status: 400 });
    expect(pointersOf(problem)).toEqual([pointer]);
    expect((text + app.lines.join("")).replaceAll(/[ -]/g, "")).not.toContain("4242424242424242");
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("is not shown by the fault of a body that is not JSON either", async () => {
    const response = await post(app, '{"4242424242424242":1,"4242424242424242":2}');
    expect(await response.text()).not.toContain("42424242");
  });
});

describe("a problem", () => {
  it("of a key in progress carries Retry-After, Location and the payment", async () => {
    operations.createPayment.mockRejectedValueOnce(
      new PawlError("idempotency_key_in_progress", "still running", {
        payment: PAYMENT,
        retryAfterSeconds: 3,
      }),
    );
    const response = await post(app, INPUT);
    expect(response.status).toBe(409);
    expect(response.headers.get("retry-after")).toBe("3");
    expect(response.headers.get("location")).toBe(`/v1/payments/${PAYMENT.id}`);
    expect((await problemOf(response)).payment?.id).toBe(PAYMENT.id);
  });

  it.each(["idempotency_key_expired", "merchant_order_id_taken"] as const)(
    "of %s names the payment and invites no retry",
    async (code) => {
      operations.createPayment.mockRejectedValueOnce(
        new PawlError(code, "no", { payment: PAYMENT, retryAfterSeconds: 1 }),
      );
      const response = await post(app, INPUT);
      expect(response.status).toBe(409);
      expect(response.headers.get("retry-after")).toBeNull();
      expect((await problemOf(response)).payment?.id).toBe(PAYMENT.id);
    },
  );

  it.each(["service_unavailable", "provider_unavailable"] as const)(
    "of %s carries Retry-After",
    async (code) => {
      operations.createPayment.mockRejectedValueOnce(new PawlError(code, "host db.internal refused"));
      const response = await post(app, INPUT);
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      expect(JSON.stringify(await problemOf(response))).not.toContain("db.internal");
    },
  );

  it("of an unknown error is a 500 that says its request id and nothing else, and is logged with it", async () => {
    operations.createPayment.mockRejectedValueOnce(new Error("select secret from payments"));
    const response = await post(app, INPUT, { "X-Request-Id": "req-of-a-failure" });
    expect(response.status).toBe(500);
    const problem = await problemOf(response);
    expect(problem).toMatchObject({ code: "internal_error", request_id: "req-of-a-failure" });
    expect(JSON.stringify(problem)).not.toContain("select");
    const logged = app.lines.find(
      (line) => line.includes('"level":"error"') && line.includes("req-of-a-failure"),
    );
    expect(logged).toContain("select secret");
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
