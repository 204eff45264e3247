import type { Hono } from "hono";
import { readBody } from "./control-body.js";
import { ControlError, given, type JsonReader } from "./json-shape.js";
import type { SandboxParts } from "./sandbox-parts.js";
import type { StoredEvent } from "./store.js";
import type { SendOptions, WebhookDelivery, WebhookEndpoint, WebhookEndpointInput } from "./webhooks.js";

/** Endpoints, and events sent again, in another order, in another form. */
export function webhookRoutes(app: Hono, { webhooks, store }: SandboxParts): void {
  const endpointOf = (id: string): WebhookEndpoint => {
    const endpoint = webhooks.get(id);
    if (endpoint === undefined) throw new ControlError(`there is no webhook endpoint ${id}`, 404);
    return endpoint;
  };
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
  app.get("/_sandbox/events", (c) => {
    const { type, object_id: objectId } = c.req.query();
    const events = allEvents(store.realms.values())
      .filter(({ event }) => type === undefined || event.type === type)
      .filter(
        ({ event }) => objectId === undefined || (event.data.object as { id?: string }).id === objectId,
      );
    return c.json(events.map(({ event }) => event));
  });
  app.post("/_sandbox/events/:id/redeliver", async (c) => {
    const body = await readBody(c);
    const endpointId = body.string("endpoint_id");
    const options = readSendOptions(body);
    body.end();
    const stored = allEvents(store.realms.values()).find(({ event }) => event.id === c.req.param("id"));
    if (stored === undefined) throw new ControlError("there is no such event", 404);
    const endpoints = endpointId === undefined ? webhooks.list() : [endpointOf(endpointId)];
    const deliveries: WebhookDelivery[] = [];
    for (const endpoint of endpoints) {
      deliveries.push(
        ...(await webhooks.send(endpoint, JSON.stringify(stored.event), { copies: 1, ...options }, stored)),
      );
    }
    return c.json(deliveries);
  });
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
    mode: reader.oneOf("mode", ["immediate", "held"] as const) ?? old?.mode,
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
