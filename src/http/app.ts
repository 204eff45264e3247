import { METHODS } from "node:http";
import { Hono } from "hono";
import { PawlError } from "../domain/errors.js";
import type { Deps } from "../operations/deps.js";
import { type Documented, type Endpoint, endpointWork } from "./endpoint.js";
import { exchangeHandler, type HttpEnv, otherMethods, type Work } from "./exchange.js";
import { createRateLimit } from "./rate-limit.js";
import { docsPages } from "./routes/docs.js";
import { effectEndpoints } from "./routes/effects.js";
import { eventEndpoints } from "./routes/events.js";
import { idempotencyKeyEndpoints } from "./routes/idempotency-keys.js";
import { ledgerEndpoints } from "./routes/ledger.js";
import { paymentEndpoints } from "./routes/payments.js";
import { PROVIDER_WEBHOOKS_PATH, providerWebhooks, receiveStripeEvent } from "./routes/provider-webhooks.js";
import { refundEndpoints } from "./routes/refunds.js";
import { reviewEndpoints } from "./routes/reviews.js";
import { webhookEndpoints } from "./routes/webhook-endpoints.js";

export const endpoints: readonly Endpoint[] = [
  ...paymentEndpoints,
  ...effectEndpoints,
  ...refundEndpoints,
  ...idempotencyKeyEndpoints,
  ...ledgerEndpoints,
  ...eventEndpoints,
  ...webhookEndpoints,
  ...reviewEndpoints,
];

/** Every call that /openapi.json and /docs describe. */
export const documented: readonly Documented[] = [...endpoints, providerWebhooks];

/** One handler of one path. Every route has exactly one, so that Hono need not compose any. */
interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly work: Work;
}

const METHOD_NAMES = { get: "GET", post: "POST", delete: "DELETE" } as const;

/** The public API with its pages. To be served by `serve`: bodies and raw headers are read from Node's own request. */
export function createApp(deps: Deps): Hono<HttpEnv> {
  const rateLimit = createRateLimit(deps.settings.rateLimitPerSecond);
  return routedApp(deps, [
    ...endpoints.map((endpoint) => ({
      method: METHOD_NAMES[endpoint.method],
      path: endpoint.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      work: endpointWork(deps, endpoint, rateLimit),
    })),
    { method: "POST", path: PROVIDER_WEBHOOKS_PATH, work: receiveStripeEvent(deps) },
    ...[...docsPages(documented)].map(([path, work]) => ({ method: "GET" as const, path, work })),
  ]);
}

function routedApp(deps: Deps, routes: readonly Route[]): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  for (const { method, path, work } of routes) app.on(method, path, exchangeHandler(deps.log, path, work));
  for (const path of new Set(routes.map((route) => route.path))) {
    const allowed = routes.filter((route) => route.path === path).map((route) => route.method as string);
    // Hono answers HEAD with GET's handler.
    const others = METHODS.filter(
      (method) => !allowed.includes(method) && !(method === "HEAD" && allowed.includes("GET")),
    );
    app.on(others, path, exchangeHandler(deps.log, path, otherMethods(allowed)));
  }
  const notFound: Work = () => {
    throw new PawlError("not_found", "There is nothing at this path.");
  };
  app.notFound(exchangeHandler(deps.log, "(unknown)", notFound));
  return app;
}
