import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { FaultRuleInput, LoggedRequest } from "../../src/sandbox/index.js";
import { type ApiClient, DECLINED, newKey } from "../support/api-client.js";
import { balancesOf, expectOneTruth, unaskedSends } from "../support/books.js";
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
import { type Api, type System, startFaultySystem, untilEnded, untilStatus } from "../support/system.js";

const CALLS = ["payment_intents.capture", "payment_intents.cancel", "refunds.create"];

describeWithFaults("captures and cancels, at two APIs and two workers", () => {
  let system: System;
  let apis: readonly [Api, Api];
  let client: ApiClient;

  beforeAll(async () => {
    system = await startFaultySystem();
    apis = [await system.api(), await system.api()];
    client = apis[0].client;
    await system.worker();
    await system.worker();
  });
  afterEach(async () => {
    await system.control.clearFaults();
    await system.control.release();
  });
  afterAll(() => system.drop());

  /** What was sent for a payment after its charge. */
  async function sentFor(objectId: string): Promise<LoggedRequest[]> {
    const log = await system.control.listRequests({ method: "POST" });
    return log.filter(
      (one) =>
        CALLS.includes(one.call ?? "") &&
        (one.object_id === objectId || one.parameters["payment_intent"] === objectId),
    );
  }

  const disturb = (call: string, rule: Omit<FaultRuleInput, "match">) =>
    system.control.addFault({ match: { call }, ...rule });

  describe("a capture", () => {
    it("that is not valid is 4xx without a call, and changes nothing", async () => {
      const payment = await made(client, MANUAL);
      const refusals: readonly (readonly [string, string])[] = [
        ['{"amount":10001}', "422 amount_too_large"],
        ['{"amount":0}', "400 validation_failed"],
        ['{"amount":-1}', "400 validation_failed"],
        ['{"amount":1.5}', "400 validation_failed"],
        ['{"amount":"10"}', "400 validation_failed"],
        ['{"amount":null}', "400 validation_failed"],
        ['{"amount":1e400}', "400 validation_failed"],
        ['{"amount":100,"currency":"usd"}', "400 validation_failed"],
        ['{"amount":1,"amount":2}', "400 malformed_request"],
      ];
      for (const [body, refusal] of refusals) {
        expect([body, outcomeOf(await capture(client, payment.id, body))]).toEqual([body, refusal]);
      }
      expect(await client.payment(payment.id)).toEqual(payment);
      expect(await sentFor(objectIdOf(payment))).toEqual([]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("in a state that does not allow it is 409, names the state and makes no call", async () => {
      const paid = await made(client, AUTOMATIC);
      const acting = await made(client, NEEDS_CUSTOMER);
      const declined = (await client.pay(DECLINED)).json.payment?.id ?? "";
      await untilEnded(client, declined);
      const canceled = await made(client, MANUAL);
      await cancel(client, canceled.id);
      await disturb("payment_intents.confirm", { fault: { type: "hang", effect: "applied" } });
      const atWork = await client.pay(MANUAL, { prefer: "respond-async" });
      await system.control.waitForHeld();
      const before = (await system.control.listRequests({ method: "POST" })).length;
      for (const [id, state] of [
        [paid.id, "succeeded"],
        [acting.id, "requires_action"],
        [declined, "failed"],
        [canceled.id, "canceled"],
        [atWork.json.id ?? "", "processing"],
      ] as const) {
        const key = newKey();
        const refused = await capture(client, id, undefined, { key });
        expect([state, outcomeOf(refused)]).toEqual([state, "409 invalid_state"]);
        expect(refused.json["detail"]).toContain(state);
        expect(refused.headers.get("Retry-After")).toBeNull();
        const replayed = await capture(apis[1].client, id, undefined, { key });
        expect([replayed.text, replayed.headers.get("Idempotent-Replayed")]).toEqual([refused.text, "true"]);
      }
      // The held call and what it came to are of the payment itself.
      expect((await system.control.listRequests({ method: "POST" })).length).toBe(before);
      await system.control.release();
      await untilStatus(client, atWork.json.id ?? "", ["authorized"]);
      await expectOneTruth(client, system.control, [paid.id, acting.id, declined, canceled.id]);
    });

    it("of a part takes exactly that, releases the rest, and is the last word", async () => {
      const payment = await made(client, MANUAL);
      const taken = await capture(client, payment.id, { amount: 6_000 });
      expect([taken.status, taken.json.status]).toEqual([200, "succeeded"]);
      expect(taken.json).toMatchObject({
        amount_captured: 6_000,
        amount_capturable: 0,
        amount_refundable: 6_000,
      });
      expect(outcomeOf(await capture(client, payment.id, { amount: 1_000 }))).toBe("409 invalid_state");
      expect(outcomeOf(await cancel(client, payment.id))).toBe("409 invalid_state");
      const sent = await sentFor(objectIdOf(payment));
      expect(sent.map((one) => [one.call, one.parameters["amount_to_capture"]])).toEqual([
        ["payment_intents.capture", "6000"],
      ]);
      expect(outcomeOf(await refund(client, payment.id, { amount: 6_001 }))).toBe("422 amount_too_large");
      const held = (await entriesOf(client, payment.id)).filter(
        (entry) => entry.debit_account === "authorized_contra",
      );
      expect(held.map((entry) => entry.amount).toSorted()).toEqual([4_000, 6_000]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of everything is the same request whether it says the amount, spells it 1e4, or leaves the body out", async () => {
      const payment = await made(client, MANUAL);
      const key = newKey();
      const taken = await capture(client, payment.id, undefined, { key });
      expect(taken.status).toBe(200);
      for (const body of ["{}", '{"amount":10000}', '{ "amount": 1e4 }', '{"amount":10000.0}']) {
        const again = await capture(apis[1].client, payment.id, body, { key });
        expect([body, again.text]).toEqual([body, taken.text]);
        expect(again.headers.get("Idempotent-Replayed")).toBe("true");
      }
      expect(outcomeOf(await capture(client, payment.id, { amount: 9_999 }, { key }))).toBe(
        "422 idempotency_key_reused",
      );
      expect(await sentFor(objectIdOf(payment))).toHaveLength(1);
    });

    it.each(["jpy", "kwd"])("of a part in %s is that many minor units, everywhere", async (currency) => {
      const payment = await made(client, { ...MANUAL, currency });
      const taken = await capture(client, payment.id, { amount: 5_120 });
      expect([taken.status, taken.json.amount_captured]).toEqual([200, 5_120]);
      const object = await system.control.getPaymentIntent(objectIdOf(payment));
      expect(object.payment_intent.amount_received).toBe(5_120);
      const sale = (await entriesOf(client, payment.id)).find((entry) => entry.credit_account === "sales");
      expect(sale).toMatchObject({ amount: 5_120, currency });
    });

    it("of an amount that the provider cannot carry exactly is 422 before anything is sent", async () => {
      const payment = await made(client, { ...MANUAL, currency: "kwd" });
      const key = newKey();
      const uneven = await capture(client, payment.id, { amount: 5_125 }, { key });
      expect(outcomeOf(uneven)).toBe("422 amount_not_supported");
      expect(await sentFor(objectIdOf(payment))).toEqual([]);
      expect((await capture(client, payment.id, { amount: 5_120 }, { key })).status).toBe(200);
    });

    it("keeps its provider key and its parameters over lost answers and refused sends", async () => {
      const payment = await made(client, MANUAL);
      const call = "payment_intents.capture";
      await disturb(call, { fault: { type: "error", status: 429, code: "lock_timeout" } });
      await disturb(call, { fault: { type: "reset", effect: "none" } });
      await disturb(call, { fault: { type: "error", status: 503 } });
      await disturb(call, { fault: { type: "reset", effect: "applied" } });
      const key = newKey();
      const taken = await capture(client, payment.id, { amount: 7_000 }, { key, prefer: "wait=20" });
      expect([taken.status, taken.json.amount_captured]).toEqual([200, 7_000]);
      const sent = await sentFor(objectIdOf(payment));
      expect(sent.length).toBeGreaterThanOrEqual(4);
      expect(new Set(sent.map((one) => one.idempotency_key)).size).toBe(1);
      expect(new Set(sent.map((one) => JSON.stringify(one.parameters))).size).toBe(1);
      expect((await capture(client, payment.id, { amount: 7_000 }, { key })).text).toBe(taken.text);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it.each([
      ["hang", "applied"],
      ["hang", "none"],
      ["garbage", "applied"],
      ["cut_off", "applied"],
      ["empty", "applied"],
      ["html", "applied"],
      ["error", "applied"],
      ["stored_error", "none"],
    ] as const)("whose answer is lost (%s, effect %s) comes to one capture", async (type, effect) => {
      const payment = await made(client, MANUAL);
      await disturb("payment_intents.capture", { fault: { type, effect } });
      const key = newKey();
      const first = await capture(client, payment.id, { amount: 6_000 }, { key, prefer: "wait=1" });
      expect([200, 202]).toContain(first.status);
      expect(first.text).not.toContain("<");
      const taken = await capture(client, payment.id, { amount: 6_000 }, { key, prefer: "wait=20" });
      expect([taken.status, taken.json.amount_captured]).toEqual([200, 6_000]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("that is under way answers 202, says why it waits, and 409 to its own key and to another", async () => {
      const payment = await made(client, MANUAL);
      const key = newKey();
      await disturb("payment_intents.capture", {
        fault: { type: "reset", effect: "later", arrival: "in_network" },
      });
      const first = await capture(client, payment.id, undefined, { key, prefer: "respond-async" });
      expect([first.status, first.json.status]).toEqual([202, "authorized"]);
      expect(first.headers.get("Location")).toBe(`/v1/payments/${payment.id}`);
      expect(Number(first.headers.get("Retry-After"))).toBeGreaterThan(0);
      const taken = await capture(client, payment.id, undefined, { key, prefer: "wait=20" });
      expect(taken.status).toBe(200);
      // The first send arrives now: it is a replay at the provider, or finds the object captured.
      await system.control.release();
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("beside another capture or cancel under way is 409 operation_in_progress, and its key stays free", async () => {
      const payment = await made(client, MANUAL);
      const [first, other] = [newKey(), newKey()];
      await disturb("payment_intents.capture", { latency_ms: 500, fault: { type: "slow" } });
      const running = capture(client, payment.id, { amount: 6_000 }, { key: first });
      await system.control.waitForRequests({
        filter: { call: "payment_intents.capture", object_id: objectIdOf(payment) },
      });
      for (const refused of [
        await capture(apis[1].client, payment.id, undefined, { key: other }),
        await cancel(apis[1].client, payment.id, undefined, { key: other }),
      ]) {
        expect(outcomeOf(refused)).toBe("409 operation_in_progress");
        expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
        expect(refused.json.payment?.id).toBe(payment.id);
      }
      const twice = await capture(apis[1].client, payment.id, { amount: 6_000 }, { key: first });
      expect(outcomeOf(twice)).toBe("409 idempotency_key_in_progress");
      expect((await running).status).toBe(200);
      const key = await client.get(`/v1/idempotency_keys/${other}?operation=payments.capture`);
      expect(key.status).toBe(404);
      expect(outcomeOf(await capture(client, payment.id, undefined, { key: other }))).toBe(
        "409 invalid_state",
      );
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of what was captured at the dashboard is 200 where the amounts agree, else 409 with the truth", async () => {
      const [same, less] = [await made(client, MANUAL), await made(client, MANUAL)];
      await system.control.dashboard.capture(objectIdOf(same));
      await system.control.dashboard.capture(objectIdOf(less), 4_000);
      expect((await capture(client, same.id)).status).toBe(200);
      const refused = await capture(client, less.id);
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 4_000 });
      await expectOneTruth(client, system.control, [same.id, less.id]);
    });

    it("while the provider is away past the budget is 503, and the same key captures once it is back", async () => {
      const env = { ATTEMPT_RETRY_BUDGET_MS: "1000" };
      await system.crashWorkers();
      const api = await system.api(env);
      const payment = await (async () => {
        await system.worker(env);
        return made(api.client, MANUAL);
      })();
      await system.control.closeListener();
      const key = newKey();
      const refused = await capture(api.client, payment.id, undefined, { key, prefer: "wait=20" });
      await system.control.openListener();
      expect(outcomeOf(refused)).toBe("503 provider_unavailable");
      expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
      expect(await api.client.payment(payment.id)).toMatchObject({
        status: "authorized",
        amount_capturable: 10_000,
      });
      const taken = await capture(api.client, payment.id, undefined, { key });
      expect([taken.status, taken.headers.get("Idempotent-Replayed")]).toEqual([200, null]);
      await expectOneTruth(client, system.control, [payment.id]);
      await system.crashWorkers();
      await system.worker();
      await system.worker();
    });
  });

  describe("a cancel", () => {
    it("releases the hold once, whatever key asks again, and nothing can be captured after it", async () => {
      const payment = await made(client, MANUAL);
      const key = newKey();
      const gone = await cancel(client, payment.id, { reason: "out of stock" }, { key });
      expect([gone.status, gone.json.status, gone.json["amount_capturable"]]).toEqual([200, "canceled", 0]);
      expect(gone.json["cancellation_reason"]).toBe("requested");
      expect((await cancel(apis[1].client, payment.id, { reason: "out of stock" }, { key })).text).toBe(
        gone.text,
      );
      expect(outcomeOf(await cancel(client, payment.id))).toBe("409 invalid_state");
      expect(outcomeOf(await capture(client, payment.id))).toBe("409 invalid_state");
      expect(outcomeOf(await refund(client, payment.id))).toBe("409 invalid_state");
      expect(await sentFor(objectIdOf(payment))).toHaveLength(1);
      expect(await typesOf(client, payment.id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.canceled",
      ]);
      expect(balancesOf(await entriesOf(client, payment.id))).toEqual({});
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("ends a payment that waits for its customer", async () => {
      const payment = await made(client, NEEDS_CUSTOMER);
      const gone = await cancel(client, payment.id);
      expect([gone.status, gone.json.status, gone.json["next_action"]]).toEqual([200, "canceled", null]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of what is captured, processing, failed or canceled is 409, and gives no money back", async () => {
      const captured = await made(client, MANUAL);
      await capture(client, captured.id);
      const paid = await made(client, AUTOMATIC);
      const declined = (await client.pay(DECLINED)).json.payment?.id ?? "";
      await untilEnded(client, declined);
      await disturb("payment_intents.confirm", { fault: { type: "hang", effect: "applied" } });
      const atWork = (await client.pay(AUTOMATIC, { prefer: "respond-async" })).json.id ?? "";
      await system.control.waitForHeld();
      for (const id of [captured.id, paid.id, declined, atWork]) {
        expect(outcomeOf(await cancel(client, id))).toBe("409 invalid_state");
      }
      await system.control.release();
      await untilStatus(client, atWork, ["succeeded"]);
      expect((await system.control.getPaymentIntent(objectIdOf(captured))).refunds).toEqual([]);
      await expectOneTruth(client, system.control, [captured.id, paid.id, declined, atWork]);
    });

    it("that the provider answers with 500 is not shown as canceled until the provider says so", async () => {
      const payment = await made(client, MANUAL);
      await disturb("payment_intents.cancel", { times: null, fault: { type: "error", status: 500 } });
      const key = newKey();
      const waiting = await cancel(client, payment.id, undefined, { key, prefer: "wait=1" });
      expect([waiting.status, waiting.json.status]).toEqual([202, "authorized"]);
      await system.control.clearFaults();
      const gone = await cancel(client, payment.id, undefined, { key, prefer: "wait=20" });
      expect([gone.status, gone.json.status]).toEqual([200, "canceled"]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("that finds the payment paid is 409, and the payment is paid: no refund makes up for it", async () => {
      const payment = await made(client, MANUAL);
      await system.control.dashboard.capture(objectIdOf(payment));
      const refused = await cancel(client, payment.id);
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 10_000 });
      expect((await system.control.getPaymentIntent(objectIdOf(payment))).refunds).toEqual([]);
      expect(await typesOf(client, payment.id)).toEqual([
        "payment.created",
        "payment.authorized",
        "payment.succeeded",
      ]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of what was canceled at the dashboard is 200; a capture of it is 409", async () => {
      const [one, other] = [await made(client, MANUAL), await made(client, MANUAL)];
      await system.control.dashboard.cancel(objectIdOf(one));
      await system.control.dashboard.cancel(objectIdOf(other));
      expect((await cancel(client, one.id)).status).toBe(200);
      const refused = await capture(client, other.id);
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json.payment?.status).toBe("canceled");
      await expectOneTruth(client, system.control, [one.id, other.id]);
    });
  });

  describe("a capture after the authorization has lapsed", () => {
    it("is 409 authorization_expired, the hold is released, and one event tells of it", async () => {
      const payment = await made(client, MANUAL);
      const until = Date.parse(String(payment["authorized_until"]));
      expect(until).toBeGreaterThan(Date.parse(payment.created_at));
      await system.control.bank.expireAuthorization(objectIdOf(payment));
      const key = newKey();
      const refused = await capture(client, payment.id, undefined, { key });
      expect(outcomeOf(refused)).toBe("409 authorization_expired");
      expect(refused.json.payment).toMatchObject({
        status: "canceled",
        cancellation_reason: "authorization_expired",
        amount_capturable: 0,
      });
      expect((await capture(apis[1].client, payment.id, undefined, { key })).text).toBe(refused.text);
      expect((await typesOf(client, payment.id)).filter((type) => type === "payment.canceled")).toHaveLength(
        1,
      );
      expect(balancesOf(await entriesOf(client, payment.id))).toEqual({});
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  describe("keys", () => {
    it("of a create are other keys for capture, cancel and refund, and each runs as its own operation", async () => {
      const key = newKey();
      const order = `order-${newKey()}`;
      const first = await client.pay({ ...MANUAL, merchant_order_id: order }, { key });
      const id = first.json.id ?? "";
      const taken = await capture(client, id, { amount: 6_000 }, { key });
      expect([taken.status, taken.json.amount_captured]).toEqual([200, 6_000]);
      expect(outcomeOf(await cancel(client, id, undefined, { key }))).toBe("409 invalid_state");
      const back = await refund(client, id, { amount: 1_000 }, { key });
      expect([back.status, back.json["object"], back.json.amount]).toEqual([201, "refund", 1_000]);
      const another = await made(client, AUTOMATIC);
      expect(outcomeOf(await refund(client, another.id, { amount: 1_000 }, { key }))).toBe(
        "422 idempotency_key_reused",
      );
      expect((await client.pay({ ...MANUAL, merchant_order_id: order }, { key })).text).toBe(first.text);
      await expectOneTruth(client, system.control, [id, another.id]);
    });

    it("at the provider differ by operation, fit its limit and hold nothing personal", async () => {
      const ids = [await made(client, MANUAL), await made(client, MANUAL)];
      const merchantKeys: string[] = [];
      for (const payment of ids) {
        for (const call of [
          (key: string) => capture(client, payment.id, undefined, { key }),
          (key: string) => refund(client, payment.id, { amount: 2_500 }, { key }),
          (key: string) => refund(client, payment.id, { amount: 2_500 }, { key }),
        ]) {
          const key = `jane.doe@example.com ${newKey()}`;
          merchantKeys.push(key);
          expect((await call(key)).status).toBeLessThan(300);
        }
      }
      const sent = (await Promise.all(ids.map((payment) => sentFor(objectIdOf(payment))))).flat();
      const keys = sent.map((one) => one.idempotency_key ?? "");
      expect(new Set(keys).size).toBe(6);
      for (const key of keys) {
        expect(key).toMatch(/^payment-attempt:att_[0-9a-f]+(:\w+)?$/);
        expect(key.length).toBeLessThanOrEqual(255);
        expect(merchantKeys.some((merchantKey) => key.includes(merchantKey))).toBe(false);
      }
      for (const payment of ids)
        expect(await client.payment(payment.id)).toMatchObject({ amount_refunded: 5_000 });
      await expectOneTruth(
        client,
        system.control,
        ids.map((payment) => payment.id),
      );
    });
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await system.control.listRequests())).toEqual([]);
  });
});
