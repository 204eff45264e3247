import { describe, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import { answerWith, type Behaviour, type Receiver } from "../support/receiver.js";
import { until } from "../support/until.js";
import { deliveriesOf, useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();
const EVENTS = 200;
const SOON_MS = 5_000;
/**
 * A machine that is busy with other things is slow with good receivers alone, too: that is measured first. Six endpoints
 * take turns here, five of them with a thousand tries between them.
 */
const SLOWER = 12;
const PATIENCE_MS = 60_000;
const TEST_TIMEOUT_MS = 120_000;

const hang: Behaviour = () => undefined;
const reset: Behaviour = (answer) => void answer.socket?.resetAndDestroy();
const stream: Behaviour = (answer) => {
  answer.writeHead(200);
  const more = () => {
    while (!answer.destroyed && answer.write(Buffer.alloc(65_536, "x")));
  };
  answer.on("drain", more);
  more();
};
const drip: Behaviour = (answer) => {
  answer.writeHead(200);
  const timer = setInterval(() => answer.write("."), 50);
  answer.on("close", () => clearInterval(timer));
};

/** How long a good receiver may take beside bad ones: 5 s, or more where it takes long by itself. */
async function patienceIn(world: WebhookWorld): Promise<number> {
  const receiver = await world.receiver();
  const tenantId = newId("ten");
  await world.endpoint(receiver.url("/alone"), { tenantId });
  await addEvents(world, tenantId, EVENTS);
  const from = performance.now();
  const process = await world.process();
  const alone = await msUntilAllAt(receiver, "/alone", from);
  await process.stop();
  return Math.max(SOON_MS, SLOWER * alone);
}

/** So many events of a tenant, each of another payment. */
async function addEvents({ sql }: WebhookWorld, tenantId: string, count: number): Promise<void> {
  await sql`
    insert into outbox (tenant_id, id, type, payment_id, sequence, data)
    select ${tenantId}, 'evt_' || md5(${tenantId} || n), 'payment.succeeded', 'pay_' || md5(${tenantId} || n), 1, '{}'
      from generate_series(1, ${count}::int) n`;
}

async function msUntilAllAt(receiver: Receiver, path: string, from: number): Promise<number> {
  const ids = () => new Set(receiver.at(path).map((one) => one.event.id));
  await until(
    `${EVENTS} events at ${path}`,
    () => ids().size,
    (count) => count === EVENTS,
    PATIENCE_MS,
  );
  return Math.max(...receiver.at(path).map((one) => one.atMs)) - from;
}

describe("a bad receiver delays nobody else", { timeout: TEST_TIMEOUT_MS }, () => {
  test("hanging, refusing, resetting, streaming and dripping ones beside a healthy one of another tenant", async () => {
    const world = await stage.start();
    const patience = await patienceIn(world);
    const receiver = await world.receiver();
    const bad = {
      "/hang": hang,
      "/refuse": answerWith(500),
      "/reset": reset,
      "/stream": stream,
      "/drip": drip,
    };
    for (const [path, behaviour] of Object.entries(bad)) {
      receiver.behave(path, behaviour);
      await world.endpoint(receiver.url(path));
    }
    const healthy = newId("ten");
    await world.endpoint(receiver.url("/good"), { tenantId: healthy });
    await addEvents(world, world.tenantId, EVENTS);
    await addEvents(world, healthy, EVENTS);
    const from = performance.now();
    const env = { WEBHOOK_TIMEOUT_MS: "3000", WEBHOOK_RETRY_SCHEDULE_MS: "60000" };
    await world.process({ env });
    expect(await msUntilAllAt(receiver, "/good", from)).toBeLessThan(patience);
    // Their tries have a deadline, and one that hangs for ever is tried again.
    await until(
      "a try of the hanging one that is over",
      () => deliveriesOf(world),
      (rows) => rows.some((row) => row.last_error === "timeout"),
    );
  });

  test("nor one endpoint of a tenant that tenant's other one", async () => {
    const world = await stage.start();
    const patience = await patienceIn(world);
    const receiver = await world.receiver();
    receiver.behave("/hang", hang);
    await world.endpoint(receiver.url("/hang"));
    await world.endpoint(receiver.url("/good"));
    await addEvents(world, world.tenantId, EVENTS);
    const from = performance.now();
    await world.process({ env: { WEBHOOK_TIMEOUT_MS: "3000" } });
    expect(await msUntilAllAt(receiver, "/good", from)).toBeLessThan(patience);
  });

  test("a hanging one has no more than a quarter of the places, ten of them together not all", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    for (let nth = 0; nth < 10; nth += 1) {
      receiver.behave(`/hang/${nth}`, hang);
      const tenantId = newId("ten");
      await world.endpoint(receiver.url(`/hang/${nth}`), { tenantId });
      if (nth === 0) await addEvents(world, tenantId, EVENTS);
    }
    const env = { WEBHOOK_TIMEOUT_MS: "60000", WEBHOOK_CONCURRENCY: "32" };
    const { deps } = await world.process({ workers: ["relay"], env });
    await until(
      "deliveries",
      () => deliveriesOf(world),
      (rows) => rows.length === EVENTS,
    );
    // As many rounds as it takes for one to find nothing more: a round tells only that there may be more.
    const claimAll = async () => {
      for (let round = 0; round < 10; round += 1) await deps.deliveries.claim();
    };
    await claimAll();
    await until(
      "a quarter under way",
      () => receiver.received.length,
      (count) => count === 8,
    );
    const tenants = await world.sql<{ tenant_id: string }[]>`
      select tenant_id from webhook_endpoints where url not like '%/hang/0'`;
    for (const { tenant_id: tenantId } of tenants) await addEvents(world, tenantId, EVENTS);
    await until(
      "more deliveries",
      () => deliveriesOf(world),
      (rows) => rows.length === 10 * EVENTS,
    );
    await claimAll();
    const underWay = (await deliveriesOf(world)).filter((row) => row.tries > 0).length;
    expect(underWay).toBeGreaterThan(8);
    expect(underWay).toBeLessThan(32);

    const healthy = newId("ten");
    await world.endpoint(receiver.url("/good"), { tenantId: healthy });
    await addEvents(world, healthy, 1);
    await until(
      "the healthy one's delivery",
      () => deliveriesOf(world),
      (rows) => rows.length === 10 * EVENTS + 1,
    );
    await claimAll();
    await until(
      "the healthy one's event",
      () => receiver.at("/good").length,
      (count) => count === 1,
    );
  });
});
