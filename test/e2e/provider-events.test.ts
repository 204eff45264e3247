import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  entriesOf,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  refundsOf,
  typesOf,
  untilRefund,
  untilShows,
} from "../support/merchant.js";
import { chargeEvent, WEBHOOK_SECRET } from "../support/provider-events.js";
import { type Api, type System, startFaultySystem } from "../support/system.js";
import { until } from "../support/until.js";

/** Attempts look by themselves so rarely that whatever becomes known in a test was told. */
const ENV = {
  STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PROVIDER_TIMEOUT_MS: "500",
  ATTEMPT_LEASE_MS: "1000",
  FOLLOW_FIRST_MS: "600000",
  FOLLOW_MOST_MS: "600000",
  PROVIDER_EVENT_INTERVAL_MS: "100",
};

describeWithFaults("the provider's events, over processes that are killed", () => {
  let system: System;
  let api: Api;

  beforeAll(async () => {
    system = await startFaultySystem({ env: ENV });
    api = await system.api();
    await sendTo(api);
  });
  afterEach(() => system.crashWorkers());
  afterAll(() => system.drop());

  /** Events go to this API from now on, each twice. */
  async function sendTo(receiver: Api): Promise<void> {
    const { control } = system;
    for (const { id } of await control.listWebhookEndpoints()) await control.removeWebhookEndpoint(id);
    await control.addWebhookEndpoint({
      url: `${receiver.url}/v1/providers/stripe/webhooks`,
      secrets: [WEBHOOK_SECRET],
      copies: 2,
    });
  }

  /** A worker that will kill itself, and after it one that will not. */
  async function killedAt(point: string, tell: () => Promise<unknown>): Promise<void> {
    const doomed = await system.worker({ WORKERS: "provider-events", PAWL_PROBES: `${point}=kill` });
    await tell();
    expect((await doomed.process.exited).signal).toBe("SIGKILL");
    await system.worker();
  }

  const waiting = async () => (await system.command<{ data: unknown[] }>("events", "list", "--json")).data;
  const untilAllApplied = () => until("an inbox without work", waiting, (events) => events.length === 0);

  /** A payment whose own events are behind it: a worker that is to die must not die of those. */
  async function paid(body: object) {
    const first = await system.worker({ WORKERS: "attempts,provider-events" });
    const payment = await made(api.client, body);
    const told = await system.control.listEvents({ object_id: objectIdOf(payment) });
    const deliveries = async () => {
      const ids = new Set((await system.control.listDeliveries()).map((one) => one.event_id));
      return told.filter(({ id }) => !ids.has(id));
    };
    await until("every event of the payment delivered", deliveries, (missing) => missing.length === 0);
    await system.control.webhooksIdle();
    await untilAllApplied();
    await first.process.stop();
    return payment;
  }

  it.each(["before_event_applied", "before_event_ended", "after_event_ended"])(
    "a worker killed at %s: the payment goes on once its event is taken over",
    async (point) => {
      const payment = await paid(NEEDS_CUSTOMER);
      await killedAt(point, () => system.control.authenticate(objectIdOf(payment), "complete"));
      await untilShows(api.client, payment.id, { status: "succeeded" });
      await untilAllApplied();
      const types = await typesOf(api.client, payment.id);
      expect(types.filter((type) => type === "payment.succeeded")).toHaveLength(1);
    },
  );

  it.each(["after_get_refund", "before_fact_written", "before_event_ended"])(
    "a worker killed at %s: a refund made outside is recorded once and followed to its end",
    async (point) => {
      const payment = await paid(AUTOMATIC);
      await killedAt(point, () => system.control.dashboard.refund(objectIdOf(payment), 1_000));
      await untilShows(api.client, payment.id, { amount_refunded: 1_000, amount_refundable: 9_000 });
      await untilAllApplied();
      const refunds = await refundsOf(api.client, payment.id);
      expect(refunds).toMatchObject([{ external: true, amount: 1_000 }]);
      await untilRefund(api.client, refunds[0]?.id ?? "", ["succeeded"]);
      const types = await typesOf(api.client, payment.id);
      expect(types.filter((type) => type.startsWith("refund."))).toEqual([
        "refund.created",
        "refund.succeeded",
      ]);
      const reversals = (await entriesOf(api.client, payment.id)).filter(({ fact }) =>
        fact.startsWith("refunded:"),
      );
      expect(reversals).toHaveLength(1);
    },
  );

  it.each(["after_get_dispute", "before_fact_written", "before_event_ended"])(
    "a worker killed at %s: a dispute is on the payment, in the books and told once",
    async (point) => {
      const payment = await paid(AUTOMATIC);
      await killedAt(point, () => system.control.bank.openDispute(objectIdOf(payment)));
      await untilAllApplied();
      const shown = await api.client.payment(payment.id);
      expect(shown["disputes"]).toMatchObject([{ status: "open", amount: 10_000 }]);
      const types = await typesOf(api.client, payment.id);
      expect(types.filter((type) => type.startsWith("dispute."))).toEqual([
        "dispute.opened",
        "dispute.funds_withdrawn",
      ]);
      const facts = (await entriesOf(api.client, payment.id)).filter(({ fact }) =>
        fact.startsWith("dispute:"),
      );
      expect(facts.map(({ leg }) => leg)).toEqual([1, 2]);
    },
  );

  it.each(["before_event_stored", "after_event_stored"])(
    "an API killed at %s: the event is not lost, for it is either stored or sent again",
    async (point) => {
      const payment = await paid(NEEDS_CUSTOMER);
      const doomed = await system.api({ PAWL_PROBES: `${point}=kill` });
      await sendTo(doomed);
      await system.control.authenticate(objectIdOf(payment), "complete");
      expect((await doomed.process.exited).signal).toBe("SIGKILL");
      await sendTo(api);
      await system.worker();
      for (const { id } of await system.control.listEvents({ object_id: objectIdOf(payment) })) {
        await system.control.redeliverEvent(id);
      }
      await untilShows(api.client, payment.id, { status: "succeeded" });
      await untilAllApplied();
    },
  );

  it("what is parked is listed and replayed from the command line", async () => {
    const payment = await paid(AUTOMATIC);
    const { control } = system;
    // As after a restored backup: the marker is ours, and its attempt is not known here.
    const event = chargeEvent({ tenantId: system.tenantId, attemptId: "att_lost", objectId: "pi_lost" });
    const [endpoint] = await control.listWebhookEndpoints();
    const deliveries = await control.sendWebhook(endpoint?.id ?? "", event);
    expect(deliveries.map(({ status }) => status)).toEqual([200, 200]);
    const impatient = await system.worker({ PROVIDER_EVENT_MOST_TRIES: "2" });
    type Listed = { data: { id: string; state: string; outcome: string; tries: number }[] };
    const parked = () => system.command<Listed>("events", "list", "--parked", "--json");
    const { data } = await until("a parked event", parked, (listed) => listed.data.length === 1);
    expect(data).toMatchObject([{ id: event.id, state: "parked", outcome: "attempt_not_known", tries: 2 }]);
    await impatient.process.stop();
    expect(await system.command("events", "replay", event.id, "--json")).toEqual({ replayed: 1 });
    expect(await waiting()).toMatchObject([{ id: event.id, state: "pending", tries: 0 }]);
    expect(await system.command("events", "replay", "--all", "--json")).toEqual({ replayed: 0 });
    await expect(system.command("events", "replay", event.id, "--json")).rejects.toThrow();
    expect(await api.client.payment(payment.id)).toEqual(payment);
  });
});
