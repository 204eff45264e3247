import { describe, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import type { KeyedCall } from "../../src/operations/keyed-request.js";
import { redeliverEvent } from "../../src/operations/redeliver-event.js";
import { answerWith, isSignedWith } from "../support/receiver.js";
import { until } from "../support/until.js";
import {
  deliveriesOf,
  type EventProcess,
  useWebhookWorld,
  type WebhookWorld,
} from "../support/webhook-stage.js";

const stage = useWebhookWorld();

function callOf(world: WebhookWorld, key = newId("req"), tenantId = world.tenantId): KeyedCall {
  return {
    caller: { tenantId, keyId: "key_1", scopes: [], livemode: false },
    context: { requestId: newId("req"), traceparent: null, signal: new AbortController().signal },
    key,
  };
}

async function redeliver(world: WebhookWorld, { deps }: EventProcess, id: string, key?: string) {
  const answer = await redeliverEvent(deps, callOf(world, key), id);
  if (answer.type !== "final") throw new Error("no final answer");
  return {
    ...answer,
    document: JSON.parse(answer.response.body) as { deliveries: number; event_id: string },
  };
}

const untilAll = (world: WebhookWorld, state: string) =>
  until(
    `all ${state}`,
    () => deliveriesOf(world),
    (rows) => rows.length > 0 && rows.every((row) => row.state === state),
  );

describe("a redelivery", () => {
  test("of a failed event keeps its id and its bytes, and runs through the whole schedule anew", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", (answer, nth) => answer.writeHead(nth <= 6 ? 500 : 200).end());
    const { secret } = await world.endpoint(receiver.url());
    const process = await world.process({ env: { WEBHOOK_RETRY_SCHEDULE_MS: "10,10,10" } });
    const id = await world.event();
    await untilAll(world, "failed");
    expect(receiver.received).toHaveLength(4);
    expect(await redeliver(world, process, id)).toMatchObject({
      document: { event_id: id, deliveries: 1 },
      replayed: false,
    });
    await untilAll(world, "delivered");
    expect(receiver.received).toHaveLength(7);
    expect(
      new Set(receiver.received.map((one) => `${String(one.headers["webhook-id"])} ${one.body.toString()}`))
        .size,
    ).toBe(1);
    expect(receiver.received.every((one) => isSignedWith(secret, one))).toBe(true);
  });

  test("under one key happens once, and the key replays", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    await world.endpoint(receiver.url());
    const process = await world.process();
    const id = await world.event();
    await untilAll(world, "delivered");
    const first = await redeliver(world, process, id, "again");
    await until(
      "the second delivery",
      () => receiver.received.length,
      (count) => count === 2,
    );
    await untilAll(world, "delivered");
    const second = await redeliver(world, process, id, "again");
    expect([second.replayed, second.response.body]).toEqual([true, first.response.body]);
    await expect(redeliverEvent(process.deps, callOf(world, "again"), newId("evt"))).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    expect(await deliveriesOf(world)).toMatchObject([{ state: "delivered", due_at: null }]);
    expect(receiver.received).toHaveLength(2);
  });

  test("reaches the enabled endpoints that want the type, also those that came later, and no others", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    const process = await world.process();
    const id = await world.event({ type: "payment.failed" });
    await world.endpoint(receiver.url("/late"));
    await world.endpoint(receiver.url("/unwanted"), { events: ["payment.succeeded"] });
    const off = await world.endpoint(receiver.url("/disabled"));
    await world.sql`update webhook_endpoints set enabled = false where id = ${off.id}`;
    await world.endpoint(receiver.url("/stranger"), { tenantId: newId("ten") });
    expect((await redeliver(world, process, id)).document.deliveries).toBe(1);
    await untilAll(world, "delivered");
    expect(receiver.received.map((one) => one.path)).toEqual(["/late"]);
  });

  test("of another tenant's event is none", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const id = await world.event();
    const call = callOf(world, "K", newId("ten"));
    await expect(redeliverEvent(deps, call, id)).rejects.toMatchObject({ code: "not_found" });
    expect(await world.sql`select from idempotency_keys`).toHaveLength(0);
  });

  test("while a try is under way leaves the new one to be written", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    let letGo: () => void = () => undefined;
    receiver.behave("/", (answer, nth) => {
      if (nth === 1) letGo = () => void answer.writeHead(500).end();
      else answer.writeHead(200).end();
    });
    await world.endpoint(receiver.url());
    const process = await world.process();
    const id = await world.event();
    await until(
      "a try",
      () => receiver.received.length,
      (count) => count === 1,
    );
    await redeliver(world, process, id);
    await untilAll(world, "delivered");
    letGo();
    await until(
      "its outcome",
      () => process.tries.length,
      (count) => count === 2,
    );
    expect(process.tries).toEqual(["webhook delivered", "webhook lost"]);
    expect(await deliveriesOf(world)).toMatchObject([{ state: "delivered", last_status: 200 }]);
  });
});

test("an event that was finally refused can be sent again by an endpoint that has been mended", async () => {
  const world = await stage.start();
  const receiver = await world.receiver();
  receiver.behave("/", answerWith(410));
  const { id: endpoint } = await world.endpoint(receiver.url());
  const process = await world.process();
  const id = await world.event();
  await untilAll(world, "failed");
  await until(
    "a disabled endpoint",
    () => world.sql`select from webhook_endpoints where not enabled`,
    (rows) => rows.length === 1,
  );
  expect((await redeliver(world, process, id)).document.deliveries).toBe(0);
  receiver.behave("/", answerWith(200));
  await world.sql`update webhook_endpoints set enabled = true where id = ${endpoint}`;
  expect((await redeliver(world, process, id)).document.deliveries).toBe(1);
  await until(
    "its delivery",
    () => deliveriesOf(world),
    (rows) => rows.find((row) => row.event_id === id)?.state === "delivered",
  );
});
