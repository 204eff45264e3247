import { expect, test } from "vitest";
import { createAdminApp } from "../../src/http/admin/admin-app.js";
import { answerWith } from "../support/receiver.js";
import { until } from "../support/until.js";
import { receiver, registered, start } from "../support/webhook-api.js";

test("the operator sees what is not relayed, what is on its way, for how long, and what tries came to", async () => {
  const to = await receiver();
  to.behave("/", answerWith(500));
  const { api, harness } = await start({ workers: [], env: { WEBHOOK_RETRY_SCHEDULE_MS: "60000" } });
  await registered(api, { url: to.url() });
  const { sql } = harness.deps.db;
  const scrape = async () => (await createAdminApp(harness.deps).request("/metrics")).text();
  expect((await api.pay(undefined, { prefer: "respond-async" })).status).toBe(202);
  expect(await scrape()).toMatch(/^pawl_events_unrelayed 1$/m);
  expect(await scrape()).toMatch(/^pawl_deliveries_pending 0$/m);

  await harness.another({ workers: ["relay"] });
  await until(
    "a delivery",
    () => sql`select from deliveries`,
    (rows) => rows.length === 1,
  );
  await sql`update deliveries set due_at = now() - interval '90 seconds'`;
  const waiting = await scrape();
  expect(waiting).toMatch(/^pawl_events_unrelayed 0$/m);
  expect(waiting).toMatch(/^pawl_deliveries_pending 1$/m);
  expect(Number(/^pawl_deliveries_overdue_seconds (\S+)$/m.exec(waiting)?.[1])).toBeGreaterThanOrEqual(90);

  await harness.another({ workers: ["webhooks"] });
  await until(
    "a failed try",
    () => sql`select from deliveries where last_status = 500`,
    (rows) => rows.length === 1,
  );
  const after = await until("its metric", scrape, (text) => text.includes("pawl_delivery_tries_total{"));
  expect(after).toMatch(/^pawl_delivery_tries_total\{target="webhook",outcome="retrying"\} 1$/m);
  expect(after).toMatch(/^pawl_deliveries_overdue_seconds 0$/m);
});
