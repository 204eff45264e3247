import { describe, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import { RELAY_BATCH_SIZE, relayEvents } from "../../src/operations/relay-events.js";
import { claimDeliveries } from "../../src/store/deliveries.js";
import { until } from "../support/until.js";
import { deliveriesOf, useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();
const NOBODY = "http://127.0.0.1:9/";

const pairsOf = async (world: WebhookWorld) =>
  (await deliveriesOf(world)).map((row) => `${row.endpoint_id} ${row.event_id}`);

async function unrelayed({ sql }: WebhookWorld): Promise<number> {
  const [row] = await sql<
    { left: number }[]
  >`select count(*)::int as left from outbox where relayed_at is null`;
  return row?.left ?? -1;
}

describe("the relay", () => {
  test("makes one delivery for each endpoint of the tenant that wants the event, and no second one", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const all = await world.endpoint(NOBODY);
    const some = await world.endpoint(NOBODY, { events: ["payment.failed", "payment.succeeded"] });
    await world.endpoint(NOBODY, { events: ["payment.failed"] });
    await world.endpoint(NOBODY, { tenantId: newId("ten") });
    const id = await world.event({ type: "payment.succeeded" });
    expect(await relayEvents(deps)).toMatchObject({ events: 1 });
    expect(await relayEvents(deps)).toMatchObject({ events: 0 });
    expect(await pairsOf(world)).toEqual([`${all.id} ${id}`, `${some.id} ${id}`]);
  });

  test("makes none for an endpoint that came after the event, nor for a disabled one", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const disabled = await world.endpoint(NOBODY);
    await world.sql`update webhook_endpoints set enabled = false where id = ${disabled.id}`;
    await world.event();
    await world.endpoint(NOBODY);
    expect(await relayEvents(deps)).toMatchObject({ events: 1 });
    expect(await deliveriesOf(world)).toEqual([]);
  });

  test("does not pass over an event that is older and whose transaction commits later", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const endpoint = await world.endpoint(NOBODY);
    const [older, newer] = [newId("evt"), newId("evt")];
    await world.sql.begin(async (tx) => {
      await world.event({ id: older }, tx as never);
      await world.event({ id: newer });
      expect(await relayEvents(deps)).toMatchObject({ events: 1 });
      expect(await pairsOf(world)).toEqual([`${endpoint.id} ${newer}`]);
    });
    expect(await relayEvents(deps)).toMatchObject({ events: 1 });
    expect(await pairsOf(world)).toEqual([`${endpoint.id} ${older}`, `${endpoint.id} ${newer}`]);
  });

  test("makes nothing of a fact whose transaction is undone", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await world.endpoint(NOBODY);
    const undone = world.sql.begin(async (tx) => {
      await world.event({}, tx as never);
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await relayEvents(deps)).toMatchObject({ events: 0 });
  });

  test("beside another relay skips what that one holds, and each event is seen once", async () => {
    const world = await stage.start();
    const one = await world.process({ workers: [] });
    const other = await world.process({ workers: [] });
    await world.endpoint(NOBODY);
    const [first] = [await world.event(), await world.event(), await world.event()];
    await world.sql.begin(async (tx) => {
      await tx`select from outbox where id = ${first} for update`;
      expect(await relayEvents(one.deps)).toMatchObject({ events: 2 });
    });
    const seen = await Promise.all([relayEvents(one.deps), relayEvents(other.deps)]);
    expect(seen.map(({ events }) => events).sort()).toEqual([0, 1]);
    expect(await deliveriesOf(world)).toHaveLength(3);
  });

  test("works off more than a batch by itself, in several processes", async () => {
    const world = await stage.start();
    await world.endpoint(NOBODY);
    await world.sql`
      insert into outbox (tenant_id, id, type, data)
      select ${world.tenantId}, 'evt_' || lpad(n::text, 32, '0'), 'payment.succeeded', '{}'
        from generate_series(1, ${RELAY_BATCH_SIZE * 2 + 10}::int) n`;
    await world.process({ workers: ["relay"] });
    await world.process({ workers: ["relay"] });
    await until(
      "nothing left to relay",
      () => unrelayed(world),
      (left) => left === 0,
    );
    expect(await deliveriesOf(world)).toHaveLength(RELAY_BATCH_SIZE * 2 + 10);
  });
});

describe("an event of a payment", () => {
  test("is not sent while an earlier one of the same payment is still to be relayed", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await world.endpoint(NOBODY);
    const claim = {
      limit: 10,
      room: 10,
      roomAt: new Map<string, number>(),
      leaseMs: 10_000,
      toBroker: false,
    };
    const claimed = async () => (await claimDeliveries(deps.db.sql, claim)).map((one) => one.event.id);
    const paymentId = newId("pay");
    // Written in this order as two transactions may be that wait for the payment's lock.
    const second = await world.event({ paymentId, sequence: 2 });
    const first = await world.event({ paymentId, sequence: 1 });
    const other = await world.event();
    await world.sql.begin(async (tx) => {
      await tx`select from outbox where id = ${first} for update`;
      expect(await relayEvents(deps)).toMatchObject({ events: 2 });
      expect(await claimed()).toEqual([other]);
    });
    expect(await relayEvents(deps)).toMatchObject({ events: 1 });
    expect(await claimed()).toEqual([first]);
    expect((await deliveriesOf(world)).find((row) => row.event_id === second)).toMatchObject({
      tries: 0,
      state: "pending",
    });
  });
});
