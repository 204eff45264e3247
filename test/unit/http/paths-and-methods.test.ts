import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { operations } from "./fake-operations.js";
import { CALLER, get, PAYMENT, problemOf, startApp, type TestServer, withMethod } from "./harness.js";

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

let app: TestServer;
beforeAll(async () => {
  app = await startApp();
});
beforeEach(() => {
  operations.authenticate.mockReset().mockResolvedValue(CALLER);
  operations.createPayment.mockReset();
  operations.getPayment.mockReset().mockResolvedValue(PAYMENT);
});
afterAll(() => app.server.close(1_000));

describe("methods and paths", () => {
  it.each([
    ["PUT", "/v1/payments", "POST, GET, HEAD, OPTIONS"],
    ["PATCH", "/v1/payments", "POST, GET, HEAD, OPTIONS"],
    ["DELETE", PATH, "GET, HEAD, OPTIONS"],
    ["TRACE", PATH, "GET, HEAD, OPTIONS"],
    ["POST", PATH, "GET, HEAD, OPTIONS"],
    ["PROPFIND", "/v1/payments", "POST, GET, HEAD, OPTIONS"],
    ["POST", "/openapi.json", "GET, HEAD, OPTIONS"],
    ["DELETE", "/docs", "GET, HEAD, OPTIONS"],
  ])("%s %s is a 405 with Allow", async (method, path, allow) => {
    const answer = await withMethod(app.port, method, path);
    expect(answer.status).toBe(405);
    expect(answer.allow?.split(", ").sort()).toEqual(allow.split(", ").sort());
    expect(answer.body).toContain("method_not_allowed");
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("OPTIONS says what is allowed and does nothing", async () => {
    const answer = await withMethod(app.port, "OPTIONS", "/v1/payments");
    expect(answer).toMatchObject({ status: 204, body: "" });
    expect(answer.allow).toContain("POST");
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it.each([
    "/",
    "/v1",
    "/v1/payments/",
    "/v2/payments",
    "/docs/errors/nope",
    "/docs/errors/constructor",
    "/docs/errors/..%2f..%2fpackage.json",
    "/metrics",
  ])("%s is a 404 problem", async (path) => {
    expect(await problemOf(await get(app, path))).toMatchObject({ code: "not_found", status: 404 });
  });

  it("never put a path that a client made up into the log or the metrics", async () => {
    await get(app, "/some/secret-path?with=query");
    expect(app.lines.at(-1)).toContain('"route":"(unknown)"');
    expect(app.lines.join("")).not.toContain("secret-path");
  });
});
