import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../../src/http/app.js";
import {
  idempotencyKeySchema,
  listOf,
  paymentSchema,
  timelineEntrySchema,
} from "../../src/http/response-schemas.js";
import { type Server, serve } from "../../src/http/serve.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { ApiClient, DECLINED, newKey, VISA } from "../support/api-client.js";
import { type Harness, startHarness } from "../support/harness.js";

let harness: Harness;
let server: Server;
let api: ApiClient;
beforeAll(async () => {
  harness = await startHarness();
  server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  api = new ApiClient(`http://127.0.0.1:${server.port}`, harness.secret);
});
afterAll(async () => {
  await server.close(1_000);
  await harness.stop();
});

async function anotherTenant(): Promise<ApiClient> {
  const tenant = await createTenant(harness.deps, "other");
  const key = await createApiKey(harness.deps, { tenantId: tenant.id, scopes: null, livemode: false });
  if (key === null) throw new Error("the tenant vanished");
  return new ApiClient(api.url, key.secret);
}

describe("over HTTP", () => {
  test("a request spelt otherwise is a replay of the first answer, byte for byte", async () => {
    const key = newKey();
    const metadata = { b: "1", "10": "2", "9": "3", constructor: "c" };
    const first = await api.pay({ ...VISA, metadata }, { key });
    expect(first.status).toBe(201);
    expect(paymentSchema.parse(first.json)).toMatchObject({ status: "succeeded", metadata });
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const spellings = [
      '{"metadata":{"constructor":"c","9":"3","10":"2","b":"1"},"payment_method":"pm_card_visa","currency":"USD","amount":42e2}',
      '{ "amount": 4200.0, "currency": "Usd", "payment_method": "pm_card_visa", "capture_method": "automatic", "customer": null,\n "metadata": {"10":"2","9":"3","b":"1","constructor":"c"} }',
    ];
    for (const spelling of spellings) {
      const again = await api.pay(spelling, { key: `"${key}"` });
      expect(again.status).toBe(201);
      expect(again.text).toBe(first.text);
      for (const name of ["content-type", "location"])
        expect(again.headers.get(name)).toBe(first.headers.get(name));
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      expect(again.headers.get("idempotency-key-expires")).toMatch(/^\d{4}-.*Z$/);
      expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    }
    expect((await api.pay({ ...VISA, metadata: { ...metadata, b: "other" } }, { key })).json.code).toBe(
      "idempotency_key_reused",
    );
  });

  test("texts come back as they were sent, in the answer, the read and the list", async () => {
    const texts = {
      metadata: {
        "😀 שלום": "e\u0301 \u202e <b>'\"; DROP TABLE payments; --\\ \n\t",
        empty: "",
        "\uffff": "\u{10ffff}",
      },
      description: "Zeile 1\nZeile 2 — “é”",
      merchant_order_id: `ø-${newKey()}`,
    };
    const made = await api.pay({ ...VISA, ...texts });
    expect(made.status).toBe(201);
    const read = await api.get(`/v1/payments/${made.json.id ?? ""}`);
    const list = await api.get(
      `/v1/payments?merchant_order_id=${encodeURIComponent(texts.merchant_order_id)}`,
    );
    expect(made.json).toMatchObject(texts);
    expect(read.json).toMatchObject(texts);
    expect(listOf(paymentSchema).parse(list.json).data).toEqual([read.json]);
  });

  test("a decline is a stored 402 problem and names the payment", async () => {
    const key = newKey();
    const first = await api.pay(DECLINED, { key });
    expect(first.status).toBe(402);
    expect(first.headers.get("content-type")).toBe("application/problem+json");
    expect(first.json).toMatchObject({ code: "payment_declined", payment: { status: "failed" } });
    const again = await api.pay(DECLINED, { key });
    expect(again.text).toBe(first.text);
  });

  test("an invalid request leaves its key free", async () => {
    const key = newKey();
    expect((await api.pay({ ...VISA, amount: 1.5 }, { key })).status).toBe(400);
    expect((await api.pay({ ...VISA, amount: 5125, currency: "kwd" }, { key })).json.code).toBe(
      "amount_not_supported",
    );
    expect((await api.get(`/v1/idempotency_keys/${key}?operation=payments.create`)).status).toBe(404);
    expect((await api.pay(VISA, { key })).status).toBe(201);
  });

  test("a key's state and a payment's timeline are shown as the OpenAPI document says", async () => {
    const key = `a/b,${newKey()} %`;
    const made = await api.pay(VISA, { key: `"${key}"` });
    expect(made.status).toBe(201);
    const state = await api.get(`/v1/idempotency_keys/${encodeURIComponent(key)}?operation=payments.create`);
    expect(idempotencyKeySchema.parse(state.json)).toMatchObject({
      key,
      state: "completed",
      resource_id: made.json.id,
      response_status: 201,
    });
    const timeline = await api.get(`/v1/payments/${made.json.id ?? ""}/timeline`);
    expect(listOf(timelineEntrySchema).parse(timeline.json).data.length).toBeGreaterThan(1);
  });

  test("a list is walked page by page without a gap or a repetition", async () => {
    const tenant = await anotherTenant();
    const made: unknown[] = [];
    for (let count = 0; count < 5; count++) made.unshift((await tenant.pay(VISA)).json.id);
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = listOf(paymentSchema).parse((await tenant.get(`/v1/payments?limit=2${cursor}`)).json);
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor === null ? "" : `&cursor=${page.next_cursor}`;
      expect(page.has_more).toBe(page.next_cursor !== null);
    } while (cursor !== "");
    expect(seen).toEqual(made);
    expect((await tenant.get("/v1/payments?cursor=made-up")).json.errors?.[0]?.pointer).toBe("?cursor");
  });

  test("another tenant's objects and keys do not exist", async () => {
    const key = newKey();
    const made = await api.pay(VISA, { key });
    const other = await anotherTenant();
    const path = `/v1/payments/${made.json.id ?? ""}`;
    for (const hidden of [
      path,
      `${path}/timeline`,
      `/v1/idempotency_keys/${key}?operation=payments.create`,
    ]) {
      expect((await other.get(hidden)).status).toBe(404);
    }
    expect((await other.get("/v1/payments")).json.data).toEqual([]);
    const own = await other.pay(VISA, { key });
    expect(own.status).toBe(201);
    expect(own.json.id).not.toBe(made.json.id);
  });
});

describe("while the first request still runs", () => {
  test("its key is told so, waits when asked, and never gets a 202", async () => {
    const idle = await startHarness({ workers: [] });
    const quiet = await serve(createApp(idle.deps), { host: "127.0.0.1", port: 0 });
    try {
      const caller = new ApiClient(`http://127.0.0.1:${quiet.port}`, idle.secret);
      const key = newKey();
      const order = { ...VISA, merchant_order_id: `order-${key}` };
      const first = await caller.pay(order, { key, prefer: "respond-async" });
      expect(first.status).toBe(202);
      expect(first.headers.get("preference-applied")).toBe("respond-async");
      expect(first.headers.get("retry-after")).toMatch(/^\d+$/);
      expect(first.headers.get("location")).toBe(`/v1/payments/${first.json.id ?? ""}`);
      for (const prefer of [undefined, "wait=0", "wait=1"]) {
        const again = await caller.pay(order, { key, ...(prefer === undefined ? {} : { prefer }) });
        expect(again.status).toBe(409);
        expect(again.json).toMatchObject({
          code: "idempotency_key_in_progress",
          payment: { id: first.json.id },
        });
        expect(again.headers.get("retry-after")).toMatch(/^\d+$/);
        expect(again.headers.get("location")).toBe(first.headers.get("location"));
        expect(again.headers.get("preference-applied")).toBe(prefer ?? null);
      }
      const taken = await caller.pay(order, { key: newKey() });
      expect(taken.json).toMatchObject({ code: "merchant_order_id_taken", payment: { id: first.json.id } });
      expect(taken.headers.get("retry-after")).toBeNull();
    } finally {
      await quiet.close(1_000);
      await idle.stop();
    }
  });
});
