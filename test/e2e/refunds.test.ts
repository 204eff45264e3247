import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { FaultRuleInput, LoggedRequest } from "../../src/sandbox/index.js";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { type ApiClient, DECLINED, newKey } from "../support/api-client.js";
import { balancesOf, expectOneTruth, unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  entriesOf,
  eventsOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  type RefundDocument,
  readRefund,
  refund,
  refundsOf,
  typesOf,
  untilRefund,
  untilShows,
} from "../support/merchant.js";
import { EVENTFUL, INBOX_PATH, STRIPE_SECRET } from "../support/stripe-sender.js";
import { type Api, type System, startFaultySystem, untilEnded, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const ROUNDS = 50;
const SIDE_BY_SIDE = 10;
const PENDING = { ...AUTOMATIC, payment_method: "pm_card_pendingRefund" } as const;

describeWithFaults("refunds, at two APIs and two workers", () => {
  let system: System;
  let apis: readonly [Api, Api];
  let client: ApiClient;
  let endpoint: WebhookEndpoint;

  beforeAll(async () => {
    system = await startFaultySystem({ env: EVENTFUL });
    await system.control.changeSettings({ refund_settles_after_ms: null });
    apis = [await system.api(), await system.api()];
    client = apis[0].client;
    endpoint = await system.control.addWebhookEndpoint({
      url: apis[0].url + INBOX_PATH,
      secrets: [STRIPE_SECRET],
    });
    await system.worker();
    await system.worker();
  });
  afterEach(async () => {
    await system.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate" });
    await system.control.clearFaults();
    await system.control.release();
  });
  afterAll(() => system.drop());

  const disturb = (rule: Omit<FaultRuleInput, "match">) =>
    system.control.addFault({ match: { call: "refunds.create" }, ...rule });

  async function sentFor(objectId: string): Promise<LoggedRequest[]> {
    const log = await system.control.listRequests({ call: "refunds.create" });
    return log.filter((one) => one.parameters["payment_intent"] === objectId);
  }

  const asRefund = (answer: { readonly json: unknown }) => answer.json as RefundDocument;

  describe("at the same time", () => {
    it(`two of 6000 of 10000, ${ROUNDS} rounds: one is made, the other is 422 and never sent`, async () => {
      const payments = await Promise.all(Array.from({ length: ROUNDS }, () => made(client, AUTOMATIC)));
      for (let from = 0; from < ROUNDS; from += SIDE_BY_SIDE) {
        await Promise.all(
          payments.slice(from, from + SIDE_BY_SIDE).map(async ({ id }) => {
            const answers = await Promise.all(
              apis.map((api) => refund(api.client, id, { amount: 6_000 }, { prefer: "wait=30" })),
            );
            expect(answers.map(outcomeOf).toSorted()).toEqual(["201", "422 amount_too_large"]);
          }),
        );
      }
      for (const payment of payments) {
        expect(await client.payment(payment.id)).toMatchObject({
          amount_refunded: 6_000,
          amount_refundable: 4_000,
        });
        expect(await sentFor(objectIdOf(payment))).toHaveLength(1);
      }
      await expectOneTruth(
        client,
        system.control,
        payments.map(({ id }) => id),
      );
    });

    it("ten of 1500 of 10000: six are made, four are 422; two more fit the rest exactly", async () => {
      const payment = await made(client, AUTOMATIC);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          refund((apis[at % 2] as Api).client, payment.id, { amount: 1_500 }, { prefer: "wait=30" }),
        ),
      );
      expect(answers.map(outcomeOf).toSorted()).toEqual([
        ...Array<string>(6).fill("201"),
        ...Array<string>(4).fill("422 amount_too_large"),
      ]);
      const rest = await Promise.all(apis.map((api) => refund(api.client, payment.id, { amount: 500 })));
      expect(rest.map((answer) => answer.status)).toEqual([201, 201]);
      expect(outcomeOf(await refund(client, payment.id, { amount: 1 }))).toBe("422 amount_too_large");
      expect(await sentFor(objectIdOf(payment))).toHaveLength(8);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("twenty of one key: one refund, and its amount is reserved from the accept on", async () => {
      const payment = await made(client, AUTOMATIC);
      await disturb({ fault: { type: "hang", effect: "applied" } });
      const key = newKey();
      const answering = Array.from({ length: 20 }, (_, at) =>
        refund((apis[at % 2] as Api).client, payment.id, { amount: 6_000 }, { key, prefer: "wait=20" }),
      );
      await system.control.waitForHeld();
      expect(await client.payment(payment.id)).toMatchObject({
        amount_refunded: 0,
        amount_refundable: 4_000,
      });
      const excess = await refund(client, payment.id, { amount: 4_001 });
      expect(outcomeOf(excess)).toBe("422 amount_too_large");
      await system.control.release();
      const answers = await Promise.all(answering);
      expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
      expect(answers.filter((answer) => answer.headers.get("Idempotent-Replayed") === null)).toHaveLength(1);
      expect(await refundsOf(client, payment.id)).toHaveLength(1);
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  it("that is not valid, or of what is not captured, is 4xx without a call, and changes nothing", async () => {
    const paid = await made(client, AUTOMATIC);
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
      expect([body, outcomeOf(await refund(client, paid.id, body))]).toEqual([body, refusal]);
    }
    const authorized = await made(client, MANUAL);
    const acting = await made(client, NEEDS_CUSTOMER);
    const canceled = await made(client, MANUAL);
    await cancel(client, canceled.id);
    const declined = (await client.pay(DECLINED)).json.payment?.id ?? "";
    await untilEnded(client, declined);
    await system.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "hang", effect: "applied" },
    });
    const atWork = (await client.pay(AUTOMATIC, { prefer: "respond-async" })).json.id ?? "";
    await system.control.waitForHeld();
    for (const [id, state] of [
      [authorized.id, "authorized"],
      [acting.id, "requires_action"],
      [canceled.id, "canceled"],
      [declined, "failed"],
      [atWork, "processing"],
    ] as const) {
      const refused = await refund(client, id, { amount: 100 });
      expect([state, outcomeOf(refused)]).toEqual([state, "409 invalid_state"]);
      expect(refused.json["detail"]).toContain(state);
      expect(await refundsOf(client, id)).toEqual([]);
    }
    for (const id of ["pay_00000000000000000000000000000000", "nothing", "re_1"]) {
      expect(outcomeOf(await refund(client, id, { amount: 100 }))).toBe("404 not_found");
    }
    await system.control.release();
    await untilStatus(client, atWork, ["succeeded"]);
    expect(await client.payment(paid.id)).toEqual(paid);
    for (const payment of [paid, authorized, acting, canceled])
      expect(await sentFor(objectIdOf(payment))).toEqual([]);
    await expectOneTruth(client, system.control, [
      paid.id,
      authorized.id,
      acting.id,
      canceled.id,
      declined,
      atWork,
    ]);
  });

  describe("without an amount", () => {
    it("gives back what was captured, not what was authorized, and says so to the provider", async () => {
      const payment = await made(client, MANUAL);
      await capture(client, payment.id, { amount: 6_000 });
      const back = await refund(client, payment.id);
      expect([back.status, back.json.amount]).toEqual([201, 6_000]);
      const [sent] = await sentFor(objectIdOf(payment));
      expect(sent?.parameters["amount"]).toBe("6000");
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("gives back what is left, and then there is nothing left", async () => {
      const payment = await made(client, MANUAL);
      await capture(client, payment.id, { amount: 6_000 });
      expect((await refund(client, payment.id, { amount: 2_000 })).status).toBe(201);
      const key = newKey();
      const rest = await refund(client, payment.id, undefined, { key });
      expect([rest.status, rest.json.amount]).toEqual([201, 4_000]);
      expect(outcomeOf(await refund(client, payment.id))).toBe("422 amount_too_large");
      expect((await refund(client, payment.id, "{}", { key })).text).toBe(rest.text);
      expect((await sentFor(objectIdOf(payment))).map((sent) => sent.parameters["amount"])).toEqual([
        "2000",
        "4000",
      ]);
      await expectOneTruth(client, system.control, [payment.id]);
    });
  });

  describe("and the provider's events", () => {
    it("that come before the answer: one refund, one reversal, one event", async () => {
      const payment = await made(client, AUTOMATIC);
      await system.control.updateWebhookEndpoint(endpoint.id, { copies: 2 });
      await disturb({ fault: { type: "hang", effect: "applied" } });
      const running = refund(client, payment.id, { amount: 4_000 }, { prefer: "wait=20" });
      await system.control.waitForHeld();
      await system.control.webhooksIdle();
      await system.control.release();
      const answer = await running;
      await system.control.updateWebhookEndpoint(endpoint.id, { copies: 1 });
      expect([answer.status, answer.json.status], answer.text).toEqual([201, "succeeded"]);
      const listed = await refundsOf(client, payment.id);
      expect(listed).toMatchObject([{ id: answer.json.id, external: false, amount: 4_000 }]);
      await expectOneTruth(client, system.control, [payment.id]);
      expect((await typesOf(client, payment.id)).filter((type) => type === "refund.succeeded")).toHaveLength(
        1,
      );
    });

    it("of a refund made at the dashboard: recorded as external, counted, and the rest is what can be refunded", async () => {
      const payment = await made(client, AUTOMATIC);
      const outside = await system.control.dashboard.refund(objectIdOf(payment), 1_000);
      await untilShows(client, payment.id, { amount_refunded: 1_000, amount_refundable: 9_000 });
      for (const event of await system.control.listEvents({ object_id: outside.id }))
        await system.control.redeliverEvent(event.id, { copies: 2 });
      expect(outcomeOf(await refund(client, payment.id, { amount: 9_001 }))).toBe("422 amount_too_large");
      expect((await refund(client, payment.id, { amount: 9_000 })).status).toBe(201);
      const refunds = await refundsOf(client, payment.id);
      expect(refunds.map(({ amount, external }) => [amount, external])).toEqual([
        [9_000, false],
        [1_000, true],
      ]);
      expect(refunds[1]?.provider_refund_id).toBe(outside.id);
      expect(await readRefund(client, refunds[1]?.id ?? "")).toEqual(refunds[1]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of a refund made at the dashboard, lost: one of ours above the rest is 422, and nothing stays reserved", async () => {
      const payment = await made(client, AUTOMATIC);
      await system.control.updateWebhookEndpoint(endpoint.id, { mode: "lost" });
      const outside = await system.control.dashboard.refund(objectIdOf(payment), 1_000);
      const key = newKey();
      const refused = await refund(client, payment.id, { amount: 9_500 }, { key, prefer: "wait=20" });
      expect(outcomeOf(refused)).toBe("422 amount_too_large");
      expect((await refund(client, payment.id, { amount: 9_500 }, { key })).text).toBe(refused.text);
      expect((await refund(client, payment.id, { amount: 9_000 })).status).toBe(201);
      // What was lost is told once more, much later.
      await system.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate" });
      const [event] = await system.control.listEvents({ object_id: outside.id, type: "refund.created" });
      await system.control.redeliverEvent(event?.id ?? "");
      await untilShows(client, payment.id, { amount_refunded: 10_000, amount_refundable: 0 });
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of one that fails after it had succeeded, told twice: failed, refundable again, reversed once", async () => {
      const payment = await made(client, AUTOMATIC);
      const key = newKey();
      const answer = await refund(client, payment.id, { amount: 4_000 }, { key });
      const made1 = asRefund(answer);
      expect([answer.status, made1.status]).toEqual([201, "succeeded"]);
      await system.control.bank.failRefund(made1.provider_refund_id ?? "");
      const failed = await untilRefund(client, made1.id, ["failed"]);
      expect(failed.failure?.code).toBe("expired_or_canceled_card");
      for (const event of await system.control.listEvents({ object_id: made1.provider_refund_id ?? "" }))
        await system.control.redeliverEvent(event.id, { copies: 2 });
      await untilShows(client, payment.id, {
        amount_refunded: 0,
        amount_refundable: 10_000,
        status: "succeeded",
      });
      expect((await refund(client, payment.id, { amount: 4_000 }, { key })).text).toBe(answer.text);
      expect((await refund(client, payment.id)).json.amount).toBe(10_000);
      const facts = (await entriesOf(client, payment.id)).map((entry) => entry.fact);
      expect(facts.filter((fact) => fact.startsWith("refund_failed"))).toHaveLength(1);
      const about = (await eventsOf(client, payment.id)).filter(({ data }) => data.object.id === made1.id);
      expect(about.map((event) => event.type)).toEqual([
        "refund.created",
        "refund.succeeded",
        "refund.failed",
      ]);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("of one at the dashboard that fails later: no longer counted", async () => {
      const payment = await made(client, AUTOMATIC);
      const outside = await system.control.dashboard.refund(objectIdOf(payment), 3_000);
      await untilShows(client, payment.id, { amount_refunded: 3_000 });
      await system.control.bank.failRefund(outside.id);
      await untilShows(client, payment.id, { amount_refunded: 0, amount_refundable: 10_000 });
      expect(balancesOf(await entriesOf(client, payment.id))["refunds"] ?? 0).toBe(0);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it.each([
      ["succeed", "201", "succeeded"],
      ["fail", "402 refund_failed", "failed"],
    ] as const)(
      "of one that is pending and told to %s: its key is answered %s",
      async (end, outcome, status) => {
        const payment = await made(client, PENDING);
        const key = newKey();
        const waiting = await refund(client, payment.id, { amount: 4_000 }, { key, prefer: "respond-async" });
        expect([waiting.status, waiting.json.status]).toEqual([202, "processing"]);
        expect(waiting.headers.get("Location")).toBe(`/v1/refunds/${waiting.json.id ?? ""}`);
        const again = await refund(client, payment.id, { amount: 4_000 }, { key });
        expect(outcomeOf(again)).toBe("409 idempotency_key_in_progress");
        const [there] = await system.control
          .waitForRequests({ filter: { call: "refunds.create" }, until: "settled" })
          .then(() => system.control.listRefunds({ payment_intent: objectIdOf(payment) }));
        await system.control.bank.settleRefund(there?.id ?? "", end);
        await untilRefund(client, waiting.json.id ?? "", [status]);
        const answer = await refund(client, payment.id, { amount: 4_000 }, { key });
        expect(outcomeOf(answer)).toBe(outcome);
        const refundable = end === "fail" ? 10_000 : 6_000;
        expect(await client.payment(payment.id)).toMatchObject({ amount_refundable: refundable });
        await expectOneTruth(client, system.control, [payment.id]);
      },
    );

    it("of a dispute: a refund is refused and told why, without a call", async () => {
      const payment = await made(client, AUTOMATIC);
      await system.control.bank.openDispute(objectIdOf(payment));
      await until(
        "a payment that shows its dispute",
        () => client.payment(payment.id),
        (shown) => (shown["disputes"] as readonly unknown[]).length === 1,
      );
      const refused = await refund(client, payment.id, { amount: 1_000 }, { prefer: "wait=20" });
      expect(outcomeOf(refused)).toBe("409 invalid_state");
      expect(refused.json["detail"]).toContain("disputed");
      expect(refused.json.payment?.["amount_refundable"]).toBe(10_000);
      expect(await sentFor(objectIdOf(payment))).toEqual([]);
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
        const payment = await made(client, AUTOMATIC);
        await disturb({ fault: { type, effect } });
        await disturb({ fault: { type: "error", status: 429 } });
        const key = newKey();
        const answer = await refund(client, payment.id, { amount: 4_000 }, { key, prefer: "wait=20" });
        expect([answer.status, answer.json.amount], answer.text).toEqual([201, 4_000]);
        await expectOneTruth(client, system.control, [payment.id]);
        expect(await system.control.listRefunds({ payment_intent: objectIdOf(payment) })).toHaveLength(1);
      },
    );

    it("still on its way while it is asked about and sent again: one refund", async () => {
      const payment = await made(client, AUTOMATIC);
      await disturb({ fault: { type: "reset", effect: "later", arrival: "in_network" } });
      const answer = await refund(client, payment.id, { amount: 4_000 }, { prefer: "wait=20" });
      expect(answer.status).toBe(201);
      await system.control.release();
      expect(await system.control.listRefunds({ payment_intent: objectIdOf(payment) })).toHaveLength(1);
      await expectOneTruth(client, system.control, [payment.id]);
    });

    it("the provider's stored 500 is its key's last word: a person must look, and the amount stays reserved", async () => {
      const payment = await made(client, AUTOMATIC);
      await disturb({ fault: { type: "stored_error", status: 500 } });
      const key = newKey();
      const answer = await refund(client, payment.id, { amount: 4_000 }, { key, prefer: "wait=5" });
      expect([answer.status, answer.json.status], answer.text).toEqual([202, "needs_review"]);
      expect(await client.payment(payment.id)).toMatchObject({
        amount_refundable: 6_000,
        amount_refunded: 0,
      });
      const again = await refund(client, payment.id, { amount: 4_000 }, { key });
      expect(outcomeOf(again)).toBe("409 idempotency_key_in_progress");
      expect(await system.control.listRefunds({ payment_intent: objectIdOf(payment) })).toEqual([]);
      expect((await refund(client, payment.id, { amount: 6_000 })).status).toBe(201);
    });
  });

  it("another tenant's payment and refund are 404, and its key is nobody else's", async () => {
    const payment = await made(client, AUTOMATIC);
    const stranger = await system.command<{ id: string }>("tenants", "create", "--name", "stranger");
    const { secret } = await system.command<{ secret: string }>("keys", "create", "--tenant", stranger.id);
    const foreign = Object.assign(Object.create(client) as ApiClient, { secret });
    const key = newKey();
    for (const call of [refund, capture, cancel]) {
      expect(outcomeOf(await call(foreign, payment.id, undefined, { key }))).toBe("404 not_found");
    }
    const answer = await refund(client, payment.id, { amount: 1_000 }, { key });
    expect(answer.status).toBe(201);
    expect((await foreign.get(`/v1/refunds/${answer.json.id ?? ""}`)).status).toBe(404);
    expect((await foreign.get(`/v1/payments/${payment.id}/refunds`)).status).toBe(404);
    expect((await foreign.get(`/v1/ledger/entries?payment=${payment.id}`)).status).toBe(404);
    expect((await foreign.get("/v1/balances")).json.data).toEqual([]);
    expect(await foreign.get("/v1/events").then((events) => events.json.data)).toEqual([]);
    await expectOneTruth(client, system.control, [payment.id]);
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await system.control.listRequests())).toEqual([]);
  });
});
