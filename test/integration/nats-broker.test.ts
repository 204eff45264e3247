import { createServer, type Socket } from "node:net";
import { connect, type JsMsg, nanos, RetentionPolicy } from "nats";
import { afterEach, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import { createLogger } from "../../src/lib/log.js";
import { createNatsBroker } from "../../src/nats/nats-broker.js";
import { relayEvents } from "../../src/operations/relay-events.js";
import { NatsServer, type NatsServerOptions } from "../support/nats-server.js";
import { describeWithProgram } from "../support/needs-program.js";
import { until } from "../support/until.js";
import { deliveriesOf, useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function brokerAt(url: string, timeoutMs = 2_000) {
  const lines: string[] = [];
  const log = createLogger({ level: "info", destination: { write: (line) => void lines.push(line) } });
  const broker = createNatsBroker({ url, timeoutMs, log });
  ends.push(() => broker.close());
  return { broker, lines };
}

interface Stored {
  readonly subject: string;
  readonly id: string | undefined;
  readonly body: string;
}

/** What a stream holds, in its order. */
async function storedIn(server: NatsServer, stream = "PAWL_EVENTS"): Promise<Stored[]> {
  const connection = await connect({ servers: new URL(server.url).host, ...credentialsOf(server) });
  try {
    const manager = await connection.jetstreamManager();
    const { state } = await manager.streams.info(stream);
    if (state.messages === 0) return [];
    const consumer = await connection.jetstream().consumers.get(stream);
    const batch = await consumer.fetch({ max_messages: state.messages, expires: 2_000 });
    const stored: Stored[] = [];
    for await (const message of batch as AsyncIterable<JsMsg>) {
      stored.push({
        subject: message.subject,
        id: message.headers?.get("Nats-Msg-Id"),
        body: message.string(),
      });
    }
    return stored;
  } finally {
    await connection.close();
  }
}

function credentialsOf({ url }: NatsServer) {
  const { username, password } = new URL(url);
  return username === "" ? {} : { user: username, pass: password };
}

const untilAll = (world: WebhookWorld, state: string, count: number) =>
  until(
    `${count} ${state}`,
    () => deliveriesOf(world),
    (rows) => rows.length === count && rows.every((row) => row.state === state),
  );

describeWithProgram("nats-server", "the broker", (program) => {
  const start = async (options: NatsServerOptions = {}) => {
    const server = await NatsServer.start(program, options);
    ends.push(() => server.stop());
    return server;
  };

  test("gets every event of every tenant, as receivers get it, in each payment's order", async () => {
    const server = await start();
    const world = await stage.start();
    const receiver = await world.receiver();
    await world.endpoint(receiver.url());
    const { broker } = brokerAt(server.url);
    const paymentId = newId("pay");
    const other = newId("ten");
    for (const sequence of [3, 1, 2])
      await world.event({ paymentId, sequence, type: "payment.succeeded", object: { sequence } });
    await world.event({ tenantId: other, type: "refund.failed" });
    await world.process({ broker });
    await untilAll(world, "delivered", 7);
    const stored = await storedIn(server);
    const ours = stored.filter((one) => one.subject === `pawl.events.${world.tenantId}.payment.succeeded`);
    expect(ours.map((one) => (JSON.parse(one.body) as { data: unknown }).data)).toEqual([
      { object: { sequence: 1 } },
      { object: { sequence: 2 } },
      { object: { sequence: 3 } },
    ]);
    expect(stored.filter((one) => one.subject === `pawl.events.${other}.refund.failed`)).toHaveLength(1);
    expect(stored).toHaveLength(4);
    for (const got of receiver.received) {
      expect(ours.find((one) => one.id === got.event.id)?.body).toBe(got.body.toString());
    }
  });

  test("stores an event once that is published again", async () => {
    const server = await start();
    const { broker } = brokerAt(server.url);
    const message = { tenantId: "ten_1", eventId: "evt_1", type: "payment.succeeded", body: "{}" };
    const delivered = { delivered: true, status: null, fault: null, answer: null };
    expect(await broker.publish(message)).toEqual(delivered);
    expect(await broker.publish(message)).toEqual(delivered);
    expect(await brokerAt(server.url).broker.publish(message)).toEqual(delivered);
    expect(await storedIn(server)).toEqual([
      { subject: "pawl.events.ten_1.payment.succeeded", id: "evt_1", body: "{}" },
    ]);
  });

  test("leaves an operator's own stream as it is", async () => {
    const server = await start();
    const connection = await connect({ servers: new URL(server.url).host });
    const manager = await connection.jetstreamManager();
    await manager.streams.add({
      name: "OURS",
      subjects: ["pawl.>"],
      retention: RetentionPolicy.Limits,
      max_age: nanos(60_000),
    });
    const { broker } = brokerAt(server.url);
    await broker.publish({ tenantId: "ten_1", eventId: "evt_1", type: "payment.succeeded", body: "{}" });
    expect(await storedIn(server, "OURS")).toHaveLength(1);
    expect((await manager.streams.names().next()).map((name) => name)).toEqual(["OURS"]);
    await connection.close();
  });

  test("that is away is tried again until it is back; webhooks do not wait for it, and nothing is given up", async () => {
    const server = await start();
    const world = await stage.start();
    const receiver = await world.receiver();
    const endpoint = await world.endpoint(receiver.url());
    const { broker, lines } = brokerAt(server.url, 500);
    const env = { WEBHOOK_RETRY_SCHEDULE_MS: "20", RETRY_MOST_MS: "100" };
    const process = await world.process({ broker, env });
    await world.event();
    await untilAll(world, "delivered", 2);
    await server.crash();
    for (let nth = 0; nth < 5; nth += 1) await world.event();
    await until(
      "five webhooks",
      () => receiver.received.length,
      (count) => count === 6,
    );
    const rows = await until(
      "several tries",
      () => deliveriesOf(world),
      (seen) => seen.filter((row) => row.endpoint_id === "nats" && row.tries >= 4).length === 5,
    );
    const waiting = rows.filter((row) => row.endpoint_id === "nats" && row.tries > 1);
    expect(new Set(waiting.map((row) => `${row.state} ${row.last_error}`))).toEqual(
      new Set(["pending broker_unavailable"]),
    );
    await server.start();
    await untilAll(world, "delivered", 12);
    expect(await storedIn(server)).toHaveLength(6);
    expect(process.tries).not.toContain("broker failed");
    expect(lines.join()).toContain("did not take an event");
    expect((await deliveriesOf(world)).filter((row) => row.endpoint_id === endpoint.id)).toHaveLength(6);
  });

  test("without JetStream, or with another password, takes nothing and says why", async () => {
    const plain = await start({ jetStream: false });
    const message = { tenantId: "ten_1", eventId: "evt_1", type: "payment.succeeded", body: "{}" };
    const refused = { delivered: false, fault: "broker_unavailable" };
    expect(await brokerAt(plain.url).broker.publish(message)).toMatchObject(refused);
    const guarded = await start({ credentials: { user: "pawl", password: "s3cret" } });
    expect(await brokerAt(guarded.url).broker.publish(message)).toMatchObject({ delivered: true });
    const { broker, lines } = brokerAt(guarded.url.replace("s3cret", "wrong"));
    expect(await broker.publish(message)).toMatchObject(refused);
    expect(lines.join()).toMatch(/AUTHORIZATION_VIOLATION/);
    expect(lines.join()).not.toMatch(/wrong|s3cret/);
  });
});

test("a broker that accepts connections and says nothing fails at the deadline and leaves no connection", async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  const { broker } = brokerAt(`nats://127.0.0.1:${typeof address === "object" ? address?.port : 0}`, 200);
  const message = { tenantId: "ten_1", eventId: "evt_1", type: "payment.succeeded", body: "{}" };
  const from = performance.now();
  expect(await broker.publish(message)).toMatchObject({ delivered: false, fault: "broker_unavailable" });
  expect(performance.now() - from).toBeLessThan(2_000);
  await until(
    "no connection",
    () => sockets.size,
    (open) => open === 0,
  );
});

test("without a broker nothing is made for one, and what an earlier process made is left alone", async () => {
  const world = await stage.start();
  const receiver = await world.receiver();
  await world.endpoint(receiver.url());
  const silent = { publish: () => new Promise<never>(() => undefined), close: () => Promise.resolve() };
  const { deps } = await world.process({ workers: [], broker: silent });
  const before = await world.event();
  await relayEvents(deps);
  await world.process();
  await world.event();
  const rows = await until(
    "two webhooks",
    () => deliveriesOf(world),
    (seen) => seen.filter((row) => row.state === "delivered").length === 2,
  );
  expect(rows.filter((row) => row.endpoint_id === "nats")).toMatchObject([
    { event_id: before, state: "pending", tries: 0 },
  ]);
});
