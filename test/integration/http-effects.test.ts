import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/scopes.js";
import { createApp } from "../../src/http/app.js";
import { paymentSchema, problemSchema, refundSchema } from "../../src/http/response-schemas.js";
import { type Server, serve } from "../../src/http/serve.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { ApiClient, newKey } from "../support/api-client.js";
import { type Harness, startHarness } from "../support/harness.js";
import { AUTOMATIC, cancel, capture, MANUAL, made, outcomeOf, post, refund } from "../support/merchant.js";

let harness: Harness;
let server: Server;
let api: ApiClient;
beforeAll(async () => {
  harness = await startHarness();
  server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  api = new ApiClient(`http://127.0.0.1:${server.port}`, harness.secret);
});
afterEach(async () => {
  await harness.sandbox.control.clearFaults();
  await harness.sandbox.control.release();
});
afterAll(async () => {
  await server.close(1_000);
  await harness.stop();
});

async function clientWith(scopes: readonly Scope[] | null, tenantId = harness.caller.tenantId) {
  const key = await createApiKey(harness.deps, { tenantId, scopes, livemode: false });
  if (key === null) throw new Error("the tenant vanished");
  return new ApiClient(api.url, key.secret);
}

/** The three calls, the payment that each is for, and where its answer leads. */
const CALLS = [
  {
    name: "capture",
    call: capture,
    body: MANUAL,
    status: 200,
    operation: "payments.capture",
    home: "/v1/payments/",
  },
  {
    name: "cancel",
    call: cancel,
    body: MANUAL,
    status: 200,
    operation: "payments.cancel",
    home: "/v1/payments/",
  },
  {
    name: "refund",
    call: refund,
    body: AUTOMATIC,
    status: 201,
    operation: "refunds.create",
    home: "/v1/refunds/",
  },
] as const;
const pathOf = (name: string, id: string) => `/v1/payments/${id}/${name === "refund" ? "refunds" : name}`;

describe.each(CALLS)("a $name over HTTP", ({ name, call, body, status, operation, home }) => {
  const schema = name === "refund" ? refundSchema : paymentSchema;

  test("is answered with the object, as documented, and replayed byte for byte", async () => {
    const { id } = await made(api, body);
    const key = newKey();
    const first = await call(api, id, undefined, { key });
    expect(first.status, first.text).toBe(status);
    const document = schema.parse(first.json);
    expect(first.headers.get("content-type")).toBe("application/json");
    expect(first.headers.get("location")).toBe(home + document.id);
    expect(Date.parse(first.headers.get("idempotency-key-expires") ?? "")).toBeGreaterThan(Date.now());
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    expect((await api.get(home + document.id)).json).toMatchObject({
      id: document.id,
      status: document.status,
    });

    for (const spelling of [undefined, "{}", " {\n} "]) {
      const again = await call(api, id, spelling, { key: `"${key}"` });
      expect([again.status, again.text]).toEqual([status, first.text]);
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      for (const header of ["content-type", "location", "idempotency-key-expires"])
        expect(again.headers.get(header)).toBe(first.headers.get(header));
      expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    }
    const record = await api.get(`/v1/idempotency_keys/${key}?operation=${operation}`);
    expect(record.json).toMatchObject({
      state: "completed",
      resource_id: document.id,
      response_status: status,
    });
  });

  test("needs a key, one and well-formed, before anything else of the body is looked at", async () => {
    const { id } = await made(api, body);
    const keyless = await api.request("POST", pathOf(name, id), {});
    expect(outcomeOf(keyless)).toBe("400 idempotency_key_missing");
    for (const key of ["", "   ", "x".repeat(256), "K, K", '"K', "é"]) {
      expect([key, outcomeOf(await call(api, id, undefined, { key }))]).toEqual([
        key,
        "400 idempotency_key_invalid",
      ]);
    }
    expect((await call(api, id, undefined, { key: "x".repeat(255) })).status).toBe(status);
  });

  test("takes no body for an empty object, and refuses what it does not know with a pointer", async () => {
    const { id } = await made(api, body);
    const key = newKey();
    const json = { "Content-Type": "application/json" };
    const refusals: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
      ['{"amout":1}', json, "400 validation_failed"],
      ["null", json, "400 validation_failed"],
      ["[]", json, "400 validation_failed"],
      ['"x"', json, "400 validation_failed"],
      ["{", json, "400 malformed_request"],
      ['{"a":1,"a":1}', json, "400 malformed_request"],
      ["\ufeff{}", json, "400 malformed_request"],
      [`{"reason":"${"x".repeat(70_000)}"}`, json, "413 body_too_large"],
      ["{}", { "Content-Type": "text/plain" }, "415 unsupported_media_type"],
      ["amount=1", { "Content-Type": "application/x-www-form-urlencoded" }, "415 unsupported_media_type"],
      ["{}", { ...json, "Content-Encoding": "gzip" }, "415 unsupported_media_type"],
    ];
    for (const [text, headers, refusal] of refusals) {
      const refused = await call(api, id, text, { key, headers });
      expect([text.slice(0, 20), outcomeOf(refused)]).toEqual([text.slice(0, 20), refusal]);
      expect(refused.headers.get("content-type")).toBe("application/problem+json");
      problemSchema.parse(refused.json);
    }
    const unknown = await call(api, id, '{"amout":1}', { key });
    expect(unknown.json.errors?.[0]?.pointer).toBe("/amout");
    const query = await post(api, `${pathOf(name, id)}?amount=1`, undefined, { key });
    expect(query.json.errors?.[0]?.pointer).toBe("?amount");
    // None of these has used the key up.
    expect((await api.get(`/v1/idempotency_keys/${key}?operation=${operation}`)).status).toBe(404);
    const taken = await call(api, id, "", {
      key,
      headers: { "Content-Type": "application/JSON; charset=utf-8" },
    });
    expect(taken.status, taken.text).toBe(status);
  });

  test("without an outcome in time is 202 with where to look and when, and says which preference was applied", async () => {
    const { id } = await made(api, body);
    const provider = name === "refund" ? "refunds.create" : `payment_intents.${name}`;
    await harness.sandbox.control.addFault({
      match: { call: provider },
      fault: { type: "hang", effect: "applied" },
    });
    const key = newKey();
    const waiting = await call(api, id, undefined, { key, prefer: "respond-async" });
    expect(waiting.status, waiting.text).toBe(202);
    const document = schema.parse(waiting.json);
    expect(document.status).toBe(name === "refund" ? "processing" : "authorized");
    expect(waiting.headers.get("location")).toBe(home + document.id);
    expect(Number(waiting.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(waiting.headers.get("preference-applied")).toBe("respond-async");
    expect(waiting.headers.get("idempotency-key-expires")).toBeNull();

    const beside = await call(api, id, undefined, { key });
    expect(outcomeOf(beside)).toBe("409 idempotency_key_in_progress");
    expect(Number(beside.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(beside.headers.get("location")).toBe(home + document.id);
    expect(problemSchema.parse(beside.json).payment?.id).toBe(id);
    expect(beside.headers.get("preference-applied")).toBeNull();
    const asking = await call(api, id, undefined, { key, prefer: "wait=0" });
    expect(outcomeOf(asking)).toBe("409 idempotency_key_in_progress");
    expect(asking.headers.get("preference-applied")).toBe("wait=0");
    await harness.sandbox.control.release();
    const done = await call(api, id, undefined, { key, prefer: "wait=20" });
    expect([done.status, done.headers.get("preference-applied")]).toEqual([status, "wait=20"]);
    expect(done.headers.get("retry-after")).toBeNull();
  });

  test("of another tenant's payment, or of none, is 404 and leaves the key free", async () => {
    const { id } = await made(api, body);
    const { id: otherTenant } = await createTenant(harness.deps, "other");
    const other = await clientWith(null, otherTenant);
    const key = newKey();
    const foreign = await call(other, id, undefined, { key });
    const unknown = await call(other, `pay_${"0".repeat(32)}`, undefined, { key });
    const odd = await call(other, "pay_1", undefined, { key });
    for (const refused of [foreign, unknown, odd]) {
      expect(outcomeOf(refused)).toBe("404 not_found");
      expect({ ...refused.json, request_id: "" }).toEqual({ ...foreign.json, request_id: "" });
    }
    expect((await other.get(`/v1/idempotency_keys/${key}?operation=${operation}`)).status).toBe(404);
    expect((await call(api, id, undefined, { key })).status).toBe(status);
    expect(outcomeOf(await call(other, id, undefined, { key }))).toBe("404 not_found");
  });

  test("needs its own scope, for a replay too", async () => {
    const { id } = await made(api, body);
    const right = await clientWith([name === "refund" ? "refunds:write" : "payments:write"]);
    const wrong = await clientWith([
      name === "refund" ? "payments:write" : "refunds:write",
      "payments:read",
      "webhooks:manage",
    ]);
    const key = newKey();
    expect(outcomeOf(await call(wrong, id, undefined, { key }))).toBe("403 permission_denied");
    expect((await call(right, id, undefined, { key })).status).toBe(status);
    expect(outcomeOf(await call(wrong, id, undefined, { key }))).toBe("403 permission_denied");
    expect(outcomeOf(await call(new ApiClient(api.url, null), id, undefined, { key }))).toBe(
      "401 authentication_required",
    );
    // The scope to write is not the scope to read.
    expect(outcomeOf(await right.get(`/v1/payments/${id}/refunds`))).toBe("403 permission_denied");
    expect((await wrong.get(`/v1/payments/${id}/refunds`)).status).toBe(200);
  });

  test("by another method is 405 and says which there are", async () => {
    const { id } = await made(api, body);
    for (const method of ["PUT", "PATCH", "DELETE"]) {
      const refused = await api.request(method, pathOf(name, id), {
        headers: { "Idempotency-Key": newKey() },
      });
      expect([method, outcomeOf(refused)]).toEqual([method, "405 method_not_allowed"]);
      expect(refused.headers.get("allow")).toContain("POST");
    }
    expect((await api.payment(id)).status).toBe(body === MANUAL ? "authorized" : "succeeded");
  });
});
