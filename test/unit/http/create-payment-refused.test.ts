import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { operations } from "./fake-operations.js";
import {
  given,
  INPUT,
  pointersOf,
  post,
  problemOf,
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
