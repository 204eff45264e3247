import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { type ApiAnswer, newKey, type PaymentDocument, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { TOLD_ONLY, useInbox } from "../support/inbox.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  entriesOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  refund,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { deliver } from "../support/stripe-sender.js";
import type { Api } from "../support/system.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const ROUNDS = 50;
const SIDE_BY_SIDE = 25;

describeWithFaults("the provider's events, at two processes", () => {
  const pair = usePair(TOLD_ONLY);
  const inbox = useInbox(pair);
  let endpoint: WebhookEndpoint;
  beforeAll(async () => {
    endpoint = await pair.inbox(0, "lost");
  });
  afterEach(() => pair.control.updateWebhookEndpoint(endpoint.id, { mode: "lost", copies: 1 }));

  it(`that come before the answer, ${ROUNDS} rounds: every create is 201, captured once, told once`, async () => {
    await pair.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate", copies: 2 });
    const ids: string[] = [];
    for (let round = 0; round < ROUNDS; round += SIDE_BY_SIDE) {
      await pair.control.addFault({
        match: { call: "payment_intents.confirm" },
        times: SIDE_BY_SIDE,
        fault: { type: "hang", effect: "applied" },
      });
      const creating = Array.from({ length: SIDE_BY_SIDE }, (_, at) =>
        (pair.apis[at % 2] as Api).client.pay(VISA, { prefer: "wait=30" }),
      );
      await pair.control.waitForHeld({ count: SIDE_BY_SIDE });
      await pair.control.webhooksIdle();
      await pair.control.release();
      const answers = await Promise.all(creating);
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 201));
      ids.push(...answers.map((answer) => answer.json.id ?? ""));
    }
    const statuses = (await pair.control.listDeliveries()).map((delivery) => delivery.status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await inbox.untilNothingWaits();
    await pair.expectOneTruth(...ids);
  });

  describe("in any order", () => {
    it("succeeded, then amount_capturable_updated, then created: the state never goes back", async () => {
      const payment = await made(pair.client, MANUAL);
      await pair.control.dashboard.capture(objectIdOf(payment), 6_000);
      const told = await inbox.eventOf(payment);
      const created = Number(told.event["created"]);
      expect((await deliver(pair.apis[0].url, told.with({}))).status).toBe(200);
      await untilShows(pair.client, payment.id, { status: "succeeded", amount_captured: 6_000 });
      const before = await pair.client.payment(payment.id);
      for (const [type, at, status] of [
        ["payment_intent.amount_capturable_updated", created - 5, "requires_capture"],
        ["payment_intent.requires_action", created, "requires_action"],
        ["payment_intent.payment_failed", created, "requires_payment_method"],
        ["payment_intent.created", created - 60, "requires_confirmation"],
        ["payment_intent.canceled", created + 60, "canceled"],
      ] as const) {
        const late = told.with({ id: `evt_${newKey()}`, type, created: at }, { status, amount_received: 0 });
        expect((await deliver(pair.apis[1].url, late)).status).toBe(200);
      }
      await inbox.untilNothingWaits();
      expect(await pair.client.payment(payment.id)).toEqual(before);
      await pair.expectOneTruth(payment.id);
    });

    it("refunded, then a late succeeded: still refunded", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      await pair.control.dashboard.refund(objectIdOf(payment), 2_500);
      const [refunded] = await pair.control
        .listEvents({ type: "charge.refunded" })
        .then((all) => all.slice(-1));
      const [made1] = (await pair.control.listEvents({ type: "refund.created" })).slice(-1);
      for (const event of [refunded, made1])
        expect((await deliver(pair.apis[0].url, JSON.stringify(event))).status).toBe(200);
      await untilShows(pair.client, payment.id, { amount_refunded: 2_500 });
      const late = (await inbox.eventOf(payment)).with({});
      expect((await deliver(pair.apis[1].url, late)).status).toBe(200);
      await inbox.untilNothingWaits();
      expect(await pair.client.payment(payment.id)).toMatchObject({
        status: "succeeded",
        amount_refunded: 2_500,
      });
      await pair.expectOneTruth(payment.id);
    });
  });

  describe("that make us look at the object just before it changes", () => {
    /** The provider's answer from before `change`, which comes after all of it is done. */
    async function lookedAtBefore(payment: PaymentDocument, type: string, change: () => Promise<ApiAnswer>) {
      const rule = { match: { call: "payment_intents.retrieve", object_id: objectIdOf(payment) } };
      await pair.control.addFault({ ...rule, fault: { type: "hang", effect: "applied" } });
      const told = await inbox.eventOf(payment, type);
      expect((await deliver(pair.apis[0].url, told.with({}))).status).toBe(200);
      await pair.control.waitForHeld();
      const changed = await change();
      expect(changed.status, changed.text).toBe(200);
      const before = await pair.client.payment(payment.id);
      await pair.control.release();
      await inbox.untilNothingWaits();
      // A later look at the same object: whatever the held answer led to is written by then.
      expect((await deliver(pair.apis[0].url, told.with({ id: `evt_${newKey()}` }))).status).toBe(200);
      await inbox.untilNothingWaits();
      await pair.expectOneTruth(payment.id);
      expect(await typesOf(pair.client, payment.id)).toEqual([
        "payment.created",
        `payment.${payment.status}`,
        `payment.${before.status}`,
      ]);
      expect(await pair.client.payment(payment.id)).toEqual(before);
    }

    it("by the customer, and tell of that while the look still runs: looked at once more, and paid", async () => {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      const rule = { match: { call: "payment_intents.retrieve", object_id: objectIdOf(payment) } };
      await pair.control.addFault({ ...rule, fault: { type: "hang", effect: "applied" } });
      const acting = (await inbox.eventOf(payment, "payment_intent.requires_action")).with({});
      expect((await deliver(pair.apis[0].url, acting)).status).toBe(200);
      await pair.control.waitForHeld();
      await pair.control.authenticate(objectIdOf(payment), "complete");
      expect((await deliver(pair.apis[1].url, (await inbox.eventOf(payment)).with({}))).status).toBe(200);
      await inbox.untilNothingWaits();
      expect((await pair.client.payment(payment.id)).status).toBe("requires_action");
      await pair.control.release();
      await untilShows(pair.client, payment.id, { status: "succeeded" });
      await pair.expectOneTruth(payment.id);
    });

    it("by a cancel: the hold stays released", async () => {
      const payment = await made(pair.client, MANUAL);
      await lookedAtBefore(payment, "payment_intent.amount_capturable_updated", () =>
        cancel(pair.client, payment.id),
      );
    });

    it("by a cancel before the customer has acted: canceled", async () => {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      await lookedAtBefore(payment, "payment_intent.requires_action", () => cancel(pair.client, payment.id));
    });

    it("by a capture: captured", async () => {
      const payment = await made(pair.client, MANUAL);
      await lookedAtBefore(payment, "payment_intent.amount_capturable_updated", () =>
        capture(pair.client, payment.id, { amount: 6_000 }),
      );
    });
  });

  it("one of them three times at once at two processes, again after a restart, again much later: applied once", async () => {
    const payment = await inbox.untold();
    const text = (await inbox.eventOf(payment)).with({});
    const send = () =>
      Promise.all([0, 1, 0, 1, 0, 1].map((at) => deliver((pair.apis[at] as Api).url, text))).then((answers) =>
        answers.map((answer) => answer.status),
      );
    expect(new Set(await send())).toEqual(new Set([200]));
    await untilShows(pair.client, payment.id, { status: "succeeded" });
    await pair.system.crashWorkers();
    await pair.apis[1].process.crash();
    pair.apis[1] = await pair.system.api();
    await pair.system.worker();
    await pair.system.worker();
    expect(new Set(await send())).toEqual(new Set([200]));
    const { updated_at: updatedAt } = await pair.client.payment(payment.id);
    expect((await refund(pair.client, payment.id, { amount: 1_000 })).status).toBe(201);
    expect(new Set(await send())).toEqual(new Set([200]));
    await inbox.untilNothingWaits();
    expect(Date.parse((await pair.client.payment(payment.id)).updated_at)).toBeGreaterThan(
      Date.parse(updatedAt),
    );
    const rows = await inbox.sql`select * from provider_events where payload = ${text}`;
    expect(rows).toHaveLength(1);
    expect(
      (await typesOf(pair.client, payment.id)).filter((type) => type === "payment.succeeded"),
    ).toHaveLength(1);
    const facts = (await entriesOf(pair.client, payment.id)).map((entry) => entry.fact);
    expect(facts.filter((fact) => fact === "captured")).toHaveLength(1);
    await pair.expectOneTruth(payment.id);
  });

  it("and two different events of one fact: one fact", async () => {
    const payment = await inbox.untold();
    const told = await inbox.eventOf(payment);
    const sent = await Promise.all(
      ["one", "other"].map((name, at) =>
        deliver((pair.apis[at] as Api).url, told.with({ id: `evt_${name}_${newKey()}` })),
      ),
    );
    expect(sent.map((answer) => answer.status)).toEqual([200, 200]);
    await untilShows(pair.client, payment.id, { status: "succeeded" });
    await inbox.untilNothingWaits();
    await pair.expectOneTruth(payment.id);
  });

  describe("whose first delivery fails", () => {
    it("since the database is away: not 2xx, and the same event is applied when it comes again", async () => {
      const proxy = await TcpProxy.before(pair.system.databaseUrl);
      const api = await pair.system.api({ DATABASE_URL: proxy.through(pair.system.databaseUrl) });
      const payment = await inbox.untold();
      const text = (await inbox.eventOf(payment)).with({});
      proxy.refuse(true);
      proxy.cut();
      const failed = await deliver(api.url, text);
      expect(failed.status).toBe(503);
      expect(await inbox.kept().then(() => pair.client.payment(payment.id))).toMatchObject({
        status: "requires_action",
      });
      proxy.refuse(false);
      const answer = await until(
        "a delivery that is taken",
        () => deliver(api.url, text),
        (taken) => taken.status === 200,
      );
      expect(answer.status).toBe(200);
      await untilShows(pair.client, payment.id, { status: "succeeded" });
      await api.process.stop();
      await proxy.stop();
      await pair.expectOneTruth(payment.id);
    });

    it("since its transaction breaks after the commit: the second is 2xx, and it is applied once", async () => {
      const proxy = await TcpProxy.before(pair.system.databaseUrl);
      const api = await pair.system.api({ DATABASE_URL: proxy.through(pair.system.databaseUrl) });
      const payment = await inbox.untold();
      const told = await inbox.eventOf(payment);
      const text = told.with({ id: `evt_${newKey()}` });
      const held = proxy.holdAnswer((JSON.parse(text) as { id: string }).id);
      const first = deliver(api.url, text);
      await held.caught;
      proxy.cut();
      expect((await first).status).toBe(503);
      expect((await deliver(pair.apis[1].url, text)).status).toBe(200);
      await untilShows(pair.client, payment.id, { status: "succeeded" });
      await api.process.stop();
      await proxy.stop();
      await pair.expectOneTruth(payment.id);
    });

    it("since the payment's rows are locked: kept, and applied once they are free", async () => {
      const payment = await inbox.untold();
      const lock = await inbox.sql.reserve();
      await lock`begin`;
      await lock`select * from attempts where payment_id = ${payment.id} for update`;
      await lock`select * from payments where id = ${payment.id} for update`;
      const answer = await deliver(pair.apis[0].url, (await inbox.eventOf(payment)).with({}));
      expect(answer.status).toBe(200);
      await until(
        "a try that found the rows locked",
        () => inbox.sql`select * from provider_events where object_id = ${objectIdOf(payment)} and tries > 0`,
        (rows) => rows.length === 1,
      );
      expect((await pair.client.payment(payment.id)).status).toBe("requires_action");
      await lock`rollback`;
      lock.release();
      await untilShows(pair.client, payment.id, { status: "succeeded" });
      await pair.expectOneTruth(payment.id);
    });
  });
});
