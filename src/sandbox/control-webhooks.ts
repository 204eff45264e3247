import type { Hono } from "hono";
import { type EventDetails, emit } from "./call.js";
import { readBody } from "./control-body.js";
import { ControlError, given, type JsonReader } from "./json-shape.js";
import { objectIn, realmHolding } from "./objects.js";
import type { SandboxParts } from "./sandbox-parts.js";
import type { StoredEvent } from "./store.js";
import {
  type SendOptions,
  WEBHOOK_MODES,
  type WebhookDelivery,
  type WebhookEndpoint,
  type WebhookEndpointInput,
  type Webhooks,
} from "./webhooks.js";

function endpointIn(webhooks: Webhooks, id: string): WebhookEndpoint {
  const endpoint = webhooks.get(id);
  if (endpoint === undefined) throw new ControlError(`there is no webhook endpoint ${id}`, 404);
  return endpoint;
}

/** Endpoints, what they hold, and bytes of a test's own. */
export function webhookRoutes(app: Hono, { webhooks }: SandboxParts): void {
  const endpointOf = (id: string): WebhookEndpoint => endpointIn(webhooks, id);
  app.get("/_sandbox/webhook_endpoints", (c) => c.json(webhooks.list()));
  app.post("/_sandbox/webhook_endpoints", async (c) => {
    return c.json(webhooks.set(readEndpoint(await readBody(c), null)), 201);
  });
  app.patch("/_sandbox/webhook_endpoints/:id", async (c) => {
    const old = endpointOf(c.req.param("id"));
    return c.json(webhooks.set(readEndpoint(await readBody(c), old), old.id));
  });
  app.delete("/_sandbox/webhook_endpoints/:id", (c) => {
    if (!webhooks.remove(c.req.param("id"))) throw new ControlError("there is no such webhook endpoint", 404);
    return c.json({ removed: true });
  });
  app.get("/_sandbox/webhook_endpoints/:id/held", (c) => {
    return c.json(webhooks.held(endpointOf(c.req.param("id")).id).map(({ event }) => event));
  });
  app.post("/_sandbox/webhook_endpoints/:id/release", async (c) => {
    const body = await readBody(c);
    const order = Array.isArray(body.any("order"))
      ? (body.strings("order") ?? [])
      : (body.oneOf("order", ["created", "reverse"] as const) ?? "created");
    body.end();
    return c.json(await webhooks.release(endpointOf(c.req.param("id")).id, order));
  });
  app.post("/_sandbox/webhook_endpoints/:id/send", async (c) => {
    const body = await readBody(c);
    const content = body.any("body");
    if (content === undefined) throw new ControlError("body is missing");
    const options = readSendOptions(body);
    body.end();
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return c.json(await webhooks.send(endpointOf(c.req.param("id")), text, options));
  });
  app.get("/_sandbox/webhook_deliveries", (c) => c.json(webhooks.deliveries()));
  app.post("/_sandbox/webhook_deliveries/idle", async (c) => {
    await webhooks.idle();
    return c.json({ idle: true });
  });
}

/** Events: seen, sent again, or made by hand. */
export function eventRoutes(app: Hono, parts: SandboxParts): void {
  const { webhooks, store } = parts;
  app.get("/_sandbox/events", (c) => {
    const { type, object_id: objectId } = c.req.query();
    const events = allEvents(store.realms.values())
      .filter(({ event }) => type === undefined || event.type === type)
      .filter(
        ({ event }) => objectId === undefined || (event.data.object as { id?: string }).id === objectId,
      );
    return c.json(events.map(({ event }) => event));
  });
  app.post("/_sandbox/events", async (c) => c.json(makeEvent(parts, await readBody(c)), 201));
  app.post("/_sandbox/events/:id/redeliver", async (c) => {
    const body = await readBody(c);
    const endpointId = body.string("endpoint_id");
    const options = readSendOptions(body);
    body.end();
    const stored = allEvents(store.realms.values()).find(({ event }) => event.id === c.req.param("id"));
    if (stored === undefined) throw new ControlError("there is no such event", 404);
    const endpoints = endpointId === undefined ? webhooks.list() : [endpointIn(webhooks, endpointId)];
    const deliveries: WebhookDelivery[] = [];
    for (const endpoint of endpoints) {
      deliveries.push(
        ...(await webhooks.send(endpoint, JSON.stringify(stored.event), { copies: 1, ...options }, stored)),
      );
    }
    return c.json(deliveries);
  });
}

/** One more event, of an object as it is or as the test has it. It is sent, held or lost as any other is. */
function makeEvent({ store, callFor }: SandboxParts, body: JsonReader): object {
  const type = body.string("type");
  const objectId = body.string("object_id");
  const own = body.any("object");
  const account = body.string("account");
  const livemode = body.boolean("livemode");
  const details = given<EventDetails>({ api_version: body.string("api_version"), livemode });
  body.end();
  if (type === undefined) throw new ControlError("type is missing");
  if ((objectId === undefined) === (own === undefined))
    throw new ControlError("object_id or object is needed");
  if (own !== undefined && (typeof own !== "object" || own === null)) {
    throw new ControlError("object must be an object");
  }
  const id = objectId ?? (own as { id?: unknown }).id;
  const holding = typeof id === "string" ? realmHolding(store, id) : null;
  if (objectId !== undefined && holding === null)
    throw new ControlError(`there is no object ${objectId}`, 404);
  if (holding === null && account === undefined) {
    throw new ControlError("account is needed: no account has this object");
  }
  const realm =
    account === undefined && holding !== null
      ? holding
      : store.realm(`${account ?? ""}/${livemode === true ? "live" : "test"}`);
  const object = own ?? (holding === null ? undefined : objectIn(holding, objectId ?? ""));
  const event = emit(callFor(realm, "", {}, false), type, object as object, undefined, details);
  store.commit();
  return event;
}

function allEvents(realms: Iterable<{ readonly events: readonly StoredEvent[] }>): StoredEvent[] {
  return [...realms].flatMap((realm) => realm.events).sort((a, b) => a.sequence - b.sequence);
}

function readEndpoint(reader: JsonReader, old: WebhookEndpoint | null): WebhookEndpointInput {
  const secret = reader.string("secret");
  const secrets = reader.strings("secrets") ?? (secret === undefined ? old?.secrets : [secret]);
  const url = reader.string("url") ?? old?.url;
  if (url === undefined || !URL.canParse(url)) throw new ControlError("url must be a URL");
  if (secrets === undefined || secrets.length === 0) throw new ControlError("secret or secrets is missing");
  const endpoint = given<WebhookEndpointInput>({
    url,
    secrets,
    account: reader.string("account") ?? old?.account ?? undefined,
    enabled_events: reader.strings("enabled_events") ?? old?.enabled_events ?? undefined,
    mode: reader.oneOf("mode", WEBHOOK_MODES) ?? old?.mode,
    copies: reader.integer("copies", 1) ?? old?.copies,
    delay_ms: reader.integer("delay_ms", 0) ?? old?.delay_ms,
  });
  reader.end();
  return endpoint;
}

function readSendOptions(reader: JsonReader): SendOptions {
  return given<SendOptions>({
    timestamp_offset_seconds: reader.integer("timestamp_offset_seconds", Number.MIN_SAFE_INTEGER),
    signature: reader.string("signature"),
    copies: reader.integer("copies", 1),
  });
}
