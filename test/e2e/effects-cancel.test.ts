import { describe, expect, it } from "vitest";
import { DECLINED, newKey } from "../support/api-client.js";
import { balancesOf, unaskedSends } from "../support/books.js";
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
  refund,
  typesOf,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { untilEnded, untilStatus } from "../support/system.js";

describeWithFaults("a cancel, and the keys of what follows a charge, at two APIs and two workers", () => {
  const pair = usePair();

  describe("a cancel", () => {
    it("releases the hold once, whatever key asks again, and nothing can be captured after it", async () => {
      const payment = await made(pair.client, MANUAL);
      const key = newKey();
      const gone = await cancel(pair.client, payment.id, { reason: "out of stock" }, { key });
      expect([gone.status, gone.json.status, gone.json["amount_capturable"]]).toEqual([200, "canceled", 0]);
      expect(gone.json["cancellation_reason"]).toBe("requested");
      expect((await cancel(pair.apis[1].client, payment.id, { reason: "out of stock" }, { key })).text).toBe(
        gone.text,
      );
      expect(outcomeOf(await cancel(pair.client, payment.id))).toBe("409 invalid_state");
      expect(outcomeOf(await capture(pair.client, payment.id))).toBe("409 invalid_state");
      expect(outcomeOf(await refund(pair.client, payment.id))).toBe("409 invalid_state");
      expect(await pair.sentFor(objectIdOf(payment))).toHaveLength(1);
      expect(await typesOf(pair.client, payment.id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.canceled",
      ]);
      expect(balancesOf(await entriesOf(pair.client, payment.id))).toEqual({});
      await pair.expectOneTruth(payment.id);
    });

    it("ends a payment that waits for its customer", async () => {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      const gone = await cancel(pair.client, payment.id);
      expect([gone.status, gone.json.status, gone.json["next_action"]]).toEqual([200, "canceled", null]);
      await pair.expectOneTruth(payment.id);
    });

    it("of what is captured, processing, failed or canceled is 409, and gives no money back", async () => {
      const captured = await made(pair.client, MANUAL);
      await capture(pair.client, captured.id);
      const paid = await made(pair.client, AUTOMATIC);
      const declined = (await pair.client.pay(DECLINED)).json.payment?.id ?? "";
      await untilEnded(pair.client, declined);
      const atWork = await pair.stuck(AUTOMATIC);
      for (const id of [captured.id, paid.id, declined, atWork]) {
        expect(outcomeOf(await cancel(pair.client, id))).toBe("409 invalid_state");
      }
      await pair.control.clearFaults();
      await untilStatus(pair.client, atWork, ["succeeded"]);
      expect((await pair.control.getPaymentIntent(objectIdOf(captured))).refunds).toEqual([]);
      await pair.expectOneTruth(captured.id, paid.id, declined, atWork);
    });

    it("that the provider answers with 500 is not shown as canceled until the provider says so", async () => {
      const payment = await made(pair.client, MANUAL);
      await pair.disturb("payment_intents.cancel", { times: null, fault: { type: "error", status: 500 } });
      const key = newKey();
      const waiting = await cancel(pair.client, payment.id, undefined, { key, prefer: "wait=1" });
      expect([waiting.status, waiting.json.status]).toEqual([202, "authorized"]);
      await pair.control.clearFaults();
      const gone = await cancel(pair.client, payment.id, undefined, { key, prefer: "wait=20" });
      expect([gone.status, gone.json.status]).toEqual([200, "canceled"]);
      await pair.expectOneTruth(payment.id);
    });

    it("that finds the payment paid is 409, and the payment is paid: no refund makes up for it", async () => {
      const payment = await made(pair.client, MANUAL);
      await pair.control.dashboard.capture(objectIdOf(payment));
      const refused = await cancel(pair.client, payment.id);
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 10_000 });
      expect((await pair.control.getPaymentIntent(objectIdOf(payment))).refunds).toEqual([]);
      expect(await typesOf(pair.client, payment.id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.succeeded",
      ]);
      await pair.expectOneTruth(payment.id);
    });

    it("of what was canceled at the dashboard is 200; a capture of it is 409", async () => {
      const [one, other] = [await made(pair.client, MANUAL), await made(pair.client, MANUAL)];
      await pair.control.dashboard.cancel(objectIdOf(one));
      await pair.control.dashboard.cancel(objectIdOf(other));
      expect((await cancel(pair.client, one.id)).status).toBe(200);
      const refused = await capture(pair.client, other.id);
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment?.status).toBe("canceled");
      await pair.expectOneTruth(one.id, other.id);
    });
  });

  describe("a capture after the authorization has lapsed", () => {
    it("is 409 authorization_expired, the hold is released, and one event tells of it", async () => {
      const payment = await made(pair.client, MANUAL);
      const until = Date.parse(String(payment["authorized_until"]));
      expect(until).toBeGreaterThan(Date.parse(payment.created_at));
      await pair.control.bank.expireAuthorization(objectIdOf(payment));
      const key = newKey();
      const refused = await capture(pair.client, payment.id, undefined, { key });
      expect(outcomeOf(refused)).toBe("409 authorization_expired");
      expect(refused.json.payment).toMatchObject({
        status: "canceled",
        cancellation_reason: "authorization_expired",
        amount_capturable: 0,
      });
      expect((await capture(pair.apis[1].client, payment.id, undefined, { key })).text).toBe(refused.text);
      expect(
        (await typesOf(pair.client, payment.id)).filter((type) => type === "payment.canceled"),
      ).toHaveLength(1);
      expect(balancesOf(await entriesOf(pair.client, payment.id))).toEqual({});
      await pair.expectOneTruth(payment.id);
    });
  });

  describe("keys", () => {
    it("of a create are other keys for capture, cancel and refund, and each runs as its own operation", async () => {
      const key = newKey();
      const order = `order-${newKey()}`;
      const first = await pair.client.pay({ ...MANUAL, merchant_order_id: order }, { key });
      const id = first.json.id ?? "";
      const taken = await capture(pair.client, id, { amount: 6_000 }, { key });
      expect([taken.status, taken.json.amount_captured]).toEqual([200, 6_000]);
      expect(outcomeOf(await cancel(pair.client, id, undefined, { key }))).toBe("409 invalid_state");
      const back = await refund(pair.client, id, { amount: 1_000 }, { key });
      expect([back.status, back.json["object"], back.json.amount]).toEqual([201, "refund", 1_000]);
      const another = await made(pair.client, AUTOMATIC);
      expect(outcomeOf(await refund(pair.client, another.id, { amount: 1_000 }, { key }))).toBe(
        "422 idempotency_key_reused",
      );
      expect((await pair.client.pay({ ...MANUAL, merchant_order_id: order }, { key })).text).toBe(first.text);
      await pair.expectOneTruth(id, another.id);
    });

    it("at the provider differ by operation, fit its limit and hold nothing personal", async () => {
      const ids = [await made(pair.client, MANUAL), await made(pair.client, MANUAL)];
      const merchantKeys: string[] = [];
      for (const payment of ids) {
        for (const call of [
          (key: string) => capture(pair.client, payment.id, undefined, { key }),
          (key: string) => refund(pair.client, payment.id, { amount: 2_500 }, { key }),
          (key: string) => refund(pair.client, payment.id, { amount: 2_500 }, { key }),
        ]) {
          const key = `jane.doe@example.com ${newKey()}`;
          merchantKeys.push(key);
          expect((await call(key)).status).toBeLessThan(300);
        }
      }
      const sent = (await Promise.all(ids.map((payment) => pair.sentFor(objectIdOf(payment))))).flat();
      const keys = sent.map((one) => one.idempotency_key ?? "");
      expect(new Set(keys).size).toBe(6);
      for (const key of keys) {
        expect(key).toMatch(/^payment-attempt:att_[0-9a-f]+(:\w+)?$/);
        expect(key.length).toBeLessThanOrEqual(255);
        expect(merchantKeys.some((merchantKey) => key.includes(merchantKey))).toBe(false);
      }
      for (const payment of ids)
        expect(await pair.client.payment(payment.id)).toMatchObject({ amount_refunded: 5_000 });
      await pair.expectOneTruth(...ids.map((payment) => payment.id));
    });
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });
});
