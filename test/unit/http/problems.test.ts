import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { PawlError } from "../../../src/domain/errors.js";
import { operations } from "./fake-operations.js";
import {
  INPUT,
  PAYMENT,
  pointersOf,
  post,
  problemOf,
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

  it.each([
    [
      "a key in progress",
      new PawlError("idempotency_key_in_progress", "still running", { payment: PAYMENT }),
    ],
    ["a key that is used otherwise", new PawlError("idempotency_key_reused", "no")],
    ["a provider that did nothing", new PawlError("provider_unavailable", "no", { payment: PAYMENT })],
    ["a database that is away", new PawlError("service_unavailable", "no")],
    ["an error that nobody foresaw", new Error("marked")],
  ])(
    "of %s says after a wait what was followed of the preference, where there was one",
    async (_what, error) => {
      operations.createPayment.mockRejectedValue(error);
      const plain = await post(app, INPUT);
      const asked = await post(app, INPUT, { Prefer: "wait=1" });
      const async = await post(app, INPUT, { Prefer: "respond-async" });
      expect([plain, asked, async].map((answer) => answer.headers.get("preference-applied"))).toEqual([
        null,
        "wait=1",
        "respond-async",
      ]);
      for (const name of ["location", "retry-after"])
        expect(asked.headers.get(name)).toBe(plain.headers.get(name));
      const [without, withPreference] = [await problemOf(plain), await problemOf(asked)];
      expect({ ...withPreference, request_id: "" }).toEqual({ ...without, request_id: "" });
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
