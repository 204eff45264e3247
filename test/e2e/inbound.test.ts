import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { type ApiClient, newKey, type PaymentDocument, VISA } from "../support/api-client.js";
import { expectOneTruth } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  entriesOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  refund,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { deliver, EVENTFUL, INBOX_PATH, STRIPE_SECRET } from "../support/stripe-sender.js";
import { type Api, type System, startFaultySystem, untilStatus } from "../support/system.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const ROUNDS = 100;
const FOREIGN = 1_000;
const SIDE_BY_SIDE = 25;
const AT_ONCE = 20;

describeWithFaults("the provider's events, at two processes", () => {
  let system: System;
  let apis: [Api, Api];
  let client: ApiClient;
  let endpoint: WebhookEndpoint;
  let admin: postgres.Sql;

  beforeAll(async () => {
    // What waits for its customer or for its bank is asked about when an event says so, and not before.
    const env = {
      ...EVENTFUL,
      PROVIDER_TIMEOUT_MS: "10000",
      ATTEMPT_LEASE_MS: "20000",
      FOLLOW_FIRST_MS: "600000",
      FOLLOW_MOST_MS: "600000",
    };
    system = await startFaultySystem({ env });
    admin = postgres(system.adminUrl ?? "", { max: 2, onnotice: () => undefined });
    apis = [await system.api(), await system.api()];
    client = apis[0].client;
    endpoint = await system.control.addWebhookEndpoint({
      url: apis[0].url + INBOX_PATH,
      secrets: [STRIPE_SECRET],
      mode: "lost",
    });
    await system.worker();
    await system.worker();
  });
  afterEach(async () => {
    await system.control.updateWebhookEndpoint(endpoint.id, { mode: "lost", copies: 1 });
    await system.control.clearFaults();
    await system.control.release();
  });
  afterAll(async () => {
    await admin.end();
    await system.drop();
  });

  /** A payment whose customer has paid, of which nobody here has heard yet. */
  async function untold(): Promise<PaymentDocument> {
    const payment = await made(client, NEEDS_CUSTOMER);
    await system.control.authenticate(objectIdOf(payment), "complete");
    return payment;
  }

  /** An event of this payment as the provider tells it, changed as the test wants. */
  async function eventOf(payment: PaymentDocument, type = "payment_intent.succeeded") {
    const [event] = await system.control.listEvents({ type, object_id: objectIdOf(payment) });
    if (event === undefined) throw new Error(`no ${type} of ${payment.id}`);
    const object = event.data.object as unknown as Record<string, unknown>;
    return {
      event: event as unknown as Record<string, unknown>,
      with: (changes: object, objectChanges: object = {}) =>
        JSON.stringify({ ...event, ...changes, data: { object: { ...object, ...objectChanges } } }),
    };
  }

  const waiting = async () =>
    Number((await admin`select count(*) as n from provider_events where due_at is not null`)[0]?.["n"]);
  const kept = async () => Number((await admin`select count(*) as n from provider_events`)[0]?.["n"]);
  /** Why a person must look at this payment. */
  const reviewsOf = async ({ id }: PaymentDocument) => {
    const command = ["reviews", "list", "--tenant", system.tenantId];
    const { data } = await system.command<{ data: { payment_id: string; reason: string }[] }>(...command);
    return data.filter((review) => review.payment_id === id).map((review) => review.reason);
  };
  const untilNothingWaits = () => until("an inbox without work", waiting, (count) => count === 0);

  /** A paid object that Pawl did not make, with this marker. */
  async function chargedBesides(metadata: Readonly<Record<string, string>>): Promise<string> {
    const { STRIPE_API_BASE: base, STRIPE_SECRET_KEY: secret } = system.settings();
    const form = new URLSearchParams({ amount: "10000", currency: "usd", payment_method: "pm_card_visa" });
    form.set("confirm", "true");
    form.set("allowed_payment_method_types[0]", "card");
    for (const [name, value] of Object.entries(metadata)) form.set(`metadata[${name}]`, value);
    const headers = { Authorization: `Bearer ${secret ?? ""}` };
    const answer = await fetch(`${base ?? ""}/v1/payment_intents`, { method: "POST", headers, body: form });
    const object = (await answer.json()) as { id?: string; status?: string };
    if (object.status !== "succeeded") throw new Error(`not paid: ${JSON.stringify(object)}`);
    return object.id ?? "";
  }

  it(`that come before the answer, ${ROUNDS} rounds: every create is 201, captured once, told once`, async () => {
    await system.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate", copies: 2 });
    const ids: string[] = [];
    for (let round = 0; round < ROUNDS; round += SIDE_BY_SIDE) {
      await system.control.addFault({
        match: { call: "payment_intents.confirm" },
        times: SIDE_BY_SIDE,
        fault: { type: "hang", effect: "applied" },
      });
      const creating = Array.from({ length: SIDE_BY_SIDE }, (_, at) =>
        (apis[at % 2] as Api).client.pay(VISA, { prefer: "wait=30" }),
      );
      await system.control.waitForHeld({ count: SIDE_BY_SIDE });
      await system.control.webhooksIdle();
      await system.control.release();
      const answers = await Promise.all(creating);
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 201));
      ids.push(...answers.map((answer) => answer.json.id ?? ""));
    }
    const statuses = (await system.control.listDeliveries()).map((delivery) => delivery.status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await untilNothingWaits();
    await expectOneTruth(client, system.control, ids);
  });

  describe("in any order", () => {
    it("succeeded, then amount_capturable_updated, then created: the state never goes back", async () => {
      const payment = await made(client, MANUAL);
      await system.control.dashboard.capture(objectIdOf(payment), 6_000);
      const told = await eventOf(payment);
      const created = Number(told.event["created"]);
      expect((await deliver(apis[0].url, told.with({}))).status).toBe(200);
      await untilShows(client, payment.id, { status: "succeeded", amount_captured: 6_000 });
      const before = await client.payment(payment.id);
      for (const [type, at, status] of [
        ["payment_intent.amount_capturable_updated", created - 5, "requires_capture"],
        ["payment_intent.requires_action", created, "requires_action"],
        ["payment_intent.payment_failed", created, "requires_payment_method"],
        ["payment_intent.created", created - 60, "requires_confirmation"],
        ["payment_intent.canceled", created + 60, "canceled"],
      ] as const) {
        const late = told.with({ id: `evt_${newKey()}`, type, created: at }, { status, amount_received: 0 });
        expect((await deliver(apis[1].url, late)).status).toBe(200);
      }
      await untilNothingWaits();
      expect(await client.payment(payment.id)).toEqual(before);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("refunded, then a late succeeded: still refunded", async () => {
      const payment = await made(client, AUTOMATIC);
      await system.control.dashboard.refund(objectIdOf(payment), 2_500);
      const [refunded] = await system.control
        .listEvents({ type: "charge.refunded" })
        .then((all) => all.slice(-1));
      const [made1] = (await system.control.listEvents({ type: "refund.created" })).slice(-1);
      for (const event of [refunded, made1])
        expect((await deliver(apis[0].url, JSON.stringify(event))).status).toBe(200);
      await untilShows(client, payment.id, { amount_refunded: 2_500 });
      const late = (await eventOf(payment)).with({});
      expect((await deliver(apis[1].url, late)).status).toBe(200);
      await untilNothingWaits();
      expect(await client.payment(payment.id)).toMatchObject({ status: "succeeded", amount_refunded: 2_500 });
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  it("one of them three times at once at two processes, again after a restart, again much later: applied once", async () => {
    const payment = await untold();
    const text = (await eventOf(payment)).with({});
    const send = () =>
      Promise.all([0, 1, 0, 1, 0, 1].map((at) => deliver((apis[at] as Api).url, text))).then((answers) =>
        answers.map((answer) => answer.status),
      );
    expect(new Set(await send())).toEqual(new Set([200]));
    await untilShows(client, payment.id, { status: "succeeded" });
    await system.crashWorkers();
    await apis[1].process.crash();
    apis[1] = await system.api();
    await system.worker();
    await system.worker();
    expect(new Set(await send())).toEqual(new Set([200]));
    const { updated_at: updatedAt } = await client.payment(payment.id);
    expect((await refund(client, payment.id, { amount: 1_000 })).status).toBe(201);
    expect(new Set(await send())).toEqual(new Set([200]));
    await untilNothingWaits();
    expect(Date.parse((await client.payment(payment.id)).updated_at)).toBeGreaterThan(Date.parse(updatedAt));
    const rows = await admin`select * from provider_events where payload = ${text}`;
    expect(rows).toHaveLength(1);
    expect((await typesOf(client, payment.id)).filter((type) => type === "payment.succeeded")).toHaveLength(
      1,
    );
    const facts = (await entriesOf(client, payment.id)).map((entry) => entry.fact);
    expect(facts.filter((fact) => fact === "captured")).toHaveLength(1);
    await expectOneTruth(client, system.control, [payment.id]);
  });

  it("and two different events of one fact: one fact", async () => {
    const payment = await untold();
    const told = await eventOf(payment);
    const sent = await Promise.all(
      ["one", "other"].map((name, at) =>
        deliver((apis[at] as Api).url, told.with({ id: `evt_${name}_${newKey()}` })),
      ),
    );
    expect(sent.map((answer) => answer.status)).toEqual([200, 200]);
    await untilShows(client, payment.id, { status: "succeeded" });
    await untilNothingWaits();
    await expectOneTruth(client, system.control, [payment.id]);
  });

  describe("whose first delivery fails", () => {
    it("since the database is away: not 2xx, and the same event is applied when it comes again", async () => {
      const proxy = await TcpProxy.before(system.databaseUrl);
      const api = await system.api({ DATABASE_URL: proxy.through(system.databaseUrl) });
      const payment = await untold();
      const text = (await eventOf(payment)).with({});
      proxy.refuse(true);
      proxy.cut();
      const failed = await deliver(api.url, text);
      expect(failed.status).toBe(503);
      expect(await kept().then(() => client.payment(payment.id))).toMatchObject({
        status: "requires_action",
      });
      proxy.refuse(false);
      const answer = await until(
        "a delivery that is taken",
        () => deliver(api.url, text),
        (taken) => taken.status === 200,
      );
      expect(answer.status).toBe(200);
      await untilShows(client, payment.id, { status: "succeeded" });
      await api.process.stop();
      await proxy.stop();
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("since its transaction breaks after the commit: the second is 2xx, and it is applied once", async () => {
      const proxy = await TcpProxy.before(system.databaseUrl);
      const api = await system.api({ DATABASE_URL: proxy.through(system.databaseUrl) });
      const payment = await untold();
      const told = await eventOf(payment);
      const text = told.with({ id: `evt_${newKey()}` });
      const held = proxy.holdAnswer(String((JSON.parse(text) as { id: string }).id));
      const first = deliver(api.url, text);
      await held.caught;
      proxy.cut();
      expect((await first).status).toBe(503);
      expect((await deliver(apis[1].url, text)).status).toBe(200);
      await untilShows(client, payment.id, { status: "succeeded" });
      await api.process.stop();
      await proxy.stop();
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("since the payment's rows are locked: kept, and applied once they are free", async () => {
      const payment = await untold();
      const lock = await admin.reserve();
      await lock`begin`;
      await lock`select * from attempts where payment_id = ${payment.id} for update`;
      await lock`select * from payments where id = ${payment.id} for update`;
      const answer = await deliver(apis[0].url, (await eventOf(payment)).with({}));
      expect(answer.status).toBe(200);
      await until(
        "a try that found the rows locked",
        () => admin`select * from provider_events where object_id = ${objectIdOf(payment)} and tries > 0`,
        (rows) => rows.length === 1,
      );
      expect((await client.payment(payment.id)).status).toBe("requires_action");
      await lock`rollback`;
      lock.release();
      await untilShows(client, payment.id, { status: "succeeded" });
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  it(`that are not for us, ${FOREIGN} of them: 2xx, no call, nothing kept`, async () => {
    await untilNothingWaits();
    const [before, calls] = [await kept(), (await system.control.listRequests()).length];
    const foreign = (at: number): string => {
      const id = `evt_${newKey()}`;
      const event = (type: string, object: object) =>
        JSON.stringify({ id, object: "event", type, created: 1, livemode: false, data: { object } });
      const other = `pi_${newKey()}`;
      const kinds = [
        event("a.type_of_tomorrow", { id: "x", object: "thing" }),
        event("payment_intent.succeeded", { id: other, object: "payment_intent", metadata: {} }),
        event("payment_intent.succeeded", {
          id: other,
          object: "payment_intent",
          metadata: { payment_attempt_id: "att_0", tenant_id: "ten_other" },
        }),
        event("charge.refunded", { id: "ch_x", object: "charge", payment_intent: other }),
        event("charge.succeeded", { id: "ch_x", object: "charge", payment_intent: null }),
        event("refund.created", { id: "re_x", object: "refund", payment_intent: other }),
        event("charge.dispute.created", { id: "dp_x", object: "dispute", payment_intent: other }),
        event("account.updated", { id: "acct_1", object: "account" }),
        event("balance.available", { object: "balance" }),
        event("customer.created", { id: "cus_1", object: "customer" }),
      ];
      return kinds[at % kinds.length] ?? "";
    };
    for (let sent = 0; sent < FOREIGN; sent += AT_ONCE) {
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, at) => deliver((apis[at % 2] as Api).url, foreign(sent + at))),
      );
      for (const answer of answers) expect(answer.status).toBe(200);
    }
    expect([await kept(), await waiting()]).toEqual([before, 0]);
    expect((await system.control.listRequests()).length).toBe(calls);
  });

  it("of the other mode never touch a payment", async () => {
    const payment = await untold();
    const told = await eventOf(payment);
    expect((await deliver(apis[0].url, told.with({ livemode: true }, { livemode: true }))).status).toBe(200);
    await untilNothingWaits();
    expect((await client.payment(payment.id)).status).toBe("requires_action");
    // The same event id with the right mode is news still.
    expect((await deliver(apis[0].url, told.with({}))).status).toBe(200);
    await untilShows(client, payment.id, { status: "succeeded" });
  });

  it.each([
    [
      "an older version with a list of charges",
      "2020-08-27",
      (object: object) => ({
        ...object,
        charges: { object: "list", data: [{ id: "ch_1", paid: true }] },
        latest_charge: undefined,
      }),
    ],
    ["the id of the latest charge alone", "2022-11-15", (object: object) => object],
    [
      "a newer version with fields nobody knows",
      "2031-01-01.future",
      (object: object) => ({
        ...object,
        amount_moved: { usd: 1 },
        latest_charge: { id: "ch_1", object: "charge" },
      }),
    ],
    ["no version", null, (object: object) => ({ ...object, amount_received: undefined })],
  ] as const)("in the shape of %s: applied alike", async (_name, version, shape) => {
    const payment = await untold();
    const { event, with: told } = await eventOf(payment);
    const object = shape((event["data"] as { object: object }).object);
    const text = told({ api_version: version, context: "x", unknown: [1, { a: null }] }, object);
    expect((await deliver(apis[0].url, text)).status).toBe(200);
    await untilShows(client, payment.id, { status: "succeeded", amount_captured: 10_000 });
    await expectOneTruth(client, system.control, [payment.id]);
  });

  describe("with the right signature and wrong facts", () => {
    it("told alone (less received, another currency, another status): the provider's object decides", async () => {
      const payment = await made(client, NEEDS_CUSTOMER);
      const wrong = JSON.stringify({
        id: `evt_${newKey()}`,
        object: "event",
        type: "payment_intent.succeeded",
        created: 1,
        livemode: false,
        data: {
          object: {
            ...(await system.control.getPaymentIntent(objectIdOf(payment))).payment_intent,
            status: "succeeded",
            amount_received: 9_000,
            currency: "eur",
          },
        },
      });
      expect((await deliver(apis[0].url, wrong)).status).toBe(200);
      await untilNothingWaits();
      await system.control.waitForRequests({
        filter: { call: "payment_intents.retrieve", object_id: objectIdOf(payment) },
        until: "settled",
      });
      expect(await client.payment(payment.id)).toMatchObject({
        status: "requires_action",
        amount_captured: 0,
      });
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it.each([
      ["less received than was asked for", { amount_received: 900 }],
      ["another currency", { currency: "eur" }],
      ["another amount", { amount: 900, amount_received: 900 }],
    ] as const)("true at the provider (%s): flagged, and not shown as paid", async (_name, changes) => {
      const payment = await untold();
      await system.control.patchPaymentIntent(objectIdOf(payment), changes);
      expect((await deliver(apis[0].url, (await eventOf(payment)).with({}, changes))).status).toBe(200);
      const flagged = await untilStatus(client, payment.id, ["needs_review"]);
      expect([flagged.amount_captured, flagged.resolution?.reason]).toEqual([0, "provider_amount_mismatch"]);
      expect(await entriesOf(client, payment.id)).toEqual([]);
      expect(await typesOf(client, payment.id)).not.toContain("payment.succeeded");
    });

    it("a known object whose metadata names another payment, and another tenant's: flagged, theirs untouched", async () => {
      const stranger = await system.command<{ id: string }>("tenants", "create", "--name", "stranger");
      const { secret } = await system.command<{ secret: string }>("keys", "create", "--tenant", stranger.id);
      const foreign = Object.assign(Object.create(client) as ApiClient, { secret });
      for (const other of [await made(client, NEEDS_CUSTOMER), await made(foreign, NEEDS_CUSTOMER)]) {
        const payment = await untold();
        const { payment_intent: theirs } = await system.control.getPaymentIntent(objectIdOf(other));
        const metadata = theirs.metadata;
        await system.control.patchPaymentIntent(objectIdOf(payment), { metadata });
        expect((await deliver(apis[0].url, (await eventOf(payment)).with({}, { metadata }))).status).toBe(
          200,
        );
        await untilNothingWaits();
        expect(await reviewsOf(payment)).toEqual(["provider_object_foreign"]);
        expect((await client.payment(payment.id)).amount_captured).toBe(0);
        for (const api of [client, foreign]) {
          const read = await api.get(`/v1/payments/${other.id}`);
          if (read.status === 200) expect(read.json).toEqual(other);
        }
      }
    });

    it("a second object with our marker on which money moved: flagged, never adopted", async () => {
      const payment = await made(client, AUTOMATIC);
      const [attempt] = (await client.timeline(payment.id)).map((entry) => entry.attempt_id);
      const stray = await chargedBesides({
        payment_attempt_id: attempt ?? "",
        tenant_id: system.tenantId,
      });
      const [told] = await system.control.listEvents({ type: "payment_intent.succeeded", object_id: stray });
      expect((await deliver(apis[0].url, JSON.stringify(told))).status).toBe(200);
      await untilNothingWaits();
      expect(await reviewsOf(payment)).toEqual(["provider_object_stray"]);
      expect(await client.payment(payment.id)).toMatchObject({ amount_captured: 10_000 });
      expect((await entriesOf(client, payment.id)).filter((entry) => entry.fact === "captured")).toHaveLength(
        1,
      );
    });
  });
});
