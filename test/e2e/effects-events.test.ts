import { beforeAll, describe, expect, it } from "vitest";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { DECLINED, newKey } from "../support/api-client.js";
import { balancesOf, feeOf, unaskedSends } from "../support/books.js";
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
import { usePair } from "../support/pair.js";
import { EVENTFUL } from "../support/stripe-sender.js";
import { type Api, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const ROUNDS = 50;
const SIDE_BY_SIDE = 10;

describeWithFaults("what the provider tells of a payment after its charge", () => {
  // Nothing is found out by asking in time: what happens here happens because an event came.
  const pair = usePair({ ...EVENTFUL, FOLLOW_FIRST_MS: "60000", FOLLOW_MOST_MS: "60000" });
  let endpoints: readonly [WebhookEndpoint, WebhookEndpoint];
  beforeAll(async () => {
    endpoints = [await pair.inbox(0, "held"), await pair.inbox(1, "held")];
  });

  /** Sends what is held for these objects (their charges and refunds too), to both processes. */
  async function tell(ids: readonly string[], types?: readonly string[]): Promise<void> {
    const chosen = (await pair.control.heldEvents(endpoints[0].id)).filter((event) => {
      const object = event.data.object as { id?: string; payment_intent?: unknown };
      const about = ids.includes(object.id ?? "") || ids.includes(String(object.payment_intent));
      return about && (types === undefined || types.includes(event.type));
    });
    const order = chosen.map((event) => event.id);
    const sent = await Promise.all(endpoints.map(({ id }) => pair.control.releaseEvents(id, order)));
    for (const delivery of sent.flat()) expect(delivery.status).toBe(200);
  }

  it(`the answer to a charge, the event of its success and a capture at once, ${ROUNDS} rounds: captured once, and nothing else`, async () => {
    const ids: string[] = [];
    for (let round = 0; round < ROUNDS; round += SIDE_BY_SIDE) {
      await pair.control.addFault({
        match: { call: "payment_intents.confirm" },
        times: SIDE_BY_SIDE,
        fault: { type: "hang", effect: "applied" },
      });
      const accepted = await Promise.all(
        Array.from({ length: SIDE_BY_SIDE }, () => pair.client.pay(AUTOMATIC, { prefer: "respond-async" })),
      );
      const made = accepted.map((answer) => answer.json.id ?? "");
      const held = await pair.control.waitForHeld({ count: SIDE_BY_SIDE });
      const [, , ...captures] = await Promise.all([
        pair.control.release(),
        tell(held.map((request) => request.object_id ?? "")),
        ...made.map((id, at) => capture((pair.apis[at % 2] as Api).client, id)),
      ]);
      for (const answer of captures) {
        expect(["200", "409 invalid_state", "409 operation_in_progress"]).toContain(outcomeOf(answer));
        if (answer.status === 200) expect(answer.json.status).toBe("succeeded");
      }
      ids.push(...made);
    }
    for (const id of ids) {
      const payment = await untilStatus(pair.client, id, ["succeeded"]);
      const { refunds, payment_intent: object } = await pair.control.getPaymentIntent(objectIdOf(payment));
      expect([object.status, object.amount_received, refunds]).toEqual(["succeeded", 10_000, []]);
    }
    expect(await pair.control.listRequests({ call: "payment_intents.cancel" })).toEqual([]);
    expect(await pair.control.listRequests({ call: "payment_intents.capture" })).toEqual([]);
    await pair.expectOneTruth(...ids);
  });

  it("a capture by API and the event of it, and a capture at the dashboard with its event: one fact each", async () => {
    const [ours, theirs] = [await made(pair.client, MANUAL), await made(pair.client, MANUAL)];
    await pair.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "hang", effect: "applied" },
    });
    const running = capture(pair.client, ours.id, { amount: 6_000 });
    await pair.control.waitForHeld();
    await tell([objectIdOf(ours)]);
    await pair.control.release();
    expect((await running).status).toBe(200);

    await pair.control.dashboard.capture(objectIdOf(theirs), 4_000);
    await tell([objectIdOf(theirs)]);
    await untilShows(pair.client, theirs.id, { status: "succeeded", amount_captured: 4_000 });
    for (const { id } of [ours, theirs]) {
      expect(await typesOf(pair.client, id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.succeeded",
      ]);
    }
    await pair.expectOneTruth(ours.id, theirs.id);
  });

  it("an authorization that has lapsed: canceled, one event, the hold released, and a capture says why", async () => {
    const payment = await made(pair.client, MANUAL);
    await pair.control.bank.expireAuthorization(objectIdOf(payment));
    await tell([objectIdOf(payment)]);
    await untilShows(pair.client, payment.id, {
      status: "canceled",
      cancellation_reason: "authorization_expired",
    });
    const before = (await pair.control.listRequests({ call: "payment_intents.capture" })).length;
    const refused = await capture(pair.client, payment.id);
    expect(outcomeOf(refused)).toBe("409 authorization_expired");
    expect((await pair.control.listRequests({ call: "payment_intents.capture" })).length).toBe(before);
    expect(await typesOf(pair.client, payment.id)).toEqual([
      "payment.created",
      "payment.authorized",
      "payment.canceled",
    ]);
    expect(balancesOf(await entriesOf(pair.client, payment.id))).toEqual({});
    await pair.expectOneTruth(payment.id);
  });

  it("a cancel at the dashboard: canceled, and the customer has the hold back", async () => {
    const payment = await made(pair.client, MANUAL);
    await pair.control.dashboard.cancel(objectIdOf(payment));
    await tell([objectIdOf(payment)]);
    await untilShows(pair.client, payment.id, {
      status: "canceled",
      cancellation_reason: "canceled_at_provider",
    });
    await pair.expectOneTruth(payment.id);
  });

  describe("paid while it is being canceled", () => {
    /** A cancel whose send came to nothing, or is still on its way, while the customer pays. */
    async function paidWhileCanceling(fault: "lost" | "on its way"): Promise<void> {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      const objectId = objectIdOf(payment);
      await pair.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault:
          fault === "lost"
            ? { type: "reset", effect: "none" }
            : { type: "hang", effect: "later", arrival: "in_network" },
      });
      const key = newKey();
      const canceling = cancel(pair.client, payment.id, undefined, { key, prefer: "wait=20" });
      await pair.control.waitForRequests({
        filter: { call: "payment_intents.cancel", object_id: objectId },
      });
      await pair.control.authenticate(objectId, "complete");
      await tell([objectId], ["payment_intent.succeeded"]);
      for (const event of await pair.control.listEvents({
        type: "payment_intent.succeeded",
        object_id: objectId,
      }))
        await pair.control.redeliverEvent(event.id, { copies: 2 });
      await pair.control.release();

      const refused = await canceling;
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment?.status).toBe("succeeded");
      await untilShows(pair.client, payment.id, { status: "succeeded", amount_captured: 10_000 });
      expect((await pair.control.getPaymentIntent(objectId)).refunds).toEqual([]);
      expect(await typesOf(pair.client, payment.id)).toEqual([
        "payment.created",
        "payment.requires_action",
        "payment.succeeded",
      ]);
      const again = await cancel(pair.client, payment.id, undefined, { key });
      expect([again.text, again.headers.get("Idempotent-Replayed")]).toEqual([refused.text, "true"]);
      await pair.expectOneTruth(payment.id);
    }

    it("with a cancel that never arrived: paid, whatever was told three times", () =>
      paidWhileCanceling("lost"));
    it("with a cancel that arrives after the payment: paid", () => paidWhileCanceling("on its way"));

    it("by a capture at the dashboard while the cancel of the hold times out: captured, and no money goes back", async () => {
      const payment = await made(pair.client, MANUAL);
      const objectId = objectIdOf(payment);
      await pair.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault: { type: "hang", effect: "none" },
      });
      const canceling = cancel(pair.client, payment.id, undefined, { prefer: "wait=20" });
      await pair.control.waitForHeld();
      await pair.control.dashboard.capture(objectId, 7_000);
      await tell([objectId]);
      const refused = await canceling;
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 7_000 });
      await pair.expectOneTruth(payment.id);
    });
  });

  it("a second try that succeeds after a decline: failed, then succeeded; the 402 stays the answer of its key", async () => {
    await pair.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { type: "hang", effect: "later", arrival: "in_network" },
    });
    const key = newKey();
    const declined = await pair.client.pay(DECLINED, { key });
    expect(declined.status).toBe(402);
    const id = declined.json.payment?.id ?? "";
    const [held] = await pair.control.waitForHeld({ selector: { call: "payment_intents.cancel" } });
    const objectId = held?.object_id ?? "";
    await pair.control.confirmAsCustomer(objectId, { payment_method: "pm_card_visa" });
    await tell([objectId], ["payment_intent.payment_failed", "payment_intent.succeeded"]);
    await pair.control.release();
    await untilShows(pair.client, id, { status: "succeeded", amount_captured: 4_200 });
    expect(await typesOf(pair.client, id)).toEqual([
      "payment.created",
      "payment.failed",
      "payment.succeeded",
    ]);
    const sales = (await entriesOf(pair.client, id)).filter((entry) => entry.credit_account === "sales");
    expect(sales).toHaveLength(1);
    expect((await pair.client.pay(DECLINED, { key })).text).toBe(declined.text);
    await pair.expectOneTruth(id);
  });

  it("a customer who fails and then succeeds: the payment goes with the provider's object", async () => {
    const payment = await made(pair.client, NEEDS_CUSTOMER);
    const objectId = objectIdOf(payment);
    await pair.control.authenticate(objectId, "complete");
    await tell([objectId]);
    await untilShows(pair.client, payment.id, { status: "succeeded", next_action: null });
    const failing = await made(pair.client, NEEDS_CUSTOMER);
    await pair.control.authenticate(objectIdOf(failing), "fail");
    await tell([objectIdOf(failing)]);
    const failed = await untilShows(pair.client, failing.id, { status: "failed" });
    expect(failed.failure?.code).toBe("payment_intent_authentication_failure");
    await pair.expectOneTruth(payment.id, failing.id);
  });

  it("a fee that is known later: posted when the provider tells of it, once", async () => {
    await pair.control.changeSettings({ charge_booked_after_ms: 3_600_000 });
    const payment = await made(pair.client, MANUAL);
    await capture(pair.client, payment.id);
    await tell([objectIdOf(payment)]);
    expect(balancesOf(await entriesOf(pair.client, payment.id))).toEqual({
      provider_balance: 10_000,
      sales: -10_000,
    });
    await pair.control.changeSettings({ charge_booked_after_ms: 0 });
    await pair.control.advanceClock(3_600_000);
    await tell([objectIdOf(payment)], ["charge.updated"]);
    await until(
      "the fee in the books",
      async () => balancesOf(await entriesOf(pair.client, payment.id)),
      (balances) => balances["provider_fees"] === feeOf(10_000),
    );
    await pair.expectOneTruth(payment.id);
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });
});
