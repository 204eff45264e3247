import { OpenAPIHono } from "@hono/zod-openapi";
import { packageVersion } from "../lib/package-version.js";
import type { Documented } from "./endpoint.js";

const DESCRIPTION =
  "One charge for one intent, whatever crashes, times out or is sent twice. Errors are RFC 9457 problem details; each code has its page under /docs/errors.";

export type OpenApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

/** The API's OpenAPI 3.1 document, made from the schemas that validate. */
export function openApiDocument(calls: readonly Documented[]): OpenApiDocument {
  // Only the generator that comes with it is used: routing is app.ts's business.
  const generator = new OpenAPIHono();
  generator.openAPIRegistry.registerComponent("securitySchemes", "apiKey", {
    type: "http",
    scheme: "bearer",
  });
  for (const { method, path, scope, documentation } of calls) {
    const needs = scope === null ? null : `Needs the scope \`${scope}\`.`;
    const description = [documentation.description, needs].filter(Boolean).join(" ");
    generator.openAPIRegistry.registerPath({
      ...documentation,
      method,
      path,
      description,
      security: scope === null ? [] : [{ apiKey: [] }],
    });
  }
  return generator.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Pawl",
      version: packageVersion(),
      description: DESCRIPTION,
      license: { name: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
  });
}
