import { expect, test } from "vitest";
import { purgeDeliveries } from "../../src/operations/purge-deliveries.js";
import { until } from "../support/until.js";
import { deliveriesOf, useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();
const ENV = { DELIVERY_RETENTION_HOURS: "1", PURGE_BATCH_SIZE: "3" };

/** So many, all made and last tried so many minutes ago. */
async function add(
  { sql, tenantId }: WebhookWorld,
  state: string,
  count: number,
  minutes: number,
): Promise<void> {
  await sql`
    insert into deliveries (tenant_id, endpoint_id, event_id, sequence, ordinal, state, due_at, created_at, last_tried_at)
    select ${tenantId}, 'we_1', ${`evt_${state}_${minutes}_`} || n, 1, 0, ${state}::text::delivery_state,
           case ${state} when 'pending' then now() + interval '1 hour' end,
           now() - ${minutes}::float8 * interval '1 minute', now() - ${minutes}::float8 * interval '1 minute'
      from generate_series(1, ${count}::int) n`;
}

const left = async (world: WebhookWorld) => (await deliveriesOf(world)).map((row) => row.event_id);

test("ended deliveries past their retention go, a batch at a time; open and younger ones stay", async () => {
  const world = await stage.start();
  const { deps } = await world.process({ workers: [], env: ENV });
  await add(world, "delivered", 2, 61);
  await add(world, "failed", 2, 90);
  await add(world, "delivered", 1, 59);
  await add(world, "pending", 1, 600);
  expect([await purgeDeliveries(deps), await purgeDeliveries(deps), await purgeDeliveries(deps)]).toEqual([
    3, 1, 0,
  ]);
  expect(await left(world)).toEqual(["evt_delivered_59_1", "evt_pending_600_1"]);
});

test("a delivery of an old event that was tried again lately stays", async () => {
  const world = await stage.start();
  const { deps } = await world.process({ workers: [], env: ENV });
  await add(world, "delivered", 1, 600);
  await world.sql`update deliveries set last_tried_at = now()`;
  expect(await purgeDeliveries(deps)).toBe(0);
});

test("the reaper works them off by itself, and the events stay", async () => {
  const world = await stage.start();
  await world.event();
  await add(world, "failed", 10, 61);
  await world.process({ workers: ["reaper"], env: { ...ENV, PURGE_INTERVAL_MS: "20" } });
  await until(
    "nothing left",
    () => left(world),
    (ids) => ids.length === 0,
  );
  expect(await world.sql`select from outbox`).toHaveLength(1);
});
