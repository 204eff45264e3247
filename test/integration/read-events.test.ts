import { describe, expect, test } from "vitest";
import { eventSchema } from "../../src/http/webhook-schemas.js";
import { newKey, VISA } from "../support/api-client.js";
import { isSignedWith } from "../support/receiver.js";
import { post, receiver, registered, start, stranger, untilReceived } from "../support/webhook-api.js";

describe("events", () => {
  test("are one for each fact, in order; the payment read on receipt is at least as far; a replay makes none", async () => {
    const to = await receiver();
    const { api } = await start();
    const read: Promise<readonly [string, string]>[] = [];
    to.behave("/", (answer, _, { event }) => {
      const payment = event.data.object as { id: string };
      read.push(api.payment(payment.id).then((now) => [event.type, now.status] as const));
      answer.end();
    });
    const { secret } = await registered(api, { url: to.url() });
    const key = newKey();
    const paid = await api.pay(VISA, { key });
    expect(paid.status, paid.text).toBe(201);
    await untilReceived(to, "/", ["payment.created", "payment.succeeded"]);
    expect((await api.pay(VISA, { key })).headers.get("idempotent-replayed")).toBe("true");
    const declined = await api.pay({ ...VISA, payment_method: "pm_card_visa_chargeDeclined" });
    expect(declined.status).toBe(402);
    await untilReceived(to, "/", ["payment.failed"]);

    const types = to.received.map((one) => one.event.type);
    expect(types).toEqual(["payment.created", "payment.succeeded", "payment.created", "payment.failed"]);
    expect(to.received.every((one) => isSignedWith(secret, one))).toBe(true);
    const [created, succeeded] = to.received.map((one) => one.event.data.object);
    expect(created).toMatchObject({
      object: "payment",
      id: paid.json.id,
      status: "processing",
      amount: 4200,
    });
    expect(succeeded).toMatchObject({ object: "payment", id: paid.json.id, status: "succeeded" });
    const order = ["processing", "succeeded"];
    for (const [type, status] of (await Promise.all(read)).slice(0, 2)) {
      expect(order.indexOf(status)).toBeGreaterThanOrEqual(
        order.indexOf(type === "payment.created" ? "processing" : "succeeded"),
      );
    }
  });

  test("can be read one by one and in pages, as they are sent, by their tenant alone", async () => {
    const to = await receiver();
    const world = await start();
    const { api } = world;
    await registered(api, { url: to.url() });
    await api.pay();
    await untilReceived(to, "/", ["payment.created", "payment.succeeded"]);
    const list = await api.get("/v1/events");
    const events = (list.json.data ?? []).map((one) => eventSchema.parse(one));
    expect(events.map((event) => event.type)).toEqual(["payment.succeeded", "payment.created"]);
    for (const event of events) {
      const sent = to.received.find((one) => one.event.id === event.id);
      const read = await api.get(`/v1/events/${event.id}`);
      expect(read.text).toBe(sent?.body.toString());
    }
    const first = await api.get("/v1/events?limit=1");
    const rest = await api.get(`/v1/events?limit=1&cursor=${String(first.json["next_cursor"])}`);
    expect([first, rest].map((page) => page.json.data?.[0]?.id)).toEqual(events.map((event) => event.id));
    const other = await stranger(world);
    expect((await other.get("/v1/events")).json.data).toEqual([]);
    const id = events[0]?.id ?? "";
    expect((await other.get(`/v1/events/${id}`)).status).toBe(404);
    expect((await post(other, `/v1/events/${id}/redeliver`)).status).toBe(404);
    expect((await api.get("/v1/events/evt_nonsense")).status).toBe(404);
    expect((await post(api, `/v1/events/${id}/redeliver`, undefined, null)).json.code).toBe(
      "idempotency_key_missing",
    );
    expect((await post(api, `/v1/events/${id}/redeliver`, { to: "x" })).json.code).toBe("validation_failed");
    const reader = await stranger(world, ["payments:read"]);
    expect((await reader.get(`/v1/events/${id}`)).status).toBe(200);
    expect((await post(reader, `/v1/events/${id}/redeliver`)).status).toBe(403);
  });
});
