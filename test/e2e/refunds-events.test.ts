import { afterEach, beforeAll, expect, it } from "vitest";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { newKey } from "../support/api-client.js";
import { balancesOf } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  entriesOf,
  eventsOf,
  made,
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
import { usePair } from "../support/pair.js";
import { EVENTFUL } from "../support/stripe-sender.js";
import { until } from "../support/until.js";

const PENDING = { ...AUTOMATIC, payment_method: "pm_card_pendingRefund" } as const;

describeWithFaults("refunds and the provider's events", () => {
  const pair = usePair(EVENTFUL);
  let endpoint: WebhookEndpoint;
  beforeAll(async () => {
    await pair.control.changeSettings({ refund_settles_after_ms: null });
    endpoint = await pair.inbox(0);
  });
  afterEach(() => pair.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate", copies: 1 }));

  it("that come before the answer: one refund, one reversal, one event", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    await pair.control.updateWebhookEndpoint(endpoint.id, { copies: 2 });
    await pair.disturb("refunds.create", { fault: { type: "hang", effect: "applied" } });
    const running = refund(pair.client, payment.id, { amount: 4_000 }, { prefer: "wait=20" });
    await pair.control.waitForHeld();
    await pair.control.webhooksIdle();
    await pair.control.release();
    const answer = await running;
    await pair.control.updateWebhookEndpoint(endpoint.id, { copies: 1 });
    expect([answer.status, answer.json.status], answer.text).toEqual([201, "succeeded"]);
    const listed = await refundsOf(pair.client, payment.id);
    expect(listed).toMatchObject([{ id: answer.json.id, external: false, amount: 4_000 }]);
    await pair.expectOneTruth(payment.id);
    expect(
      (await typesOf(pair.client, payment.id)).filter((type) => type === "refund.succeeded"),
    ).toHaveLength(1);
  });

  it("of a refund made at the dashboard: recorded as external, counted, and the rest is what can be refunded", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    const outside = await pair.control.dashboard.refund(objectIdOf(payment), 1_000);
    await untilShows(pair.client, payment.id, { amount_refunded: 1_000, amount_refundable: 9_000 });
    for (const event of await pair.control.listEvents({ object_id: outside.id }))
      await pair.control.redeliverEvent(event.id, { copies: 2 });
    expect(outcomeOf(await refund(pair.client, payment.id, { amount: 9_001 }))).toBe("422 amount_too_large");
    expect((await refund(pair.client, payment.id, { amount: 9_000 })).status).toBe(201);
    const refunds = await refundsOf(pair.client, payment.id);
    expect(refunds.map(({ amount, external }) => [amount, external])).toEqual([
      [9_000, false],
      [1_000, true],
    ]);
    expect(refunds[1]?.provider_refund_id).toBe(outside.id);
    expect(await readRefund(pair.client, refunds[1]?.id ?? "")).toEqual(refunds[1]);
    await pair.expectOneTruth(payment.id);
  });

  it("of a refund made at the dashboard, lost: one of ours above the rest is 422, and nothing stays reserved", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    await pair.control.updateWebhookEndpoint(endpoint.id, { mode: "lost" });
    const outside = await pair.control.dashboard.refund(objectIdOf(payment), 1_000);
    const key = newKey();
    const refused = await refund(pair.client, payment.id, { amount: 9_500 }, { key, prefer: "wait=20" });
    expect(outcomeOf(refused)).toBe("422 amount_too_large");
    expect((await refund(pair.client, payment.id, { amount: 9_500 }, { key })).text).toBe(refused.text);
    expect((await refund(pair.client, payment.id, { amount: 9_000 })).status).toBe(201);
    // What was lost is told once more, much later.
    await pair.control.updateWebhookEndpoint(endpoint.id, { mode: "immediate" });
    const [event] = await pair.control.listEvents({ object_id: outside.id, type: "refund.created" });
    await pair.control.redeliverEvent(event?.id ?? "");
    await untilShows(pair.client, payment.id, { amount_refunded: 10_000, amount_refundable: 0 });
    await pair.expectOneTruth(payment.id);
  });

  it("of one that fails after it had succeeded, told twice: failed, refundable again, reversed once", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    const key = newKey();
    const answer = await refund(pair.client, payment.id, { amount: 4_000 }, { key });
    const made1 = answer.json as unknown as RefundDocument;
    expect([answer.status, made1.status]).toEqual([201, "succeeded"]);
    await pair.control.bank.failRefund(made1.provider_refund_id ?? "");
    const failed = await untilRefund(pair.client, made1.id, ["failed"]);
    expect(failed.failure?.code).toBe("expired_or_canceled_card");
    for (const event of await pair.control.listEvents({ object_id: made1.provider_refund_id ?? "" }))
      await pair.control.redeliverEvent(event.id, { copies: 2 });
    await untilShows(pair.client, payment.id, {
      amount_refunded: 0,
      amount_refundable: 10_000,
      status: "succeeded",
    });
    expect((await refund(pair.client, payment.id, { amount: 4_000 }, { key })).text).toBe(answer.text);
    expect((await refund(pair.client, payment.id)).json.amount).toBe(10_000);
    const facts = (await entriesOf(pair.client, payment.id)).map((entry) => entry.fact);
    expect(facts.filter((fact) => fact.startsWith("refund_failed"))).toHaveLength(1);
    const about = (await eventsOf(pair.client, payment.id)).filter(({ data }) => data.object.id === made1.id);
    expect(about.map((event) => event.type)).toEqual(["refund.created", "refund.succeeded", "refund.failed"]);
    await pair.expectOneTruth(payment.id);
  });

  it("of one at the dashboard that fails later: no longer counted", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    const outside = await pair.control.dashboard.refund(objectIdOf(payment), 3_000);
    await untilShows(pair.client, payment.id, { amount_refunded: 3_000 });
    await pair.control.bank.failRefund(outside.id);
    await untilShows(pair.client, payment.id, { amount_refunded: 0, amount_refundable: 10_000 });
    expect(balancesOf(await entriesOf(pair.client, payment.id))["refunds"] ?? 0).toBe(0);
    await pair.expectOneTruth(payment.id);
  });

  it.each([
    ["succeed", "201", "succeeded"],
    ["fail", "402 refund_failed", "failed"],
  ] as const)(
    "of one that is pending and told to %s: its key is answered %s",
    async (end, outcome, status) => {
      const payment = await made(pair.client, PENDING);
      const key = newKey();
      const waiting = await refund(
        pair.client,
        payment.id,
        { amount: 4_000 },
        { key, prefer: "respond-async" },
      );
      expect([waiting.status, waiting.json.status]).toEqual([202, "processing"]);
      expect(waiting.headers.get("Location")).toBe(`/v1/refunds/${waiting.json.id ?? ""}`);
      const again = await refund(pair.client, payment.id, { amount: 4_000 }, { key });
      expect(outcomeOf(again)).toBe("409 idempotency_key_in_progress");
      const [there] = await pair.control
        .waitForRequests({ filter: { call: "refunds.create" }, until: "settled" })
        .then(() => pair.control.listRefunds({ payment_intent: objectIdOf(payment) }));
      await pair.control.bank.settleRefund(there?.id ?? "", end);
      await untilRefund(pair.client, waiting.json.id ?? "", [status]);
      const answer = await refund(pair.client, payment.id, { amount: 4_000 }, { key });
      expect(outcomeOf(answer)).toBe(outcome);
      const refundable = end === "fail" ? 10_000 : 6_000;
      expect(await pair.client.payment(payment.id)).toMatchObject({ amount_refundable: refundable });
      await pair.expectOneTruth(payment.id);
    },
  );

  it("of a dispute: a refund is refused and told why, without a call", async () => {
    const payment = await made(pair.client, AUTOMATIC);
    await pair.control.bank.openDispute(objectIdOf(payment));
    await until(
      "a payment that shows its dispute",
      () => pair.client.payment(payment.id),
      (shown) => (shown["disputes"] as readonly unknown[]).length === 1,
    );
    const refused = await refund(pair.client, payment.id, { amount: 1_000 }, { prefer: "wait=20" });
    expect(outcomeOf(refused)).toBe("409 invalid_state");
    expect(refused.json["detail"]).toContain("disputed");
    expect(refused.json.payment?.["amount_refundable"]).toBe(10_000);
    expect(await pair.sentFor(objectIdOf(payment))).toEqual([]);
  });
});
