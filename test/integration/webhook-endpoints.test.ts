import { describe, expect, test } from "vitest";
import { webhookEndpointSchema } from "../../src/http/webhook-schemas.js";
import { newKey } from "../support/api-client.js";
import { post, receiver, register, remove, start } from "../support/webhook-api.js";

describe("registering a receiver", () => {
  test("shows its secret once: in the replay, and everywhere else, it is null", async () => {
    const { api } = await start({ workers: [] });
    const key = newKey();
    const body = { url: "https://93.184.216.34/hook", events: ["payment.succeeded", "payment.failed"] };
    const first = await register(api, body, key);
    expect(first.status).toBe(201);
    const endpoint = webhookEndpointSchema.parse(first.json);
    expect(endpoint.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(endpoint).toMatchObject({
      ...body,
      events: ["payment.failed", "payment.succeeded"],
      enabled: true,
    });
    expect(first.headers.get("location")).toBe(`/v1/webhook_endpoints/${endpoint.id}`);
    expect(Date.parse(first.headers.get("idempotency-key-expires") ?? "")).toBeGreaterThan(Date.now());

    const replayed = await register(api, { events: [...body.events].reverse(), url: body.url }, key);
    expect([replayed.status, replayed.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(replayed.json).toEqual({ ...endpoint, secret: null });
    for (const path of [`/v1/webhook_endpoints/${endpoint.id}`, "/v1/webhook_endpoints"]) {
      const read = await api.get(path);
      expect(read.text).toContain(endpoint.id);
      expect(read.text).not.toContain("whsec_");
    }
    expect(webhookEndpointSchema.parse((await api.get(`/v1/webhook_endpoints/${endpoint.id}`)).json)).toEqual(
      {
        ...endpoint,
        secret: null,
      },
    );
    expect((await api.get("/v1/webhook_endpoints")).json.data).toHaveLength(1);
    expect((await register(api, { url: body.url }, key)).json.code).toBe("idempotency_key_reused");
    const record = await api.get(`/v1/idempotency_keys/${key}?operation=webhook_endpoints.create`);
    expect(record.json).toMatchObject({ state: "completed", resource_id: endpoint.id, response_status: 201 });
  });

  test("by many requests with one key at once makes one", async () => {
    const { api, harness } = await start({ workers: [] });
    const key = newKey();
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => register(api, { url: "https://93.184.216.34/" }, key)),
    );
    expect(answers.map((answer) => answer.status)).toEqual(Array<number>(12).fill(201));
    expect(answers.filter((answer) => answer.text.includes("whsec_"))).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.json.id)).size).toBe(1);
    expect(await harness.deps.db.sql`select from webhook_endpoints`).toHaveLength(1);
  });

  test("takes an expired key for a new one, whether it has been purged or not", async () => {
    const { api, harness } = await start({ workers: [] });
    const key = newKey();
    const first = await register(api, { url: "https://93.184.216.34/" }, key);
    await harness.deps.db.sql`update idempotency_keys set expires_at = now()`;
    const second = await register(api, { url: "https://93.184.216.34/other" }, key);
    expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([201, null]);
    expect(second.json.id).not.toBe(first.json.id);
    expect((await register(api, { url: "https://93.184.216.34/other" }, key)).json.id).toBe(second.json.id);
  });

  test("that is not as it must be is refused, with a pointer to what is wrong", async () => {
    const { api } = await start({ workers: [] });
    const url = "https://93.184.216.34/";
    const refused: readonly (readonly [object, string])[] = [
      [{}, "/url"],
      [{ url: 7 }, "/url"],
      [{ url: `${url}${"x".repeat(2048)}` }, "/url"],
      [{ url, secret: "x" }, "/secret"],
      [{ url, events: ["payment.paid"] }, "/events/0"],
      [{ url, events: [] }, "/events"],
      [{ url, events: ["payment.failed", "payment.failed"] }, "/events"],
      [{ url, events: "payment.failed" }, "/events"],
    ];
    for (const [body, pointer] of refused) {
      const answer = await register(api, body);
      expect([answer.status, answer.json.code, answer.json.errors?.[0]?.pointer]).toEqual([
        400,
        "validation_failed",
        pointer,
      ]);
    }
    const keyless = await post(api, "/v1/webhook_endpoints", { url }, null);
    expect([keyless.status, keyless.json.code]).toEqual([400, "idempotency_key_missing"]);
  });

  test("of an address inside is answered the same whatever is there, and connects to nothing", async () => {
    const to = await receiver();
    const { api, harness } = await start({ workers: [], env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: "false" } });
    const urls = [
      "http://169.254.169.254/",
      "https://169.254.169.254/latest/meta-data",
      `https://localhost:${to.port}/`,
      `https://127.0.0.1:${to.port}/`,
      "https://127.0.0.1:1/",
      `https://127.1:${to.port}/`,
      `https://0x7f000001:${to.port}/`,
      `https://2130706433:${to.port}/`,
      `https://[::1]:${to.port}/`,
      `https://[::ffff:127.0.0.1]:${to.port}/`,
      "https://10.0.0.1/",
      "https://192.168.0.1/",
      "https://does-not-exist.invalid/",
      "https://user:pass@example.com/",
      "ftp://example.com/",
      to.url(),
    ];
    const answers = await Promise.all(urls.map((url) => register(api, { url })));
    const told = answers.map((answer) => JSON.stringify({ ...answer.json, request_id: "" }));
    expect(new Set(told).size).toBe(1);
    expect(answers[0]).toMatchObject({
      status: 400,
      json: {
        code: "validation_failed",
        errors: [{ pointer: "/url", detail: "must be an https URL of a public host" }],
      },
    });
    expect(to.connections).toBe(0);
    expect(await harness.deps.db.sql`select from webhook_endpoints`).toHaveLength(0);
    expect(await harness.deps.db.sql`select from idempotency_keys`).toHaveLength(0);
  });

  test("ends at fifty", async () => {
    const { api, harness } = await start({ workers: [] });
    await harness.deps.db.sql`
      insert into webhook_endpoints (tenant_id, id, url, secret)
      select ${harness.caller.tenantId}, 'we_' || md5(n::text), 'https://example.com/', 'whsec_AAAA'
        from generate_series(1, 50) n`;
    const body = { url: "https://93.184.216.34/" };
    expect((await register(api, body)).json).toMatchObject({ code: "validation_failed" });
    await remove(api, "we_c4ca4238a0b923820dcc509a6f75849b");
    expect((await register(api, body)).status).toBe(201);
  });
});
