import { describe, expect, it } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { DECLINED, newKey } from "../support/api-client.js";
import { unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  refund,
  refundsOf,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { type Api, untilEnded, untilStatus } from "../support/system.js";

const ROUNDS = 25;
const SIDE_BY_SIDE = 5;

describeWithFaults("refunds, at two APIs and two workers", () => {
  const pair = usePair();

  const refundsSent = async (objectId: string) =>
    (await pair.sentFor(objectId)).filter((sent) => sent.call === "refunds.create");
  const disturb = (rule: Omit<FaultRuleInput, "match">) => pair.disturb("refunds.create", rule);

  describe("at the same time", () => {
    it(`two of 6000 of 10000, ${ROUNDS} rounds: one is made, the other is 422 and never sent`, async () => {
      const payments = await Promise.all(Array.from({ length: ROUNDS }, () => made(pair.client, AUTOMATIC)));
      for (let from = 0; from < ROUNDS; from += SIDE_BY_SIDE) {
        await Promise.all(
          payments.slice(from, from + SIDE_BY_SIDE).map(async ({ id }) => {
            const answers = await Promise.all(
              pair.apis.map((api) => refund(api.client, id, { amount: 6_000 }, { prefer: "wait=30" })),
            );
            expect(answers.map(outcomeOf).toSorted()).toEqual(["201", "422 amount_too_large"]);
          }),
        );
      }
      for (const payment of payments) {
        expect(await pair.client.payment(payment.id)).toMatchObject({
          amount_refunded: 6_000,
          amount_refundable: 4_000,
        });
        expect(await refundsSent(objectIdOf(payment))).toHaveLength(1);
      }
      await pair.expectOneTruth(...payments.map(({ id }) => id));
    });

    it("ten of 1500 of 10000: six are made, four are 422; two more fit the rest exactly", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          refund((pair.apis[at % 2] as Api).client, payment.id, { amount: 1_500 }, { prefer: "wait=30" }),
        ),
      );
      expect(answers.map(outcomeOf).toSorted()).toEqual([
        ...Array<string>(6).fill("201"),
        ...Array<string>(4).fill("422 amount_too_large"),
      ]);
      const rest = await Promise.all(pair.apis.map((api) => refund(api.client, payment.id, { amount: 500 })));
      expect(rest.map((answer) => answer.status)).toEqual([201, 201]);
      expect(outcomeOf(await refund(pair.client, payment.id, { amount: 1 }))).toBe("422 amount_too_large");
      expect(await refundsSent(objectIdOf(payment))).toHaveLength(8);
      await pair.expectOneTruth(payment.id);
    });

    it("twenty of one key: one refund, and its amount is reserved from the accept on", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      await disturb({ fault: { type: "hang", effect: "applied" } });
      const key = newKey();
      const answering = Array.from({ length: 20 }, (_, at) =>
        refund((pair.apis[at % 2] as Api).client, payment.id, { amount: 6_000 }, { key, prefer: "wait=20" }),
      );
      await pair.control.waitForHeld();
      expect(await pair.client.payment(payment.id)).toMatchObject({
        amount_refunded: 0,
        amount_refundable: 4_000,
      });
      const excess = await refund(pair.client, payment.id, { amount: 4_001 });
      expect(outcomeOf(excess)).toBe("422 amount_too_large");
      await pair.control.release();
      const answers = await Promise.all(answering);
      expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
      expect(answers.filter((answer) => answer.headers.get("Idempotent-Replayed") === null)).toHaveLength(1);
      expect(await refundsOf(pair.client, payment.id)).toHaveLength(1);
      await pair.expectOneTruth(payment.id);
    });
  });

  it("that is not valid, or of what is not captured, is 4xx without a call, and changes nothing", async () => {
    const paid = await made(pair.client, AUTOMATIC);
    for (const [body, refusal] of [
      ['{"amount":0}', "400 validation_failed"],
      ['{"amount":-100}', "400 validation_failed"],
      ['{"amount":1.5}', "400 validation_failed"],
      ['{"amount":"100"}', "400 validation_failed"],
      ['{"amount":null}', "400 validation_failed"],
      ['{"amount":10001}', "422 amount_too_large"],
      ['{"amount":100,"metadata":{"a":1}}', "400 validation_failed"],
      ['{"amount":100,"reason":"4242 4242 4242 4242"}', "400 card_number_refused"],
    ] as const) {
      expect([body, outcomeOf(await refund(pair.client, paid.id, body))]).toEqual([body, refusal]);
    }
    const authorized = await made(pair.client, MANUAL);
    const acting = await made(pair.client, NEEDS_CUSTOMER);
    const canceled = await made(pair.client, MANUAL);
    await cancel(pair.client, canceled.id);
    const declined = (await pair.client.pay(DECLINED)).json.payment?.id ?? "";
    await untilEnded(pair.client, declined);
    const atWork = await pair.stuck(AUTOMATIC);
    for (const [id, state] of [
      [authorized.id, "authorized"],
      [acting.id, "requires_action"],
      [canceled.id, "canceled"],
      [declined, "failed"],
      [atWork, "processing"],
    ] as const) {
      const refused = await refund(pair.client, id, { amount: 100 });
      expect([state, outcomeOf(refused)]).toEqual([state, "409 invalid_state"]);
      expect(refused.json["detail"]).toContain(state);
      expect(await refundsOf(pair.client, id)).toEqual([]);
    }
    for (const id of ["pay_00000000000000000000000000000000", "nothing", "re_1"]) {
      expect(outcomeOf(await refund(pair.client, id, { amount: 100 }))).toBe("404 not_found");
    }
    await pair.control.clearFaults();
    await untilStatus(pair.client, atWork, ["succeeded"]);
    expect(await pair.client.payment(paid.id)).toEqual(paid);
    for (const payment of [paid, authorized, acting, canceled])
      expect(await refundsSent(objectIdOf(payment))).toEqual([]);
    await pair.expectOneTruth(paid.id, authorized.id, acting.id, canceled.id, declined, atWork);
  });

  describe("without an amount", () => {
    it("gives back what was captured, not what was authorized, and says so to the provider", async () => {
      const payment = await made(pair.client, MANUAL);
      await capture(pair.client, payment.id, { amount: 6_000 });
      const back = await refund(pair.client, payment.id);
      expect([back.status, back.json.amount]).toEqual([201, 6_000]);
      const [sent] = await refundsSent(objectIdOf(payment));
      expect(sent?.parameters["amount"]).toBe("6000");
      await pair.expectOneTruth(payment.id);
    });

    it("gives back what is left, and then there is nothing left", async () => {
      const payment = await made(pair.client, MANUAL);
      await capture(pair.client, payment.id, { amount: 6_000 });
      expect((await refund(pair.client, payment.id, { amount: 2_000 })).status).toBe(201);
      const key = newKey();
      const rest = await refund(pair.client, payment.id, undefined, { key });
      expect([rest.status, rest.json.amount]).toEqual([201, 4_000]);
      expect(outcomeOf(await refund(pair.client, payment.id))).toBe("422 amount_too_large");
      expect((await refund(pair.client, payment.id, "{}", { key })).text).toBe(rest.text);
      expect((await refundsSent(objectIdOf(payment))).map((sent) => sent.parameters["amount"])).toEqual([
        "2000",
        "4000",
      ]);
      await pair.expectOneTruth(payment.id);
    });
  });

  describe("without a clear answer", () => {
    it.each([
      ["hang", "applied"],
      ["reset", "none"],
      ["garbage", "applied"],
      ["html", "applied"],
      ["error", "applied"],
    ] as const)(
      "(%s, effect %s) come to one refund, asked about before it is sent again",
      async (type, effect) => {
        const payment = await made(pair.client, AUTOMATIC);
        await disturb({ fault: { type, effect } });
        await disturb({ fault: { type: "error", status: 429 } });
        const key = newKey();
        const answer = await refund(pair.client, payment.id, { amount: 4_000 }, { key, prefer: "wait=20" });
        expect([answer.status, answer.json.amount], answer.text).toEqual([201, 4_000]);
        await pair.expectOneTruth(payment.id);
        expect(await pair.control.listRefunds({ payment_intent: objectIdOf(payment) })).toHaveLength(1);
      },
    );

    it("still on its way while it is asked about and sent again: one refund", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      await disturb({ fault: { type: "reset", effect: "later", arrival: "in_network" } });
      const answer = await refund(pair.client, payment.id, { amount: 4_000 }, { prefer: "wait=20" });
      expect(answer.status).toBe(201);
      await pair.control.release();
      expect(await pair.control.listRefunds({ payment_intent: objectIdOf(payment) })).toHaveLength(1);
      await pair.expectOneTruth(payment.id);
    });

    it("the provider's stored 500 is its key's last word: a person must look, and the amount stays reserved", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      await disturb({ fault: { type: "stored_error", status: 500 } });
      const key = newKey();
      const answer = await refund(pair.client, payment.id, { amount: 4_000 }, { key, prefer: "wait=5" });
      expect([answer.status, answer.json.status], answer.text).toEqual([202, "needs_review"]);
      expect(await pair.client.payment(payment.id)).toMatchObject({
        amount_refundable: 6_000,
        amount_refunded: 0,
      });
      const again = await refund(pair.client, payment.id, { amount: 4_000 }, { key });
      expect(outcomeOf(again)).toBe("409 idempotency_key_in_progress");
      expect(await pair.control.listRefunds({ payment_intent: objectIdOf(payment) })).toEqual([]);
      expect((await refund(pair.client, payment.id, { amount: 6_000 })).status).toBe(201);
    });
  });

  it("another tenant's payment and refund are 404, and its key is nobody else's", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    const foreign = await pair.stranger();
    const key = newKey();
    for (const call of [refund, capture, cancel]) {
      expect(outcomeOf(await call(foreign, payment.id, undefined, { key }))).toBe("404 not_found");
    }
    const answer = await refund(pair.client, payment.id, { amount: 1_000 }, { key });
    expect(answer.status).toBe(201);
    expect((await foreign.get(`/v1/refunds/${answer.json.id ?? ""}`)).status).toBe(404);
    expect((await foreign.get(`/v1/payments/${payment.id}/refunds`)).status).toBe(404);
    expect((await foreign.get(`/v1/ledger/entries?payment=${payment.id}`)).status).toBe(404);
    expect((await foreign.get("/v1/balances")).json.data).toEqual([]);
    expect(await foreign.get("/v1/events").then((events) => events.json.data)).toEqual([]);
    await pair.expectOneTruth(payment.id);
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });
});
