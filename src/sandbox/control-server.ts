import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { afterChargeRoutes } from "./control-after-charge.js";
import { readBody } from "./control-body.js";
import { keyRoutes, objectRoutes } from "./control-objects.js";
import type { ClockState } from "./control-types.js";
import { eventRoutes, webhookRoutes } from "./control-webhooks.js";
import { StripeFailure } from "./errors.js";
import { readFaultRule } from "./fault-input.js";
import { type HeldSelector } from "./held-requests.js";
import { ControlError, given, JsonReader } from "./json-shape.js";
import { type CallName, isCallName } from "./operation.js";
import type { RequestFilter } from "./request-log.js";
import type { SandboxParts } from "./sandbox-parts.js";
import type { LiveSettings } from "./settings.js";

const WAIT_MS = 10_000;
const MOST_WAIT_MS = 60_000;

/** The control API: JSON under `/_sandbox/`, on a listener of its own, so that it is there while the API's is closed. */
export function controlHandler(
  parts: SandboxParts,
): (request: IncomingMessage, response: ServerResponse) => void {
  const app = new Hono();
  app.onError((error, c) => {
    if (error instanceof ControlError) return c.json({ error: error.message }, error.status);
    if (error instanceof StripeFailure) return c.json({ error: error.message, code: error.error.code }, 409);
    return c.json({ error: error.message }, 500);
  });
  app.notFound((c) => c.json({ error: `there is no ${c.req.method} ${c.req.path}` }, 404));
  // What a test reads or does here comes after everything whose time has come.
  app.use("/_sandbox/*", async (_, next) => {
    parts.lifecycle.catchUp();
    await next();
  });
  app.get("/_sandbox", (c) => c.json({ url: parts.listener.url, listening: parts.listener.listening }));
  faultRoutes(app, parts);
  clockRoutes(app, parts);
  requestRoutes(app, parts);
  objectRoutes(app, parts);
  afterChargeRoutes(app, parts);
  keyRoutes(app, parts);
  settingRoutes(app, parts);
  webhookRoutes(app, parts);
  eventRoutes(app, parts);
  const listener = getRequestListener(app.fetch);
  return (request, response) => {
    void listener(request, response);
  };
}

function faultRoutes(app: Hono, { rules, held, log }: SandboxParts): void {
  app.post("/_sandbox/faults", async (c) => {
    const body = await readBody(c);
    return c.json(rules.add(readFaultRule(body.whole())), 201);
  });
  app.get("/_sandbox/faults", (c) => c.json(rules.list()));
  app.delete("/_sandbox/faults", (c) => {
    rules.clear();
    return c.json({ cleared: true });
  });
  app.delete("/_sandbox/faults/:id", (c) => {
    if (!rules.remove(c.req.param("id"))) throw new ControlError("there is no such rule", 404);
    return c.json({ removed: true });
  });
  app.get("/_sandbox/held", (c) => c.json(held.list(c.req.query() as HeldSelector)));
  app.post("/_sandbox/held/wait", async (c) => {
    const body = await readBody(c);
    const selector = readSelector(body.object("selector") ?? new JsonReader({}));
    const count = body.integer("count", 1) ?? 1;
    const timeoutMs = waitOf(body);
    body.end();
    await log.waitUntil(() => held.list(selector).length >= count, timeoutMs);
    return c.json(held.list(selector));
  });
  app.post("/_sandbox/release", async (c) => {
    const body = await readBody(c);
    const outcome = body.oneOf("outcome", ["proceed", "drop"] as const) ?? "proceed";
    return c.json({ released: held.release(readSelector(body), outcome) });
  });
}

function readSelector(reader: JsonReader): HeldSelector {
  const selector = given<HeldSelector>({
    id: reader.string("id"),
    rule_id: reader.string("rule_id"),
    request_id: reader.string("request_id"),
    call: readCall(reader),
    idempotency_key: reader.string("idempotency_key"),
    object_id: reader.string("object_id"),
    stage: reader.oneOf("stage", ["in_network", "executing", "answer"] as const),
  });
  reader.end();
  return selector;
}

/** By a name that no call has, nothing would ever be found. */
function readCall(reader: JsonReader): CallName | undefined {
  const name = reader.string("call");
  if (name !== undefined && !isCallName(name)) throw new ControlError(`call: there is no call ${name}`);
  return name;
}

function waitOf(reader: JsonReader): number {
  return Math.min(reader.integer("timeout_ms", 0) ?? WAIT_MS, MOST_WAIT_MS);
}

function clockRoutes(app: Hono, { clock, store, lifecycle }: SandboxParts): void {
  const state = (): ClockState => ({ now: new Date(clock.nowMs()).toISOString(), offset_ms: clock.offsetMs });
  const moved = (c: Context): Response => {
    store.saveSetting("clock_offset_ms", clock.offsetMs);
    lifecycle.clockMoved();
    return c.json(state());
  };
  app.get("/_sandbox/clock", (c) => c.json(state()));
  app.post("/_sandbox/clock/advance", async (c) => {
    const body = await readBody(c);
    const byMs = body.integer("by_ms", Number.MIN_SAFE_INTEGER);
    body.end();
    if (byMs === undefined) throw new ControlError("by_ms is missing");
    clock.advance(byMs);
    return moved(c);
  });
  app.post("/_sandbox/clock/set", async (c) => {
    const body = await readBody(c);
    const now = Date.parse(body.string("now") ?? "");
    body.end();
    if (Number.isNaN(now)) throw new ControlError("now must be an RFC 3339 time");
    clock.set(now);
    return moved(c);
  });
}

const NUMBER_FILTERS = new Set(["status", "after_sequence"]);

function requestRoutes(app: Hono, { log }: SandboxParts): void {
  app.get("/_sandbox/requests", (c) => {
    const filter = Object.entries(c.req.query()).map(([name, value]) => [
      name,
      NUMBER_FILTERS.has(name) ? Number(value) : value === "true" ? true : value === "false" ? false : value,
    ]);
    return c.json(log.list(readFilter(new JsonReader(Object.fromEntries(filter)))));
  });
  app.delete("/_sandbox/requests", (c) => {
    log.clear();
    return c.json({ cleared: true });
  });
  app.post("/_sandbox/requests/wait", async (c) => {
    const body = await readBody(c);
    const filter = readFilter(body.object("filter") ?? new JsonReader({}));
    const count = body.integer("count", 1) ?? 1;
    const until = body.oneOf("until", ["received", "settled"] as const) ?? "received";
    const timeoutMs = waitOf(body);
    body.end();
    const matching = () =>
      log.list(filter).filter((entry) => until === "received" || entry.result_status !== null);
    await log.waitUntil(() => matching().length >= count, timeoutMs);
    return c.json(matching());
  });
}

function readFilter(reader: JsonReader): RequestFilter {
  const filter = given<RequestFilter>({
    call: readCall(reader),
    method: reader.string("method"),
    path: reader.string("path"),
    object_id: reader.string("object_id"),
    idempotency_key: reader.string("idempotency_key"),
    account: reader.string("account"),
    request_id: reader.string("request_id"),
    status: reader.integer("status", 0),
    replayed: reader.boolean("replayed"),
    abandoned: reader.boolean("abandoned"),
    effect: reader.oneOf("effect", ["none", "pending", "applied"] as const),
    after_sequence: reader.integer("after_sequence", 0),
  });
  reader.end();
  return filter;
}

function readSettings(body: JsonReader): Partial<LiveSettings> {
  const orNever = (name: string): number | null | undefined =>
    body.nullable(name, (each) => each.integer(name, 0));
  const changes = given<Partial<LiveSettings>>({
    latency_ms: body.integer("latency_ms", 0),
    search_lag_ms: body.integer("search_lag_ms", 0),
    authorization_lifetime_ms: body.integer("authorization_lifetime_ms", 1),
    refund_settles_after_ms: orNever("refund_settles_after_ms"),
    dispute_opens_after_ms: orNever("dispute_opens_after_ms"),
    charge_booked_after_ms: body.integer("charge_booked_after_ms", 0),
    funds_available_after_ms: body.integer("funds_available_after_ms", 0),
  });
  body.end();
  return changes;
}

function settingRoutes(app: Hono, parts: SandboxParts): void {
  const { settings, listener } = parts;
  app.get("/_sandbox/settings", (c) => c.json(settings));
  app.post("/_sandbox/settings", async (c) => {
    const body = await readBody(c);
    Object.assign(settings, readSettings(body));
    return c.json(settings);
  });
  app.post("/_sandbox/listener/close", async (c) => {
    await listener.close();
    return c.json({ listening: false });
  });
  app.post("/_sandbox/listener/open", async (c) => {
    await listener.open();
    return c.json({ listening: true });
  });
  app.post("/_sandbox/reset", (c) => {
    parts.held.release({}, "drop");
    parts.rules.clear();
    parts.webhooks.clear();
    parts.accounts.clear();
    parts.clock.offsetMs = 0;
    parts.lifecycle.clear();
    parts.pipeline.resetLocks();
    parts.store.reset();
    parts.log.clear();
    return c.json({ reset: true });
  });
}
