import type { IncomingMessage, ServerResponse } from "node:http";
import type { Accounts } from "./accounts.js";
import { sendResult } from "./answers.js";
import { API_VERSION } from "./call.js";
import type { SandboxClock } from "./clock.js";
import type { Exchange } from "./exchange.js";
import type { Candidate, FaultRules } from "./fault-rules.js";
import type { FaultRunner } from "./fault-runner.js";
import { FormError, type Params, parseForm } from "./form.js";
import type { HostedPages } from "./hosted-pages.js";
import { requestId } from "./ids.js";
import { routeOf } from "./operations.js";
import type { Pipeline } from "./pipeline.js";
import type { LoggedRequest, RequestLog } from "./request-log.js";
import type { Store } from "./store.js";

const MOST_BODY_BYTES = 1024 * 1024;

export interface ApiParts {
  readonly pipeline: Pipeline;
  readonly runner: FaultRunner;
  readonly rules: FaultRules;
  readonly log: RequestLog;
  readonly clock: SandboxClock;
  readonly accounts: Accounts;
  readonly store: Store;
  readonly hostedPages: HostedPages;
  readonly latencyMs: () => number;
}

/** The listener's handler: reads a request whole, logs it, and sends it down the pipeline or into its fault. */
export function apiHandler(parts: ApiParts): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const hosted = request.url?.startsWith("/_hosted/") === true;
    const handle = (body: string): void => {
      try {
        if (hosted) parts.hostedPages.handle(request, response, body);
        else receive(parts, request, response, body);
      } catch (error) {
        // A full disk, or a bug: this request fails, the sandbox goes on.
        failed(response, error);
      }
    };
    if (request.method === "GET") return handle("");
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MOST_BODY_BYTES) request.destroy();
      else chunks.push(chunk);
    });
    request.on("end", () => handle(Buffer.concat(chunks).toString("utf8")));
  };
}

function failed(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const message = `The sandbox failed: ${error instanceof Error ? error.message : "unknown"}`;
  response.writeHead(500, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { type: "api_error", message } }));
}

function receive(parts: ApiParts, request: IncomingMessage, response: ServerResponse, body: string): void {
  const exchange = exchangeOf(parts, request, response, body);
  const { entry } = exchange;
  response.once("close", () => {
    if (response.writableEnded || exchange.cut) return;
    entry.abandoned = true;
    parts.log.changed();
  });
  parts.log.add(entry);
  const rule = parts.rules.take(candidateOf(parts, exchange));
  const latencyMs = parts.latencyMs();
  if (rule === null && latencyMs === 0) sendResult(exchange, parts.pipeline.run(exchange));
  else parts.runner.run(exchange, rule, latencyMs);
}

function exchangeOf(
  parts: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Exchange {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark === -1 ? url : url.slice(0, mark);
  const method = request.method ?? "GET";
  const route = routeOf(method, path);
  let params: Params = {};
  let formError: string | null = null;
  try {
    params = parseForm(body === "" ? (mark === -1 ? "" : url.slice(mark + 1)) : body);
  } catch (error) {
    if (!(error instanceof FormError)) throw error;
    formError = error.message;
  }
  const key = request.headers["idempotency-key"];
  const idempotencyKey = typeof key === "string" && key !== "" ? key : null;
  const version = request.headers["stripe-version"];
  const stripeVersion = typeof version === "string" ? version : API_VERSION;
  const id = requestId();
  const entry: LoggedRequest = {
    sequence: parts.log.nextSequence(),
    request_id: id,
    method,
    path,
    call: route?.operation.name ?? null,
    object_id: route?.objectId ?? null,
    parameters: params,
    idempotency_key: idempotencyKey,
    stripe_version: typeof version === "string" ? version : null,
    account: null,
    livemode: null,
    received_at: new Date(parts.clock.nowMs()).toISOString(),
    arrival: null,
    fault: null,
    status: null,
    result_status: null,
    error_code: null,
    replayed: false,
    effect: "none",
    abandoned: false,
  };
  return {
    response,
    requestId: id,
    method,
    path,
    operation: route?.operation ?? null,
    objectId: route?.objectId ?? null,
    params,
    formError,
    authorization: authorizationOf(request, params),
    idempotencyKey,
    stripeVersion,
    entry,
    fingerprint: null,
    cut: false,
  };
}

/** Stripe.js sends its publishable key as the parameter `key`. */
function authorizationOf(request: IncomingMessage, params: Params): string | undefined {
  const given = request.headers.authorization;
  const key = params["key"];
  return given === undefined && typeof key === "string" ? `Bearer ${key}` : given;
}

function candidateOf(parts: ApiParts, exchange: Exchange): Candidate {
  let caller: ReturnType<Accounts["authenticate"]> | null | undefined;
  const callerOf = () => {
    if (caller !== undefined) return caller;
    try {
      caller = parts.accounts.authenticate(exchange.authorization);
    } catch {
      // No valid key: no account. What the caller is told comes from the pipeline.
      caller = null;
    }
    return caller;
  };
  return {
    call: exchange.operation?.name ?? null,
    idempotencyKey: exchange.idempotencyKey,
    objectId: exchange.objectId ?? namedObject(exchange.params),
    account: () => callerOf()?.account ?? null,
    metadata: () => {
      const found = [];
      const own = exchange.params["metadata"];
      if (own !== undefined && typeof own !== "string") found.push(own);
      const name = callerOf()?.realm;
      const realm = name === undefined ? undefined : parts.store.realm(name);
      const id = exchange.objectId ?? "";
      const stored = (realm?.paymentIntents.get(id) ?? realm?.tables.refund.get(id))?.metadata ?? null;
      if (stored !== null) found.push(stored);
      return found;
    },
  };
}

/** The PaymentIntent or charge that a refund, or a list of what hangs on it, is about. */
function namedObject(params: Params): string | null {
  const named = params["payment_intent"] ?? params["charge"];
  return typeof named === "string" ? named : null;
}
