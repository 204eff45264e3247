import { describe, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import { disableEndpoint } from "../../src/operations/disable-endpoint.js";
import { enableWebhookEndpoint } from "../../src/operations/manage-webhook-endpoints.js";
import { endWaiting, untilWaiting, untilWholePoolWorks } from "../support/lock-waits.js";
import { answerWith } from "../support/receiver.js";
import { until } from "../support/until.js";
import type { EventProcess } from "../support/webhook-stage.js";
import { deliveriesOf, useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();
const DISABLED = "webhook_endpoint.disabled";

async function endpointRow({ sql }: WebhookWorld, id: string): Promise<Record<string, unknown>> {
  const [row] = await sql<Record<string, unknown>[]>`select * from webhook_endpoints where id = ${id}`;
  return row ?? {};
}

const untilDisabled = (world: WebhookWorld, id: string) =>
  until(
    "a disabled endpoint",
    () => endpointRow(world, id),
    (row) => row["enabled"] === false,
  );

const enable = (world: WebhookWorld, { deps }: EventProcess, id: string) =>
  enableWebhookEndpoint(
    deps,
    {
      caller: { tenantId: world.tenantId, keyId: "key_1", scopes: [], livemode: false },
      context: { requestId: newId("req"), traceparent: null, signal: new AbortController().signal },
      key: newId("req"),
    },
    id,
  );

describe("an endpoint", () => {
  test("that takes nothing for too long is disabled, and the tenant's other endpoints hear of it", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/bad", answerWith(500));
    const bad = await world.endpoint(receiver.url("/bad"));
    await world.endpoint(receiver.url("/good"), { events: [DISABLED] });
    await world.endpoint(receiver.url("/stranger"), { tenantId: newId("ten") });
    const process = await world.process({
      env: { WEBHOOK_DISABLE_AFTER_MS: "150", WEBHOOK_RETRY_SCHEDULE_MS: "40,40,40,40,40,40,40,40" },
    });
    await world.event();
    expect(await untilDisabled(world, bad.id)).toMatchObject({ disabled_reason: "failing" });
    const [event] = await until(
      "the event",
      () => receiver.at("/good"),
      (all) => all.length > 0,
    );
    expect(event!.event).toMatchObject({
      type: DISABLED,
      data: {
        object: {
          object: "webhook_endpoint",
          id: bad.id,
          enabled: false,
          disabled_reason: "failing",
          secret: null,
        },
      },
    });
    expect(event!.body.toString()).not.toContain("whsec_");
    expect(receiver.at("/stranger")).toEqual([]);

    // Nothing is made for it any more, and what was pending is left as it is.
    const tries = receiver.at("/bad").length;
    const later = await world.event();
    await until(
      "the later event",
      async () => {
        const [row] = await world.sql`select from outbox where id = ${later} and relayed_at is not null`;
        return row !== undefined;
      },
      (relayed) => relayed,
    );
    const rows = await deliveriesOf(world);
    expect(rows.filter((row) => row.endpoint_id === bad.id)).toMatchObject([
      { state: "pending", last_status: 500 },
    ]);
    expect(receiver.at("/bad")).toHaveLength(tries);

    // Enabled again it gets what had waited, and starts with a clean slate.
    receiver.behave("/bad", answerWith(200));
    expect(await enable(world, process, bad.id)).toMatchObject({ response: { status: 200 } });
    await until(
      "its delivery",
      () => deliveriesOf(world),
      (seen) => seen.every((row) => row.state === "delivered"),
    );
    expect(await endpointRow(world, bad.id)).toMatchObject({
      enabled: true,
      disabled_reason: null,
      failing_since: null,
    });
  });

  test("that answers 410 is disabled at once, and that event is not tried again", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", answerWith(410, "gone"));
    const { id } = await world.endpoint(receiver.url());
    await world.process();
    await world.event();
    expect(await untilDisabled(world, id)).toMatchObject({ disabled_reason: "gone" });
    expect(await deliveriesOf(world)).toMatchObject([
      { state: "failed", tries: 1, last_status: 410, last_answer: "gone" },
    ]);
    const events =
      await world.sql`select type from outbox where tenant_id = ${world.tenantId} and type = ${DISABLED}`;
    expect(events).toHaveLength(1);
  });

  test("that takes something in between counts as failing from its next failure on", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    const { id } = await world.endpoint(receiver.url());
    await world.process({ env: { WEBHOOK_DISABLE_AFTER_MS: "60000", WEBHOOK_RETRY_SCHEDULE_MS: "10,10" } });
    await world.sql`update webhook_endpoints set failing_since = now() - interval '59 seconds'`;
    await world.event();
    await until(
      "a delivery",
      () => endpointRow(world, id),
      (row) => row["failing_since"] === null,
    );
    receiver.behave("/", answerWith(500));
    await world.event();
    await until(
      "a failed delivery",
      () => deliveriesOf(world),
      (rows) => rows.some((row) => row.state === "failed"),
    );
    expect(await endpointRow(world, id)).toMatchObject({
      enabled: true,
      failing_since: expect.any(String) as string,
    });
  });

  test("is disabled once, with one event, however many tries find it failing together", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", answerWith(500));
    const { id } = await world.endpoint(receiver.url());
    await world.sql`update webhook_endpoints set failing_since = now() - interval '1 hour'`;
    for (let nth = 0; nth < 20; nth += 1) await world.event();
    const env = { WEBHOOK_DISABLE_AFTER_MS: "1000" };
    await Promise.all([world.process({ env }), world.process({ env })]);
    await untilDisabled(world, id);
    const events = () => world.sql`select id from outbox where type = ${DISABLED}`;
    await until("its event", events, (rows) => rows.length > 0);
    expect(await events()).toHaveLength(1);
  });

  test.each(["gone", "failing"] as const)(
    "that takes something while it is being disabled stays in use, unless it is gone: %s",
    async (reason) => {
      const world = await stage.start();
      const { id } = await world.endpoint("https://example.com/");
      const { deps } = await world.process({ workers: [], env: { WEBHOOK_DISABLE_AFTER_MS: "1000" } });
      await world.sql`update webhook_endpoints set failing_since = now() - interval '1 hour'`;
      const other = await world.sql.reserve();
      try {
        await other`begin`;
        await other`update webhook_endpoints set failing_since = null`;
        const disabling = disableEndpoint(deps, { tenantId: world.tenantId, endpointId: id }, reason);
        await untilWaiting(world);
        await other`commit`;
        await disabling;
      } finally {
        other.release();
      }
      const events = await world.sql<{ data: object }[]>`select data from outbox where type = ${DISABLED}`;
      expect([(await endpointRow(world, id))["enabled"], events.length]).toEqual(
        reason === "gone" ? [false, 1] : [true, 0],
      );
      for (const { data } of events) expect(data).toMatchObject({ failing_since: null });
    },
  );

  test("whose disabling the database cuts off is as it was, the process lives, and can disable it", async () => {
    const world = await stage.start();
    const { id } = await world.endpoint("https://example.com/");
    const { deps } = await world.process({ workers: [] });
    const disable = () => disableEndpoint(deps, { tenantId: world.tenantId, endpointId: id }, "gone");
    const other = await world.sql.reserve();
    try {
      await other`begin`;
      await other`select from webhook_endpoints for update`;
      const cut = expect(disable()).rejects.toMatchObject({ code: "service_unavailable" });
      await untilWaiting(world);
      await endWaiting(world);
      await cut;
      await other`rollback`;
    } finally {
      other.release();
    }
    await untilWholePoolWorks(deps.db);
    const events = () => world.sql`select from outbox where type = ${DISABLED}`;
    expect([(await endpointRow(world, id))["enabled"], (await events()).length]).toEqual([true, 0]);
    await disable();
    expect([(await endpointRow(world, id))["enabled"], (await events()).length]).toEqual([false, 1]);
  });

  test("that is deleted gets nothing more, and what was on its way to it ends", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", answerWith(500));
    const { id } = await world.endpoint(receiver.url());
    await world.process({ env: { WEBHOOK_RETRY_SCHEDULE_MS: "200" } });
    const paymentId = newId("pay");
    await world.event({ paymentId, sequence: 1 });
    await world.event({ paymentId, sequence: 2 });
    await until(
      "a first try",
      () => deliveriesOf(world),
      (rows) => rows.some((row) => row.last_status === 500),
    );
    await world.sql`delete from webhook_endpoints where id = ${id}`;
    const rows = await until(
      "an end",
      () => deliveriesOf(world),
      (seen) => seen.every((row) => row.state === "failed"),
    );
    expect(rows.map((row) => row.last_error)).toEqual(["endpoint_deleted", "endpoint_deleted"]);
    expect(receiver.received).toHaveLength(1);
  });
});
