import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { type ApiClient, DECLINED, newKey, type PaymentDocument } from "../support/api-client.js";
import { balancesOf, expectOneTruth, feeOf, unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  entriesOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { EVENTFUL, INBOX_PATH, STRIPE_SECRET } from "../support/stripe-sender.js";
import { type Api, type System, startFaultySystem, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const ROUNDS = 50;
const SIDE_BY_SIDE = 10;
const DAY_MS = 86_400_000;

describeWithFaults("what the provider tells of a payment after its charge", () => {
  let system: System;
  let apis: readonly [Api, Api];
  let client: ApiClient;
  let endpoints: readonly [WebhookEndpoint, WebhookEndpoint];

  beforeAll(async () => {
    // Nothing is found out by asking in time: what happens here happens because an event came.
    const env = { ...EVENTFUL, FOLLOW_FIRST_MS: "60000", FOLLOW_MOST_MS: "60000" };
    system = await startFaultySystem({ env });
    apis = [await system.api(), await system.api()];
    client = apis[0].client;
    await system.worker();
    await system.worker();
    const endpointAt = (api: Api) =>
      system.control.addWebhookEndpoint({
        url: api.url + INBOX_PATH,
        secrets: [STRIPE_SECRET],
        mode: "held",
      });
    endpoints = [await endpointAt(apis[0]), await endpointAt(apis[1])];
  });
  afterEach(async () => {
    await system.control.clearFaults();
    await system.control.release();
  });
  afterAll(() => system.drop());

  /** Sends what is held for these objects (their charges and refunds too), to both processes. */
  async function tell(ids: readonly string[], types?: readonly string[]): Promise<void> {
    const chosen = (await system.control.heldEvents(endpoints[0].id)).filter((event) => {
      const object = event.data.object as { id?: string; payment_intent?: unknown };
      const about = ids.includes(object.id ?? "") || ids.includes(String(object.payment_intent));
      return about && (types === undefined || types.includes(event.type));
    });
    const order = chosen.map((event) => event.id);
    const sent = await Promise.all(endpoints.map(({ id }) => system.control.releaseEvents(id, order)));
    for (const delivery of sent.flat()) expect(delivery.status).toBe(200);
  }

  it(`the answer to a charge, the event of its success and a capture at once, ${ROUNDS} rounds: captured once, and nothing else`, async () => {
    const ids: string[] = [];
    for (let round = 0; round < ROUNDS; round += SIDE_BY_SIDE) {
      await system.control.addFault({
        match: { call: "payment_intents.confirm" },
        times: SIDE_BY_SIDE,
        fault: { type: "hang", effect: "applied" },
      });
      const accepted = await Promise.all(
        Array.from({ length: SIDE_BY_SIDE }, () => client.pay(AUTOMATIC, { prefer: "respond-async" })),
      );
      const made = accepted.map((answer) => answer.json.id ?? "");
      const held = await system.control.waitForHeld({ count: SIDE_BY_SIDE });
      const [, , ...captures] = await Promise.all([
        system.control.release(),
        tell(held.map((request) => request.object_id ?? "")),
        ...made.map((id, at) => capture((apis[at % 2] as Api).client, id)),
      ]);
      for (const answer of captures) {
        expect(["200", "409 invalid_state", "409 operation_in_progress"]).toContain(outcomeOf(answer));
        if (answer.status === 200) expect(answer.json.status).toBe("succeeded");
      }
      ids.push(...made);
    }
    for (const id of ids) {
      const payment = await untilStatus(client, id, ["succeeded"]);
      const { refunds, payment_intent: object } = await system.control.getPaymentIntent(objectIdOf(payment));
      expect([object.status, object.amount_received, refunds]).toEqual(["succeeded", 10_000, []]);
    }
    expect(await system.control.listRequests({ call: "payment_intents.cancel" })).toEqual([]);
    expect(await system.control.listRequests({ call: "payment_intents.capture" })).toEqual([]);
    await expectOneTruth(client, system.control, ids);
  });

  it("a capture by API and the event of it, and a capture at the dashboard with its event: one fact each", async () => {
    const [ours, theirs] = [await made(client, MANUAL), await made(client, MANUAL)];
    await system.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "hang", effect: "applied" },
    });
    const running = capture(client, ours.id, { amount: 6_000 });
    await system.control.waitForHeld();
    await tell([objectIdOf(ours)]);
    await system.control.release();
    expect((await running).status).toBe(200);

    await system.control.dashboard.capture(objectIdOf(theirs), 4_000);
    await tell([objectIdOf(theirs)]);
    await untilShows(client, theirs.id, { status: "succeeded", amount_captured: 4_000 });
    for (const { id } of [ours, theirs]) {
      expect(await typesOf(client, id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.succeeded",
      ]);
    }
    await expectOneTruth(client, system.control, [ours.id, theirs.id]);
  });

  it("an authorization that has lapsed: canceled, one event, the hold released, and a capture says why", async () => {
    const payment = await made(client, MANUAL);
    await system.control.bank.expireAuthorization(objectIdOf(payment));
    await tell([objectIdOf(payment)]);
    await untilShows(client, payment.id, {
      status: "canceled",
      cancellation_reason: "authorization_expired",
    });
    const before = (await system.control.listRequests({ call: "payment_intents.capture" })).length;
    const refused = await capture(client, payment.id);
    expect(outcomeOf(refused)).toBe("409 authorization_expired");
    expect((await system.control.listRequests({ call: "payment_intents.capture" })).length).toBe(before);
    expect(await typesOf(client, payment.id)).toEqual([
      "payment.created",
      "payment.authorized",
      "payment.canceled",
    ]);
    expect(balancesOf(await entriesOf(client, payment.id))).toEqual({});
    await expectOneTruth(client, system.control, [payment.id]);
  });

  it("a cancel at the dashboard: canceled, and the customer has the hold back", async () => {
    const payment = await made(client, MANUAL);
    await system.control.dashboard.cancel(objectIdOf(payment));
    await tell([objectIdOf(payment)]);
    await untilShows(client, payment.id, { status: "canceled", cancellation_reason: "canceled_at_provider" });
    await expectOneTruth(client, system.control, [payment.id]);
  });

  describe("paid while it is being canceled", () => {
    /** A cancel whose send came to nothing, or is still on its way, while the customer pays. */
    async function paidWhileCanceling(fault: "lost" | "on its way"): Promise<void> {
      const payment = await made(client, NEEDS_CUSTOMER);
      const objectId = objectIdOf(payment);
      await system.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault:
          fault === "lost"
            ? { type: "reset", effect: "none" }
            : { type: "hang", effect: "later", arrival: "in_network" },
      });
      const key = newKey();
      const canceling = cancel(client, payment.id, undefined, { key, prefer: "wait=20" });
      await system.control.waitForRequests({
        filter: { call: "payment_intents.cancel", object_id: objectId },
      });
      await system.control.authenticate(objectId, "complete");
      await tell([objectId], ["payment_intent.succeeded"]);
      for (const event of await system.control.listEvents({
        type: "payment_intent.succeeded",
        object_id: objectId,
      }))
        await system.control.redeliverEvent(event.id, { copies: 2 });
      await system.control.release();

      const refused = await canceling;
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment?.status).toBe("succeeded");
      await untilShows(client, payment.id, { status: "succeeded", amount_captured: 10_000 });
      expect((await system.control.getPaymentIntent(objectId)).refunds).toEqual([]);
      expect(await typesOf(client, payment.id)).toEqual([
        "payment.created",
        "payment.requires_action",
        "payment.succeeded",
      ]);
      const again = await cancel(client, payment.id, undefined, { key });
      expect([again.text, again.headers.get("Idempotent-Replayed")]).toEqual([refused.text, "true"]);
      await expectOneTruth(client, system.control, [payment.id]);
    }

    it("with a cancel that never arrived: paid, whatever was told three times", () =>
      paidWhileCanceling("lost"));
    it("with a cancel that arrives after the payment: paid", () => paidWhileCanceling("on its way"));

    it("by a capture at the dashboard while the cancel of the hold times out: captured, and no money goes back", async () => {
      const payment = await made(client, MANUAL);
      const objectId = objectIdOf(payment);
      await system.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault: { type: "hang", effect: "none" },
      });
      const canceling = cancel(client, payment.id, undefined, { prefer: "wait=20" });
      await system.control.waitForHeld();
      await system.control.dashboard.capture(objectId, 7_000);
      await tell([objectId]);
      const refused = await canceling;
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 7_000 });
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  it("a second try that succeeds after a decline: failed, then succeeded; the 402 stays the answer of its key", async () => {
    await system.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { type: "hang", effect: "later", arrival: "in_network" },
    });
    const key = newKey();
    const declined = await client.pay(DECLINED, { key });
    expect(declined.status).toBe(402);
    const id = declined.json.payment?.id ?? "";
    const [held] = await system.control.waitForHeld({ selector: { call: "payment_intents.cancel" } });
    const objectId = held?.object_id ?? "";
    await system.control.confirmAsCustomer(objectId, { payment_method: "pm_card_visa" });
    await tell([objectId], ["payment_intent.payment_failed", "payment_intent.succeeded"]);
    await system.control.release();
    await untilShows(client, id, { status: "succeeded", amount_captured: 4_200 });
    expect(await typesOf(client, id)).toEqual(["payment.created", "payment.failed", "payment.succeeded"]);
    const sales = (await entriesOf(client, id)).filter((entry) => entry.credit_account === "sales");
    expect(sales).toHaveLength(1);
    expect((await client.pay(DECLINED, { key })).text).toBe(declined.text);
    await expectOneTruth(client, system.control, [id]);
  });

  it("a customer who fails and then succeeds: the payment goes with the provider's object", async () => {
    const payment = await made(client, NEEDS_CUSTOMER);
    const objectId = objectIdOf(payment);
    await system.control.authenticate(objectId, "complete");
    await tell([objectId]);
    await untilShows(client, payment.id, { status: "succeeded", next_action: null });
    const failing = await made(client, NEEDS_CUSTOMER);
    await system.control.authenticate(objectIdOf(failing), "fail");
    await tell([objectIdOf(failing)]);
    const failed = await untilShows(client, failing.id, { status: "failed" });
    expect(failed.failure?.code).toBe("payment_intent_authentication_failure");
    await expectOneTruth(client, system.control, [payment.id, failing.id]);
  });

  it("a fee that is known later: posted when the provider tells of it, once", async () => {
    await system.control.changeSettings({ charge_booked_after_ms: 3_600_000 });
    const payment = await made(client, MANUAL);
    await capture(client, payment.id);
    await tell([objectIdOf(payment)]);
    expect(balancesOf(await entriesOf(client, payment.id))).toEqual({
      provider_balance: 10_000,
      sales: -10_000,
    });
    await system.control.changeSettings({ charge_booked_after_ms: 0 });
    await system.control.advanceClock(3_600_000);
    await tell([objectIdOf(payment)], ["charge.updated"]);
    await until(
      "the fee in the books",
      async () => balancesOf(await entriesOf(client, payment.id)),
      (balances) => balances["provider_fees"] === feeOf(10_000),
    );
    await expectOneTruth(client, system.control, [payment.id]);
  });

  describe("a customer who never finishes", () => {
    const env = { ...EVENTFUL, CUSTOMER_ACTION_EXPIRY_MS: "1500" };

    async function acting(api: Api): Promise<PaymentDocument & { readonly order: string }> {
      const order = `order-${newKey()}`;
      return { ...(await made(api.client, { ...NEEDS_CUSTOMER, merchant_order_id: order })), order };
    }

    it("loses the payment at its expiry, at the provider first, though the worker was restarted; a new key pays", async () => {
      await system.crashWorkers();
      const api = await system.api(env);
      await system.worker(env);
      const { order, ...payment } = await acting(api);
      await system.crashWorkers();
      await system.worker(env);
      const taken = await api.client.pay({ ...AUTOMATIC, merchant_order_id: order });
      expect(outcomeOf(taken)).toBe("409 merchant_order_id_taken");
      expect((await api.client.pay(AUTOMATIC)).status).toBe(201);

      const gone = await untilStatus(api.client, payment.id, ["canceled"]);
      expect([gone["cancellation_reason"], gone["next_action"]]).toEqual(["customer_action_expired", null]);
      const cancels = await system.control.listRequests({
        call: "payment_intents.cancel",
        object_id: objectIdOf(payment),
      });
      expect(cancels.map((request) => [request.status, request.effect])).toEqual([[200, "applied"]]);
      expect(Date.parse(cancels[0]?.received_at ?? "")).toBeLessThanOrEqual(
        Date.parse(gone.updated_at) + (await system.control.clock()).offset_ms,
      );
      expect((await api.client.pay({ ...AUTOMATIC, merchant_order_id: order })).status).toBe(201);
      await expectOneTruth(api.client, system.control, [payment.id]);
    });

    it("and finishes just when it is canceled: paid", async () => {
      await system.crashWorkers();
      const api = await system.api(env);
      await system.worker(env);
      const { order: _order, ...payment } = await acting(api);
      const objectId = objectIdOf(payment);
      await system.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault: { type: "hang", effect: "later", arrival: "in_network" },
      });
      await system.control.waitForHeld({ selector: { object_id: objectId } });
      await system.control.authenticate(objectId, "complete");
      await system.control.release();
      await untilShows(api.client, payment.id, { status: "succeeded", amount_captured: 10_000 });
      expect((await system.control.getPaymentIntent(objectId)).refunds).toEqual([]);
      await expectOneTruth(api.client, system.control, [payment.id]);
      await system.crashWorkers();
      await system.worker();
      await system.worker();
    });
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await system.control.listRequests())).toEqual([]);
  });

  it("an authorization whose time is over by the provider's clock, every event of it lost: a capture says so", async () => {
    const payment = await made(client, MANUAL);
    await system.control.advanceClock(8 * DAY_MS);
    const refused = await capture(client, payment.id);
    expect(outcomeOf(refused)).toBe("409 authorization_expired");
    expect(refused.json.payment?.status).toBe("canceled");
    await expectOneTruth(client, system.control, [payment.id]);
  });
});
