import type { RouteConfig } from "@hono/zod-openapi";
import { PawlError } from "../domain/errors.js";
import type { Scope } from "../domain/scopes.js";
import { authenticate } from "../operations/authenticate.js";
import type { Caller, Deps, RequestContext } from "../operations/deps.js";
import type { Exchange, HttpContext, Work } from "./exchange.js";
import type { Answer } from "./problem.js";
import type { RateLimit } from "./rate-limit.js";
import { bearerTokenOf } from "./request-headers.js";
import { requireReadable } from "./validate.js";

/** What documents one call of the API. */
export interface Documented {
  readonly method: "get" | "post" | "delete";
  /** As OpenAPI writes it: `/v1/payments/{id}`. */
  readonly path: string;
  /** Null: the call needs no key of ours. */
  readonly scope: Scope | null;
  readonly documentation: Omit<RouteConfig, "method" | "path" | "security">;
}

/** One call of the API: what serves it and what documents it, side by side. */
export interface Endpoint extends Documented {
  readonly scope: Scope;
  handle(request: ApiRequest): Promise<Answer>;
}

/** A request whose caller is known and within its limit. Nothing else of it has been looked at. */
export interface ApiRequest {
  readonly deps: Deps;
  readonly caller: Caller;
  readonly context: RequestContext;
  readonly http: HttpContext;
}

/** Authenticates, limits, and only then lets the endpoint validate and act. */
export function endpointWork(deps: Deps, endpoint: Endpoint, rateLimit: RateLimit | null): Work {
  return async (exchange) => {
    const caller = await callerOf(deps, exchange);
    exchange.tenantId = caller.tenantId;
    if (!caller.scopes.includes(endpoint.scope)) {
      throw new PawlError("permission_denied", `This call needs a key with the scope ${endpoint.scope}.`);
    }
    const { http, requestId, traceparent } = exchange;
    if (rateLimit !== null) await rateLimit(http, caller.keyId);
    requireReadable(http.env.incoming.url ?? "");
    const context: RequestContext = {
      requestId,
      traceparent,
      // Made only for who looks at it: most requests never wait.
      get signal() {
        return http.req.raw.signal;
      },
    };
    return endpoint.handle({ deps, caller, context, http });
  };
}

async function callerOf(deps: Deps, exchange: Exchange): Promise<Caller> {
  const secret = bearerTokenOf(exchange.http.env.incoming);
  if (secret === null) {
    throw new PawlError("authentication_required", "Send your API key as `Authorization: Bearer <key>`.");
  }
  const caller = await authenticate(deps, secret);
  if (caller === null) throw new PawlError("authentication_required", "The API key is unknown or revoked.");
  return caller;
}
