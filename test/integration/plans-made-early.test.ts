import type postgres from "postgres";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createApp } from "../../src/http/app.js";
import { type Server, serve } from "../../src/http/serve.js";
import { ApiClient, DECLINED, newKey, VISA } from "../support/api-client.js";
import { connectAdmin, makeCrowd, moveOldest, rowsRead } from "../support/doctor-crowd.js";
import { type Harness, startHarness, until } from "../support/harness.js";
import { MANUAL, post } from "../support/merchant.js";
import { Receiver } from "../support/receiver.js";
import { deliver, EVENTFUL } from "../support/stripe-sender.js";
import { createTestDatabase } from "../support/test-database.js";

/** Payments, and refunds of them, that a tenant has come to have: whoever reads it whole reads no less of a table. */
const PAYMENTS = 4_000;
const REFUNDS = 2_500;
/** Of a table in one round, what workers look at meanwhile included. */
const MOST_READ = 1_500;
const STEP_MS = 1_000;

let harness: Harness;
let server: Server;
let api: ApiClient;
let receiver: Receiver;
let admin: postgres.Sql;

beforeEach(async () => {
  const database = await createTestDatabase();
  admin = connectAdmin(database.adminUrl, { enable_seqscan: "off" });
  const name = new URL(database.url).pathname.slice(1);
  // A plan is made once, for whatever parameters, and stays until the next ANALYZE; and none comes by itself.
  await admin`alter database ${admin(name)} set plan_cache_mode = 'force_generic_plan'`;
  const tables = await admin<{ relname: string }[]>`
    select relname from pg_stat_user_tables where schemaname = 'public'`;
  for (const { relname } of tables) await admin`alter table ${admin(relname)} set (autovacuum_enabled = off)`;
  harness = await startHarness({
    database,
    env: { ...EVENTFUL, WEBHOOK_ALLOW_PRIVATE_TARGETS: "true", DATABASE_POOL_MAX: "4" },
    workers: ["attempts", "reconciler", "ledger", "reaper", "relay", "webhooks", "provider-events"],
  });
  server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  api = new ApiClient(`http://127.0.0.1:${server.port}`, harness.secret);
  receiver = await Receiver.start();
  await post(api, "/v1/webhook_endpoints", { url: receiver.url("/events") });
});
afterEach(async () => {
  await server.close(1_000);
  await receiver.stop();
  await admin.end();
  await harness.stop();
});

const idOf = (answer: { json: { id?: string | undefined } }) => answer.json.id ?? "none";

/** Everything that a merchant does and hears, once. */
async function round(): Promise<void> {
  const order = `order-${newKey()}`;
  const key = newKey();
  const paid = await api.pay({ ...VISA, merchant_order_id: order }, { key });
  await api.pay({ ...VISA, merchant_order_id: order }, { key });
  await api.pay({ ...VISA, merchant_order_id: order });
  const id = idOf(paid);
  const refunded = await post(api, `/v1/payments/${id}/refunds`, { amount: 100 });
  await post(api, `/v1/payments/${id}/refunds`, { amount: 1_000_000 });
  const held = idOf(await api.pay(MANUAL));
  await post(api, `/v1/payments/${held}/capture`, { amount: 6_000 });
  await post(api, `/v1/payments/${idOf(await api.pay(MANUAL))}/cancel`, {});
  await api.pay(DECLINED);
  await deliver(api.url, newsOf(String(paid.json["provider_payment_id"])));
  const events = await api.get("/v1/events?limit=5");
  const event = events.json.data?.[0]?.id;
  for (const path of [
    `/v1/payments/${id}`,
    `/v1/payments/${id}/timeline`,
    `/v1/payments/${id}/refunds`,
    `/v1/refunds/${idOf(refunded)}`,
    "/v1/payments?limit=3",
    `/v1/payments?merchant_order_id=${order}`,
    `/v1/ledger/entries?payment=${id}`,
    `/v1/idempotency_keys/${key}?operation=payments.create`,
    `/v1/events/${event}`,
  ])
    expect((await api.get(path)).status, path).toBe(200);
  await post(api, `/v1/events/${event}/redeliver`);
  await until(
    "everything told, delivered and counted",
    () => admin<{ open: boolean }[]>`
      select exists (select from outbox where relayed_at is null order by created_at limit 1)
          or exists (select from deliveries where due_at is not null order by endpoint_id limit 1)
          or exists (select from provider_events where due_at is not null order by due_at limit 1)
          or exists (select from ledger_uncounted) as open`,
    ([row]) => row?.open === false,
  );
}

function newsOf(objectId: string): string {
  const object = { id: objectId, object: "payment_intent" };
  const envelope = { id: `evt_${newKey()}`, object: "event", api_version: "2026-09-30", livemode: false };
  return JSON.stringify({ ...envelope, type: "payment_intent.succeeded", created: 1, data: { object } });
}

/** As if the tenant had been in business before: all of it is over, and of every table there is some. */
async function tradeBefore(payments: number, refunds: number, agoMs: number): Promise<void> {
  const { tenantId } = harness.caller;
  await makeCrowd(admin, { tenantId, count: payments, stepMs: STEP_MS, agoMs, lives: "paid" });
  await moveOldest(admin, tenantId, refunds);
  await admin`
    insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, state, due_at, delivered_at)
    select o.tenant_id, e.id, o.id, o.payment_id, o.sequence, o.ordinal, 'delivered', null, now()
      from outbox o join webhook_endpoints e using (tenant_id)
    on conflict do nothing`;
  await admin`
    insert into provider_events (provider, event_id, type, livemode, object_id, payload, state, due_at)
    select 'stripe', 'evt_' || ${agoMs}::float8 || n, 'charge.succeeded', false, 'ch_' || n, '{}', 'applied', null
      from generate_series(1, ${payments}::int) n`;
}

/** Autovacuum counts a table at the earliest when fifty rows of it have changed. */
async function afterTheFirstCount(): Promise<void> {
  await tradeBefore(40, 25, 2 * PAYMENTS * STEP_MS);
  await round();
  await admin`vacuum analyze`;
}

/** After every connection of Pawl's has ended: until then it may keep to itself what it has read. */
async function readInAll(): Promise<ReadonlyMap<string, number>> {
  await until(
    "no connection of Pawl's",
    () =>
      admin`select from pg_stat_activity where application_name = 'pawl' and datname = current_database()`,
    (connections) => connections.length === 0,
  );
  return rowsRead(admin);
}

it.each([
  ["had just been made", async () => undefined],
  ["had few payments", () => tradeBefore(200, 20, 2 * PAYMENTS * STEP_MS)],
  ["had been counted for the first time", afterTheFirstCount],
])(
  "reads no more of a tenant that has grown by plans that were made when the database %s",
  async (_, prepare) => {
    await prepare();
    await round();
    await round();
    await tradeBefore(PAYMENTS, REFUNDS, STEP_MS);
    const before = await rowsRead(admin);
    await round();
    await server.close(1_000);
    await harness.pawl.drain(5_000);
    await harness.pawl.close();
    const after = await readInAll();
    const read = [...after].map(([table, rows]) => [table, rows - (before.get(table) ?? 0)] as const);
    expect(read.filter(([, rows]) => rows > MOST_READ)).toEqual([]);
    // The look-ups themselves are seen.
    expect(new Map(read).get("payments")).toBeGreaterThan(10);
  },
);
