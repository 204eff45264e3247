import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp, endpoints } from "../../src/http/app.js";
import { openApiDocument } from "../../src/http/openapi.js";
import { listOf, paymentSchema, problemSchema, refundSchema } from "../../src/http/response-schemas.js";
import { type Server, serve } from "../../src/http/serve.js";
import { type ApiAnswer, ApiClient, newKey } from "../support/api-client.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  MANUAL,
  made,
  outcomeOf,
  readRefund,
  refund,
} from "../support/merchant.js";

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

describe("members", () => {
  test("an amount is a whole number of the minor unit and more than nothing: anything else is 400 and points to it", async () => {
    const [held, paid] = [await made(api, MANUAL), await made(api, AUTOMATIC)];
    for (const amount of [
      "null",
      "0",
      "-1",
      "-0",
      "1.5",
      '"1"',
      "true",
      "[1]",
      "{}",
      "1e400",
      "1000000000000",
    ]) {
      for (const refused of [
        await capture(api, held.id, `{"amount":${amount}}`),
        await refund(api, paid.id, `{"amount":${amount}}`),
      ]) {
        expect([amount, outcomeOf(refused)]).toEqual([amount, "400 validation_failed"]);
        expect(refused.json.errors?.[0]?.pointer).toBe("/amount");
      }
    }
    expect(await api.payment(held.id)).toEqual(held);
    expect(await api.payment(paid.id)).toEqual(paid);
  });

  test("left out, null or spelt otherwise is the same request where it means the same", async () => {
    const paid = await made(api, AUTOMATIC);
    const key = newKey();
    const first = await refund(api, paid.id, { amount: 1_000, metadata: { b: "1", "10": "2" } }, { key });
    expect(first.status, first.text).toBe(201);
    const spellings = [
      '{"metadata":{"10":"2","b":"1"},"amount":1e3}',
      '{"reason":null,"amount":1000.0,"metadata":{"10":"2","b":"1"}}',
    ];
    for (const spelling of spellings) {
      const again = await refund(api, paid.id, spelling, { key });
      expect([spelling, again.text]).toEqual([spelling, first.text]);
    }
    for (const other of ['{"amount":1000}', '{"amount":1000,"metadata":{"b":"1","10":"2"},"reason":"x"}']) {
      expect(outcomeOf(await refund(api, paid.id, other, { key }))).toBe("422 idempotency_key_reused");
    }
    const held = await made(api, MANUAL);
    const gone = await cancel(api, held.id, { reason: null }, { key });
    expect((await cancel(api, held.id, undefined, { key })).text).toBe(gone.text);
    expect(outcomeOf(await cancel(api, held.id, { reason: "x" }, { key }))).toBe(
      "422 idempotency_key_reused",
    );
  });

  test("the reason and the metadata of a refund come back as they were sent, and a card number in them does not", async () => {
    const paid = await made(api, AUTOMATIC);
    const texts = { reason: "“zu groß” 😀", metadata: { "😀 שלום": "e\u0301 <b>'\";--", empty: "" } };
    const answer = await refund(api, paid.id, { amount: 100, ...texts });
    const document = refundSchema.parse(answer.json);
    expect(document).toMatchObject({
      ...texts,
      payment_id: paid.id,
      amount: 100,
      currency: "usd",
      status: "succeeded",
      external: false,
      failure: null,
      resolution: null,
    });
    expect(await readRefund(api, document.id)).toEqual(answer.json);
    for (const body of [
      { amount: 100, reason: "4242 4242 4242 4242" },
      { amount: 100, metadata: { card: "4242424242424242" } },
    ]) {
      const refused = await refund(api, paid.id, body);
      expect(outcomeOf(refused)).toBe("400 card_number_refused");
      expect(refused.text).not.toContain("4242");
    }
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, "v"]));
    for (const metadata of [
      many,
      { ["k".repeat(41)]: "v" },
      { k: "v".repeat(501) },
      { k: 1 },
      { k: "\u0000" },
    ]) {
      expect((await refund(api, paid.id, { amount: 100, metadata })).status).toBe(400);
    }
    expect(await api.payment(paid.id)).toMatchObject({ amount_refunded: 100, amount_refundable: 9_900 });
  });
});

describe("reading refunds", () => {
  test("a payment's refunds are walked page by page, the newest first, without a gap or a repetition", async () => {
    const [paid, other] = [await made(api, AUTOMATIC), await made(api, AUTOMATIC)];
    await refund(api, other.id, { amount: 1 });
    const ids: unknown[] = [];
    for (let count = 1; count <= 5; count += 1)
      ids.unshift((await refund(api, paid.id, { amount: count })).json.id);
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = listOf(refundSchema).parse(
        (await api.get(`/v1/payments/${paid.id}/refunds?limit=2${cursor}`)).json,
      );
      expect(page.data.length).toBeLessThanOrEqual(2);
      expect(page.has_more).toBe(page.next_cursor !== null);
      seen.push(...page.data.map(({ id }) => id));
      // What comes meanwhile belongs before the first page.
      if (cursor === "") await refund(api, paid.id, { amount: 6 });
      cursor = page.next_cursor === null ? "" : `&cursor=${page.next_cursor}`;
    } while (cursor !== "");
    expect(seen).toEqual(ids);
    const fresh = await made(api, AUTOMATIC);
    expect((await api.get(`/v1/payments/${fresh.id}/refunds`)).json).toEqual({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });

  test("a query that is not as it must be is 400 and points to it; an unknown id is 404", async () => {
    const { id } = await made(api, AUTOMATIC);
    for (const [query, pointer] of [
      ["limit=0", "?limit"],
      ["limit=101", "?limit"],
      ["limit=x", "?limit"],
      ["cursor=made-up", "?cursor"],
      ["status=failed", "?status"],
    ]) {
      const refused = await api.get(`/v1/payments/${id}/refunds?${query}`);
      expect([query, refused.status, refused.json.errors?.[0]?.pointer]).toEqual([query, 400, pointer]);
    }
    for (const path of [
      `/v1/refunds/re_${"0".repeat(32)}`,
      "/v1/refunds/re_1",
      `/v1/refunds/${id}`,
      `/v1/payments/pay_${"0".repeat(32)}/refunds`,
    ]) {
      expect(outcomeOf(await api.get(path))).toBe("404 not_found");
    }
    expect((await api.get(`/v1/refunds/re_${"0".repeat(32)}?expand=payment`)).status).toBe(400);
  });
});

describe("the OpenAPI document", () => {
  const { paths } = openApiDocument(endpoints) as unknown as {
    paths: Record<string, Record<string, Operation>>;
  };
  interface Operation {
    readonly operationId: string;
    readonly description: string;
    readonly parameters?: readonly {
      readonly name: string;
      readonly in: string;
      readonly required?: boolean;
    }[];
    readonly requestBody?: { readonly required?: boolean };
    readonly responses: Record<
      string,
      { readonly headers?: object; readonly content?: Record<string, object> }
    >;
  }
  const operation = (method: string, path: string): Operation => {
    const found = paths[path]?.[method];
    if (found === undefined) throw new Error(`${method} ${path} is not documented`);
    return found;
  };

  test.each([
    ["/v1/payments/{id}/capture", "200", "payments:write"],
    ["/v1/payments/{id}/cancel", "200", "payments:write"],
    ["/v1/payments/{id}/refunds", "201", "refunds:write"],
  ])(
    "has POST %s with its key, its preference, its optional body, its scope and every answer",
    (path, status, scope) => {
      const { parameters, requestBody, responses, description } = operation("post", path);
      const named = new Map((parameters ?? []).map((one) => [one.name.toLowerCase(), one]));
      expect(named.get("idempotency-key")).toMatchObject({ in: "header", required: true });
      expect(named.get("prefer")).toMatchObject({ in: "header" });
      expect(named.get("id")).toMatchObject({ in: "path", required: true });
      expect(requestBody?.required ?? false).toBe(false);
      expect(description).toContain(scope);
      expect(Object.keys(responses)).toEqual(
        expect.arrayContaining([
          status,
          "202",
          "400",
          "401",
          "402",
          "403",
          "404",
          "409",
          "413",
          "415",
          "422",
          "503",
        ]),
      );
      expect(Object.keys(responses[status]?.headers ?? {})).toEqual(
        expect.arrayContaining(["Location", "Idempotent-Replayed", "Idempotency-Key-Expires"]),
      );
      expect(Object.keys(responses["202"]?.headers ?? {})).toEqual(
        expect.arrayContaining(["Location", "Retry-After"]),
      );
    },
  );

  test("has the reads of refunds with their pages", () => {
    const list = operation("get", "/v1/payments/{id}/refunds");
    expect((list.parameters ?? []).map((one) => one.name)).toEqual(
      expect.arrayContaining(["limit", "cursor"]),
    );
    expect(Object.keys(operation("get", "/v1/refunds/{id}").responses)).toEqual(
      expect.arrayContaining(["200", "400", "401", "403", "404"]),
    );
  });

  test("holds for every answer of a payment's whole life", async () => {
    const { id } = await made(api, MANUAL);
    const answers: readonly (readonly [string, ApiAnswer])[] = [
      ["capture", await capture(api, id, { amount: 10_001 })],
      ["capture", await capture(api, id, { amount: 6_000 })],
      ["capture", await capture(api, id)],
      ["cancel", await cancel(api, id)],
      ["refunds", await refund(api, id, { amount: 7_000 })],
      ["refunds", await refund(api, id)],
      ["refunds", await refund(api, id, { amount: 0 })],
      ["refunds", await refund(api, `pay_${"0".repeat(32)}`)],
    ];
    expect(answers.map(([, answer]) => outcomeOf(answer))).toEqual([
      "422 amount_too_large",
      "200",
      "409 invalid_state",
      "409 invalid_state",
      "422 amount_too_large",
      "201",
      "400 validation_failed",
      "404 not_found",
    ]);
    for (const [name, { status, json, headers }] of answers) {
      const documented = operation("post", `/v1/payments/{id}/${name}`).responses[String(status)];
      expect(Object.keys(documented?.content ?? {})).toContain(headers.get("content-type"));
      if (status >= 400) problemSchema.parse(json);
      else if (name === "refunds") refundSchema.parse(json);
      else paymentSchema.parse(json);
    }
  });
});
