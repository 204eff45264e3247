import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { PawlError } from "../domain/errors.js";
import type { Logger } from "../lib/log.js";
import { countRequest } from "./metrics.js";
import { type Answer, problemAnswer } from "./problem.js";
import { requestIdOf, traceIdOf, traceparentOf } from "./request-headers.js";

/** The app reads bodies and raw header lines from Node's own request, so it runs behind `serve` only. */
export interface HttpEnv {
  Bindings: HttpBindings;
}
export type HttpContext = Context<HttpEnv, string>;

/** One request and its answer. `tenantId` is set once the caller is known, for the log. */
export interface Exchange {
  readonly http: HttpContext;
  readonly requestId: string;
  readonly traceparent: string | null;
  tenantId: string | null;
}

export type Work = (exchange: Exchange) => Answer | Promise<Answer>;
export type Handler = (http: HttpContext) => Promise<Response>;

/**
 * Everything that each request gets, in one function because it is on the hot path: its id, errors as problems, common
 * headers, one log line without bodies, keys or query values, and its metrics. `route` is the pattern.
 */
export function exchangeHandler(log: Logger, route: string, work: Work): Handler {
  return async (http) => {
    const startedMs = performance.now();
    const { incoming } = http.env;
    const requestId = requestIdOf(incoming);
    const traceparent = traceparentOf(incoming);
    const exchange: Exchange = { http, requestId, traceparent, tenantId: null };
    let answer: Answer;
    try {
      answer = await work(exchange);
    } catch (error) {
      answer = problemAnswer(error, requestId, log);
    }
    const method = incoming.method ?? "";
    const elapsedMs = performance.now() - startedMs;
    countRequest(method, route, answer.status, elapsedMs / 1000);
    log.info(
      {
        method,
        route,
        status: answer.status,
        ms: Math.round(elapsedMs * 10) / 10,
        request_id: requestId,
        tenant_id: exchange.tenantId,
        ...(traceparent === null ? {} : { trace_id: traceIdOf(traceparent) }),
      },
      "request",
    );
    return toResponse(answer, requestId, method === "HEAD");
  };
}

function toResponse(answer: Answer, requestId: string, head: boolean): Response {
  const headers: Record<string, string> = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...answer.headers,
    "X-Request-Id": requestId,
  };
  // A HEAD answer carries GET's headers, the length of the body that it leaves out included.
  if (head) headers["Content-Length"] = String(Buffer.byteLength(answer.body));
  return new Response(answer.status === 204 ? null : answer.body, { status: answer.status, headers });
}

/** Answers OPTIONS with 204 and every other method than `allowed` with 405, both with `Allow`. */
export function otherMethods(allowed: readonly string[]): Work {
  const allow = [...allowed, ...(allowed.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
  return ({ http }) => {
    if (http.env.incoming.method === "OPTIONS")
      return { status: 204, headers: { Allow: allow.join(", ") }, body: "" };
    throw new PawlError("method_not_allowed", `This path knows ${allow.join(", ")}.`, { allow });
  };
}
