import { describe, expect, it } from "vitest";
import { newKey, type PaymentDocument } from "../support/api-client.js";
import { balancesOf, unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
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
import { untilStatus } from "../support/system.js";

const DAY_MS = 86_400_000;
const EXPIRY_MS = 3_000;

describeWithFaults("what ends by itself after a charge", () => {
  const pair = usePair({ ...EVENTFUL, CUSTOMER_ACTION_EXPIRY_MS: String(EXPIRY_MS) });

  const cancelsOf = (payment: PaymentDocument) =>
    pair.control.listRequests({ call: "payment_intents.cancel", object_id: objectIdOf(payment) });

  describe("a customer who never finishes", () => {
    it("loses the payment at its expiry, at the provider first, though the workers were killed; a new key pays", async () => {
      const order = { merchant_order_id: `order-${newKey()}` };
      const payment = await made(pair.client, { ...NEEDS_CUSTOMER, ...order });
      const other = await pair.client.pay({ ...AUTOMATIC, ...order });
      expect(outcomeOf(other)).toBe("409 merchant_order_id_taken");
      expect(outcomeOf(await pair.client.pay(AUTOMATIC))).toBe("201");
      await pair.workers();

      const gone = await untilStatus(pair.client, payment.id, ["canceled"]);
      expect([gone["cancellation_reason"], gone["next_action"]]).toEqual(["customer_action_expired", null]);
      const age = Date.parse(gone.updated_at) - Date.parse(gone.created_at);
      expect(age).toBeGreaterThanOrEqual(EXPIRY_MS);
      const cancels = await cancelsOf(payment);
      expect(cancels.map((request) => [request.status, request.effect])).toEqual([[200, "applied"]]);
      expect(Date.parse(cancels[0]?.received_at ?? "")).toBeLessThanOrEqual(Date.parse(gone.updated_at));
      expect(outcomeOf(await pair.client.pay({ ...AUTOMATIC, ...order }))).toBe("201");
      await pair.expectOneTruth(payment.id);
    });

    it("and finishes just when it is canceled: paid", async () => {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      const objectId = objectIdOf(payment);
      await pair.control.addFault({
        match: { call: "payment_intents.cancel", object_id: objectId },
        fault: { type: "hang", effect: "later", arrival: "in_network" },
      });
      await pair.control.waitForHeld({ selector: { object_id: objectId } });
      await pair.control.authenticate(objectId, "complete");
      await pair.control.release();
      await untilShows(pair.client, payment.id, { status: "succeeded", amount_captured: 10_000 });
      expect((await pair.control.getPaymentIntent(objectId)).refunds).toEqual([]);
      await pair.expectOneTruth(payment.id);
    });

    it.each(["before_fence", "after_fence"])(
      "while a worker is killed at its expiry, at %s: another one cancels it, once",
      async (point) => {
        await pair.system.crashWorkers();
        const doomed = await pair.system.worker({ PAWL_PROBES: `${point}=kill` });
        const payment = await made(pair.client, NEEDS_CUSTOMER);
        expect((await doomed.process.exited).signal).toBe("SIGKILL");
        await pair.workers();
        await untilShows(pair.client, payment.id, {
          status: "canceled",
          cancellation_reason: "customer_action_expired",
        });
        const applied = (await cancelsOf(payment)).filter((request) => request.effect === "applied");
        expect(applied).toHaveLength(1);
        await pair.expectOneTruth(payment.id);
      },
    );
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });

  // The provider's clock stands a week later from here on.
  it("an authorization whose time is over, every event of it lost, ends as canceled and gives the hold back, once", async () => {
    const [asked, left] = [await made(pair.client, MANUAL), await made(pair.client, MANUAL)];
    await pair.control.advanceClock(8 * DAY_MS);
    const refused = await capture(pair.client, asked.id);
    expect(outcomeOf(refused)).toBe("409 authorization_expired");
    expect(refused.json.payment?.status).toBe("canceled");
    expect(outcomeOf(await capture(pair.client, left.id))).toBe("409 authorization_expired");
    for (const { id } of [asked, left]) {
      expect(await typesOf(pair.client, id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.canceled",
      ]);
      expect(balancesOf(await entriesOf(pair.client, id))).toEqual({});
    }
    await pair.expectOneTruth(asked.id, left.id);
  });
});
