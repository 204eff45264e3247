import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PageRequest } from "../../../../src/domain/provider.js";
import {
  ATTEMPT_ID,
  type Bench,
  intent,
  json,
  reset,
  startBench,
  TENANT_ID,
  text,
} from "./scripted-stripe.js";

const PAGE: PageRequest = {
  createdFrom: new Date("2026-11-29T12:00:00.900Z"),
  createdTo: new Date("2026-11-29T12:05:00.100Z"),
  cursor: null,
};
const SECONDS = { from: 1_795_953_600, to: 1_795_953_900 };

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const listOf = (data: readonly object[], more = false) => json(200, { object: "list", data, has_more: more });
const asked = () => new URL(bench.stripe.requests[0]?.path ?? "", "http://stripe").searchParams;

describe("a page of charges", () => {
  it("asks for whole seconds, a hundred at a time, after the cursor", async () => {
    bench.stripe.script(listOf([]));
    await bench.provider.listCharges({ ...PAGE, cursor: "pi_9" });
    expect(Object.fromEntries(asked())).toEqual({
      "created[gte]": String(SECONDS.from),
      "created[lte]": String(SECONDS.to),
      limit: "100",
      starting_after: "pi_9",
    });
  });

  it("shows each object with what a payment could be rebuilt from, and where the next page begins", async () => {
    const made = {
      created: 1_795_953_700,
      capture_method: "manual",
      payment_method: "pm_1",
      customer: "cus_1",
    };
    bench.stripe.script(
      listOf(
        [intent({ id: "pi_2", ...made, created: 1_795_953_800 }), intent({ id: "pi_1", ...made })],
        true,
      ),
    );
    expect(await bench.provider.listCharges(PAGE)).toMatchObject({
      type: "page",
      items: [
        { id: "pi_2", createdAt: new Date(1_795_953_800_000) },
        {
          id: "pi_1",
          attemptId: ATTEMPT_ID,
          tenantId: TENANT_ID,
          captureMethod: "manual",
          paymentMethod: "pm_1",
          customer: "cus_1",
        },
      ],
      unreadable: [],
      oldest: new Date(1_795_953_700_000),
      next: "pi_1",
    });
  });

  it("names what it cannot read, and reads the others", async () => {
    bench.stripe.script(
      listOf([intent({ id: "pi_2", created: 2, amount: "many" }), intent({ id: "pi_1", created: 1 })]),
    );
    expect(await bench.provider.listCharges(PAGE)).toMatchObject({
      items: [{ id: "pi_1" }],
      unreadable: ["pi_2"],
      oldest: new Date(1_000),
      next: null,
    });
  });

  it.each([
    ["a 500", json(500, { error: { type: "api_error" } }), "server_error"],
    ["a reset", reset, "connection_lost"],
    ["a 403", json(403, { error: { type: "invalid_request_error" } }), "forbidden"],
    ["a cursor that is gone", json(404, { error: { code: "resource_missing", type: "x" } }), "refused"],
    ["a list in another form", json(200, { data: "none", has_more: false }), "unreadable"],
    ["an entry without an id", json(200, { data: [{}], has_more: false }), "unreadable"],
    ["an entry without a time", json(200, { data: [{ id: "pi_1" }], has_more: true }), "unreadable"],
    ["no JSON", text(200, "<html>"), "unreadable"],
  ])("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await bench.provider.listCharges(PAGE)).toMatchObject({ type: "unanswered", reason });
    expect(bench.stripe.requests).toHaveLength(1);
  });
});

describe.each([
  "listCharges",
  "listRefunds",
  "listDisputes",
  "listTransactions",
  "listUndeliveredEvents",
  "listPayoutEvents",
] as const)("%s", (list) => {
  it("is not answered by an empty page that is not the last, nor by one that ends where it was to begin", async () => {
    const unreadable = { type: "unanswered", reason: "unreadable" };
    bench.stripe.script(listOf([], true));
    expect(await bench.provider[list](PAGE)).toMatchObject(unreadable);
    bench.stripe.script(listOf([{ id: "x_1", created: 1 }], true));
    expect(await bench.provider[list](PAGE)).toMatchObject({ type: "page", next: "x_1" });
    expect(await bench.provider[list]({ ...PAGE, cursor: "x_1" })).toMatchObject(unreadable);
    expect(bench.stripe.requests).toHaveLength(3);
  });
});

describe("a page of balance transactions", () => {
  const transaction = (changes: object) => ({
    id: "txn_1",
    created: 1,
    currency: "usd",
    amount: 4_200,
    fee: 152,
    net: 4_048,
    type: "charge",
    source: { id: "ch_1", object: "charge", payment_intent: "pi_1" },
    ...changes,
  });
  const refund = { id: "re_1", object: "refund", payment_intent: "pi_1" };
  const dispute = { id: "dp_1", object: "dispute", payment_intent: { id: "pi_1" } };

  it.each([
    ["a capture", {}, { type: "charge", chargeId: "pi_1" }],
    ["another movement of a charge", { type: "adjustment" }, { type: "other" }],
    [
      "a refund",
      { type: "refund", source: refund },
      { type: "refund", refundId: "re_1", chargeId: "pi_1", isReversal: false },
    ],
    [
      "a refund that came back",
      { type: "refund_failure", source: refund },
      { type: "refund", refundId: "re_1", chargeId: "pi_1", isReversal: true },
    ],
    [
      "a dispute",
      { type: "adjustment", source: dispute },
      { type: "dispute", disputeId: "dp_1", chargeId: "pi_1" },
    ],
    ["a payout", { type: "payout", source: { id: "po_1", object: "payout" } }, { type: "other" }],
    ["a fee of Stripe's own", { type: "stripe_fee", source: null }, { type: "other" }],
  ])("tells whose movement %s is", async (_what, changes, of) => {
    bench.stripe.script(listOf([transaction(changes)]));
    expect(await bench.provider.listTransactions(PAGE)).toMatchObject({
      items: [{ id: "txn_1", amount: 4_200, fee: 152, currency: "usd", of }],
    });
    expect(asked().get("expand[0]")).toBe("data.source");
  });
});

describe("a page of undelivered events", () => {
  const event = (changes: object = {}) => ({
    id: "evt_1",
    object: "event",
    created: 1,
    type: "payment_intent.succeeded",
    livemode: false,
    pending_webhooks: 1,
    data: { object: { id: "pi_1", metadata: {} } },
    ...changes,
  });

  it("has each event as a delivery would have brought it, and leaves out what every endpoint has", async () => {
    bench.stripe.script(listOf([event(), event({ id: "evt_2", pending_webhooks: 0 })]));
    const page = await bench.provider.listUndeliveredEvents(PAGE);
    if (page.type !== "page") throw new Error(page.type);
    expect(page.items).toHaveLength(1);
    expect(page.items[0]?.notice).toMatchObject({ eventId: "evt_1", subject: { type: "charge" } });
    expect(JSON.parse(page.items[0]?.payload ?? "")).toEqual(event());
    expect(asked().get("delivery_success")).toBe("false");
  });
});

it("a page of events of payouts asks for those alone, and has what was delivered too", async () => {
  const event = {
    id: "evt_1",
    created: 1,
    type: "payout.paid",
    livemode: false,
    pending_webhooks: 0,
    data: { object: { id: "po_1", automatic: true } },
  };
  bench.stripe.script(listOf([event]));
  expect(await bench.provider.listPayoutEvents(PAGE)).toMatchObject({
    items: [{ notice: { eventId: "evt_1", subject: { type: "payout", objectId: "po_1" } } }],
    next: null,
  });
  const types = ["payout.paid", "payout.reconciliation_completed"];
  expect([asked().get("types[0]"), asked().get("types[1]")]).toEqual(types);
  expect(asked().get("delivery_success")).toBeNull();
});

it("pages of refunds and of disputes are read as the objects themselves are", async () => {
  const refund = {
    id: "re_1",
    created: 1,
    currency: "usd",
    amount: 5,
    status: "pending",
    payment_intent: "pi_1",
  };
  bench.stripe.script(listOf([refund, { id: "re_2", created: 1 }]));
  expect(await bench.provider.listRefunds(PAGE)).toMatchObject({
    items: [{ id: "re_1", chargeId: "pi_1", status: "pending", attemptId: null }],
    unreadable: ["re_2"],
  });
  const dispute = {
    id: "dp_1",
    created: 1,
    currency: "usd",
    amount: 5,
    status: "lost",
    livemode: false,
    payment_intent: "pi_1",
    balance_transactions: [],
  };
  bench.stripe.script(listOf([dispute]));
  expect(await bench.provider.listDisputes(PAGE)).toMatchObject({ items: [{ id: "dp_1", status: "lost" }] });
});
