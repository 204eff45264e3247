import { test } from "vitest";
import { claimDeliveries, recordDelivery } from "../../src/store/deliveries.js";
import { relayEvents } from "../../src/store/outbox.js";
import { openDatabase } from "../../src/store/db.js";
import { createTestDatabase } from "../support/test-database.js";
import postgres from "postgres";

test("plan", { timeout: 300000 }, async () => {
  const database = await createTestDatabase();
  const db = await openDatabase({ url: database.url, poolMax: 2, prepare: true });
  const sql = db.sql;
  console.log(await sql`select count(*) from deliveries`, await sql`select relname, reltuples from pg_class where relname in ('deliveries','outbox','webhook_endpoints')`);
  if (process.env["WITH_INDEX"]) {
    await sql.unsafe(`drop index deliveries_due; create index deliveries_due on deliveries (endpoint_id, due_at) where due_at is not null; create index deliveries_ended on deliveries (created_at) where due_at is null`);
  }
  const E = 20;
  await sql.unsafe(`insert into webhook_endpoints (tenant_id, id, url, secret) select 'ten_a', 'we_' || lpad(n::text, 5, '0'), 'http://127.0.0.1:9', 'whsec_AAAA' from generate_series(1, ${E}) n`);
  await sql.unsafe(`insert into outbox (tenant_id, id, type, payment_id, sequence, data, relayed_at) select 'ten_a', 'evt_' || lpad(n::text, 8, '0'), 'payment.succeeded', 'pay_' || (n/4), n % 4, '{}', now() from generate_series(1, 40000) n`);
  // one endpoint with a backlog of 40k, the others 100 each; plus 100k ended
  await sql.unsafe(`insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at) select tenant_id, 'we_00001', id, payment_id, sequence, ordinal, now() - interval '1 hour' from outbox`);
  await sql.unsafe(`insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at) select o.tenant_id, e.id, o.id, payment_id, sequence, ordinal, now() - interval '1 minute' from webhook_endpoints e, lateral (select * from outbox order by id limit 100) o where e.id <> 'we_00001'`);
  const ms = async (what: string, work: () => Promise<unknown>) => { const t = performance.now(); const r = await work(); console.log(what, Math.round(performance.now() - t), Array.isArray(r) ? r.length : r); return r; };
  const claim = { limit: 16, share: 10, underWay: new Map(), leaseMs: 15000, toBroker: false };
  const admin = postgres(database.adminUrl, { max: 1, onnotice: (n) => console.log(n["message"]), fetch_types: false, connection: { TimeZone: "UTC", enable_seqscan: "off", enable_hashjoin: "off", enable_mergejoin: "off", jit: "off" } as never });
  await admin.unsafe("load 'auto_explain'");
  for (const one of ["client_min_messages = log", "auto_explain.log_min_duration = 0", "auto_explain.log_analyze = on", "auto_explain.log_timing = on"]) await admin.unsafe("set " + one);
  const what = process.env["WHAT"] ?? "claim";
  if (what === "claim") await claimDeliveries(admin, claim);
  if (what === "relay") { await admin.unsafe(`update outbox set relayed_at = null where id < 'evt_00005000'`); await relayEvents(admin, 500, false); }
  await admin.end(); await sql.end(); await database.drop();
});
