import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../../src/domain/errors.js";
import { documented } from "../../../src/http/app.js";
import { get, startApp, type TestServer } from "./harness.js";

interface OpenApi {
  readonly openapi: string;
  readonly paths: Record<
    string,
    Record<
      string,
      { parameters?: { name: string; in: string; schema: unknown }[]; responses: Record<string, unknown> }
    >
  >;
  readonly components: {
    readonly schemas: Record<
      string,
      { properties: Record<string, unknown>; required: string[]; additionalProperties: unknown }
    >;
  };
}

let app: TestServer;
let document: OpenApi;
beforeAll(async () => {
  app = await startApp();
  document = (await (await fetch(`${app.url}/openapi.json`)).json()) as OpenApi;
});
afterAll(() => app.server.close(1_000));

describe("the OpenAPI document", () => {
  it("describes each call that the app serves and no other", () => {
    expect(document.openapi).toBe("3.1.0");
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(described.sort()).toEqual(documented.map(({ method, path }) => `${method} ${path}`).sort());
    expect(described).toContain("post /v1/payments");
  });

  it("describes how the provider's events come: signed, and without a key of ours", () => {
    const { post } = document.paths["/v1/providers/stripe/webhooks"] ?? {};
    expect(post).toMatchObject({
      security: [],
      parameters: [{ name: "Stripe-Signature", in: "header", required: true }],
    });
    expect(Object.keys(post?.responses ?? {})).toEqual(["200", "400", "408", "413", "500", "503"]);
  });

  it("has what every reference in it points to", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(references.length).toBeGreaterThan(0);
    for (const name of references) expect(Object.keys(document.components.schemas)).toContain(name);
  });

  it("tells of the create what validation demands", () => {
    const input = document.components.schemas["PaymentInput"];
    expect(input?.additionalProperties).toBe(false);
    expect(input?.required.sort()).toEqual(["amount", "currency", "payment_method"]);
    expect(input?.properties).toMatchObject({
      amount: { type: "integer", minimum: 1, maximum: 999_999_999_999 },
      currency: { type: "string" },
      capture_method: { enum: ["automatic", "manual"], default: "automatic" },
      merchant_order_id: { maxLength: 255 },
      metadata: {
        type: "object",
        maxProperties: 50,
        additionalProperties: { type: "string", maxLength: 500 },
      },
    });
    const parameters = document.paths["/v1/payments"]?.["post"]?.parameters ?? [];
    expect(parameters.map(({ name }) => name)).toEqual(["Idempotency-Key", "Prefer"]);
    expect(Object.keys(document.paths["/v1/payments"]?.["post"]?.responses ?? {})).toEqual(
      expect.arrayContaining([
        "201",
        "202",
        "400",
        "401",
        "402",
        "403",
        "408",
        "409",
        "413",
        "415",
        "422",
        "429",
        "503",
      ]),
    );
  });

  it("describes the query of a list as it is parsed", () => {
    const parameters = document.paths["/v1/payments"]?.["get"]?.parameters ?? [];
    expect(parameters.find(({ name }) => name === "limit")?.schema).toMatchObject({
      type: "integer",
      minimum: 1,
      maximum: 100,
      default: 20,
    });
    expect(parameters.map(({ name }) => name)).toEqual([
      "status",
      "merchant_order_id",
      "created_after",
      "created_before",
      "limit",
      "cursor",
    ]);
  });
});

describe("the pages", () => {
  const pages = ["/docs", "/docs/errors", ...Object.keys(ERROR_CODES).map((code) => `/docs/errors/${code}`)];

  it("exist for every error code", () => {
    expect(readdirSync("docs/errors").sort()).toEqual(
      Object.keys(ERROR_CODES)
        .map((code) => `${code}.md`)
        .sort(),
    );
  });

  it.each(pages)("%s needs no key, no script and no other host", async (path) => {
    const response = await fetch(app.url + path);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'self'/);
    const html = await response.text();
    expect(html).not.toMatch(/<script|<iframe|<img|\son\w+=|(?:src|href)="(?!\/|#)/i);
  });

  it("link to pages and sections that exist", async () => {
    for (const path of pages) {
      const html = await (await fetch(app.url + path)).text();
      for (const [, target = ""] of html.matchAll(/href="([^"]+)"/g)) {
        if (target.startsWith("#")) expect(html).toContain(`id="${target.slice(1)}"`);
        else expect((await get(app, target)).status, `${path} → ${target}`).toBe(200);
      }
    }
  });

  it("show every call and link from its answers to the errors", async () => {
    const html = await (await fetch(`${app.url}/docs`)).text();
    for (const { path } of documented) expect(html).toContain(path);
    expect(html).toContain('href="/docs/errors/idempotency_key_reused"');
  });
});
