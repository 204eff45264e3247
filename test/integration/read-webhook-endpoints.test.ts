import { describe, expect, test } from "vitest";
import { deliverySchema, redeliverySchema, webhookEndpointSchema } from "../../src/http/webhook-schemas.js";
import { newKey } from "../support/api-client.js";
import { answerWith, isSignedWith } from "../support/receiver.js";
import { until } from "../support/until.js";
import {
  post,
  receiver,
  registered,
  remove,
  start,
  stranger,
  untilReceived,
} from "../support/webhook-api.js";

describe("a receiver", () => {
  test("belongs to its tenant and to keys with the scope", async () => {
    const world = await start({ workers: [] });
    const { id } = await registered(world.api, { url: "https://93.184.216.34/" });
    const other = await stranger(world);
    const path = `/v1/webhook_endpoints/${id}`;
    const asked = () =>
      Promise.all([
        other.get(path),
        other.get(`${path}/deliveries`),
        remove(other, id),
        post(other, `${path}/rotate_secret`),
        post(other, `${path}/enable`),
      ]);
    expect((await asked()).map((answer) => answer.json.code)).toEqual(Array<string>(5).fill("not_found"));
    expect((await other.get("/v1/webhook_endpoints")).json.data).toEqual([]);
    const reader = await stranger(world, ["payments:read"]);
    expect((await reader.get(path)).status).toBe(403);
    expect((await post(reader, `${path}/rotate_secret`)).status).toBe(403);
    expect((await world.api.get(path)).status).toBe(200);
  });

  test("that is deleted is gone, and deleting it again says so", async () => {
    const { api } = await start({ workers: [] });
    const { id } = await registered(api, { url: "https://93.184.216.34/" });
    const deleted = await remove(api, id);
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    expect([(await remove(api, id)).status, (await api.get(`/v1/webhook_endpoints/${id}`)).status]).toEqual([
      404, 404,
    ]);
    const put = await api.request("PUT", `/v1/webhook_endpoints/${id}`, {});
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, DELETE, HEAD, OPTIONS"]);
  });

  test("lists in pages, the newest first", async () => {
    const { api } = await start({ workers: [] });
    const ids: string[] = [];
    for (let nth = 0; nth < 3; nth += 1)
      ids.unshift((await registered(api, { url: `https://93.184.216.34/${nth}` })).id);
    const first = await api.get("/v1/webhook_endpoints?limit=2");
    expect([first.json.data?.map((one) => one.id), first.json["has_more"]]).toEqual([ids.slice(0, 2), true]);
    const rest = await api.get(`/v1/webhook_endpoints?limit=2&cursor=${String(first.json["next_cursor"])}`);
    expect([rest.json.data?.map((one) => one.id), rest.json["next_cursor"]]).toEqual([ids.slice(2), null]);
  });

  test("gets events signed by the old and the new secret while they overlap, and then by the new one alone", async () => {
    const to = await receiver();
    const { api, harness } = await start();
    const before = await registered(api, { url: to.url(), events: ["payment.created"] });
    const key = newKey();
    const answer = await post(api, `/v1/webhook_endpoints/${before.id}/rotate_secret`, undefined, key);
    const after = webhookEndpointSchema.parse(answer.json);
    expect(after.secret).toMatch(/^whsec_/);
    expect(after.secret).not.toBe(before.secret);
    expect(Date.parse(after.previous_secret_expires_at ?? "")).toBeGreaterThan(Date.now());
    const again = await post(api, `/v1/webhook_endpoints/${before.id}/rotate_secret`, {}, key);
    expect([again.headers.get("idempotent-replayed"), again.json]).toEqual([
      "true",
      { ...after, secret: null },
    ]);

    await api.pay();
    const [during] = await untilReceived(to, "/", ["payment.created"]);
    expect([isSignedWith(before.secret, during!), isSignedWith(after.secret ?? "", during!)]).toEqual([
      true,
      true,
    ]);
    expect(String(during!.headers["webhook-signature"]).split(" ")).toHaveLength(2);

    await harness.deps.db.sql`update webhook_endpoints set previous_secret_expires_at = now()`;
    await api.pay();
    const [, alone] = await until(
      "a second event",
      () => to.received,
      (all) => all.length === 2,
    );
    expect([isSignedWith(before.secret, alone!), isSignedWith(after.secret ?? "", alone!)]).toEqual([
      false,
      true,
    ]);
  });

  test("shows what was sent to it, with the last answer", async () => {
    const to = await receiver();
    to.behave("/", answerWith(500, "out of paper"));
    const { api } = await start();
    const { id } = await registered(api, { url: to.url(), events: ["payment.created"] });
    const payment = await api.pay();
    const path = `/v1/webhook_endpoints/${id}/deliveries`;
    const listed = await until(
      "a failed delivery",
      () => api.get(path),
      (answer) => answer.text.includes('"failed"'),
    );
    const [delivery] = (listed.json.data ?? []).map((one) => deliverySchema.parse(one));
    expect(delivery).toMatchObject({
      endpoint_id: id,
      event_type: "payment.created",
      payment_id: payment.json.id,
      state: "failed",
      tries: 3,
      last_status: 500,
      last_error: "status",
      last_answer: "out of paper",
      next_try_at: null,
      delivered_at: null,
    });

    to.behave("/", answerWith(200, "thanks"));
    const eventId = delivery?.event_id ?? "";
    const redelivered = await post(api, `/v1/events/${eventId}/redeliver`);
    expect(redeliverySchema.parse(redelivered.json)).toMatchObject({ event_id: eventId, deliveries: 1 });
    const seen = await until(
      "a delivery",
      () => api.get(path),
      (answer) => answer.text.includes('"delivered"'),
    );
    expect((seen.json.data ?? []).map((one) => deliverySchema.parse(one))).toMatchObject([
      { state: "delivered", tries: 1, last_answer: "thanks", last_error: null },
    ]);
    expect(new Set(to.received.map((one) => one.headers["webhook-id"]))).toEqual(new Set([eventId]));
  });
});
