import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { toProviderDispute } from "../../../../src/providers/stripe/dispute-outcome.js";
import { type Bench, json, page, type Reply, reset, startBench, text } from "./scripted-stripe.js";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const error = (code?: string) => ({ error: { type: "invalid_request_error", ...(code ? { code } : {}) } });

function transaction(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: "txn_1",
    object: "balance_transaction",
    amount: -4200,
    created: 100,
    currency: "usd",
    fee: 1500,
    net: -5700,
    source: "dp_1",
    type: "adjustment",
    ...changes,
  };
}

function dispute(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: "dp_1",
    object: "dispute",
    amount: 4200,
    balance_transactions: [],
    charge: "ch_1",
    currency: "usd",
    livemode: false,
    payment_intent: "pi_1",
    reason: "fraudulent",
    status: "needs_response",
    ...changes,
  };
}

const REFUSALS: [string, Reply, string][] = [
  ["401", json(401, error()), "unauthorized"],
  ["403", json(403, error()), "forbidden"],
  ["429", json(429, error("rate_limit")), "rate_limited"],
  ["500", json(500, { error: { type: "api_error" } }), "server_error"],
  ["400", json(400, error("parameter_unknown")), "refused"],
  ["a reset", reset, "connection_lost"],
  ["an empty 200", text(200, ""), "unreadable"],
  ["a 200 in another form", json(200, { ok: true }), "unreadable"],
];

describe("a Dispute, read", () => {
  it("shows what is disputed, and the PaymentIntent that it is of", () => {
    expect(toProviderDispute(dispute())).toEqual({
      id: "dp_1",
      chargeId: "pi_1",
      status: "open",
      amount: 4200,
      currency: "usd",
      reason: "fraudulent",
      livemode: false,
      movements: [],
    });
  });

  it.each([
    ["warning_needs_response", "warning"],
    ["warning_under_review", "warning"],
    ["warning_closed", "closed"],
    ["needs_response", "open"],
    ["under_review", "under_review"],
    ["appeal_needs_response", "open"],
    ["appeal_under_review", "under_review"],
    ["won", "won"],
    ["lost", "lost"],
    ["prevented", "closed"],
    ["something_new", "unrecognized"],
  ])("%s is %s", (status, expected) => {
    expect(toProviderDispute(dispute({ status }))?.status).toBe(expected);
  });

  it("shows each movement of funds in the order they were made, in our unit, with its fee", () => {
    const withdrawn = transaction({ id: "txn_1", created: 100 });
    const givenBack = transaction({ id: "txn_2", created: 200, amount: 4200, fee: -1500, net: 5700 });
    for (const transactions of [
      [withdrawn, givenBack],
      [givenBack, withdrawn],
    ]) {
      expect(toProviderDispute(dispute({ balance_transactions: transactions }))?.movements).toEqual([
        { transactionId: "txn_1", amount: -4200, fee: 1500, currency: "usd" },
        { transactionId: "txn_2", amount: 4200, fee: -1500, currency: "usd" },
      ]);
    }
    const shillings = { currency: "ugx", amount: -420_000, fee: 150_000, net: -570_000 };
    expect(
      toProviderDispute(dispute({ balance_transactions: [transaction(shillings)] }))?.movements,
    ).toMatchObject([{ amount: -4200, fee: 1500, currency: "ugx" }]);
  });

  it.each([
    ["nothing", null],
    ["no id", dispute({ id: null })],
    ["no mode", dispute({ livemode: undefined })],
    ["no status", dispute({ status: undefined })],
    ["no amount", dispute({ amount: "4200" })],
    ["no movements", dispute({ balance_transactions: undefined })],
    ["a movement that is only an id", dispute({ balance_transactions: ["txn_1"] })],
    ["a movement without an amount", dispute({ balance_transactions: [transaction({ amount: null })] })],
    [
      "a movement that our unit cannot show",
      dispute({ balance_transactions: [transaction({ currency: "isk", amount: -4250 })] }),
    ],
  ])("is not made of %s", (_what, value) => {
    expect(toProviderDispute(value)).toBeNull();
  });
});

describe("the question for a dispute", () => {
  it("finds it", async () => {
    bench.stripe.script(json(200, dispute({ balance_transactions: [transaction()] })));
    expect(await bench.provider.getDispute("dp_1")).toMatchObject({
      type: "found",
      dispute: { id: "dp_1", movements: [{ amount: -4200 }] },
      evidence: { httpStatus: 200 },
    });
    expect(bench.stripe.requests[0]).toMatchObject({ method: "GET", path: "/v1/disputes/dp_1" });
  });

  it("calls it missing only where Stripe says so", async () => {
    bench.stripe.script(json(404, error("resource_missing")), json(404, error()));
    expect(await bench.provider.getDispute("dp_1")).toMatchObject({ type: "missing" });
    expect(await bench.provider.getDispute("dp_1")).toMatchObject({ type: "unanswered", reason: "refused" });
  });

  it.each([...REFUSALS, ["another dispute", json(200, dispute({ id: "dp_2" })), "unreadable"]] as const)(
    "is not answered by %s",
    async (_what, reply, reason) => {
      bench.stripe.script(reply);
      expect(await bench.provider.getDispute("dp_1")).toMatchObject({ type: "unanswered", reason });
    },
  );
});

describe("the question for a payout", () => {
  const charge = { id: "ch_1", object: "charge", payment_intent: "pi_1" };
  const refund = { id: "re_1", object: "refund", payment_intent: { id: "pi_2", object: "payment_intent" } };
  const disputed = { id: "dp_1", object: "dispute", payment_intent: "pi_3" };
  const paid = transaction({
    id: "txn_po",
    amount: -9000,
    fee: 0,
    net: -9000,
    source: "po_1",
    type: "payout",
  });

  it("finds what was settled with it, page by page, net, each with the PaymentIntent whose money it is", async () => {
    bench.stripe.script(
      page(
        [
          paid,
          transaction({ id: "txn_4", source: disputed }),
          transaction({ id: "txn_3", source: refund, amount: -700, fee: 0, net: -700 }),
        ],
        true,
      ),
      page([
        transaction({ id: "txn_2", source: charge, amount: 4200, fee: 152, net: 4048 }),
        transaction({ id: "txn_1", source: "ch_0", amount: 100, fee: 0, net: 100 }),
        transaction({ id: "txn_0", source: null, amount: -25, fee: 0, net: -25 }),
      ]),
    );
    const movement = (transactionId: string, chargeId: string | null, amount: number) => ({
      transactionId,
      chargeId,
      amount,
      currency: "usd",
    });
    expect(await bench.provider.getPayout("po_1", null)).toMatchObject({
      type: "found",
      movements: [movement("txn_4", "pi_3", -5700), movement("txn_3", "pi_2", -700)],
      next: "txn_3",
    });
    const last = await bench.provider.getPayout("po_1", "txn_3");
    expect(last).not.toHaveProperty("next");
    expect(last).toMatchObject({
      type: "found",
      movements: [
        movement("txn_2", "pi_1", 4048),
        movement("txn_1", null, 100),
        movement("txn_0", null, -25),
      ],
      evidence: { httpStatus: 200 },
    });
    const [first, second] = bench.stripe.requests.map(({ path }) => new URL(path, "http://stripe.test"));
    expect(first?.pathname).toBe("/v1/balance_transactions");
    const filter = { payout: "po_1", "expand[0]": "data.source", limit: "100" };
    expect(Object.fromEntries(first?.searchParams ?? [])).toEqual(filter);
    expect(Object.fromEntries(second?.searchParams ?? [])).toEqual({ ...filter, starting_after: "txn_3" });
  });

  it("leaves out its own transaction, be its source an id or the payout itself", async () => {
    bench.stripe.script(page([paid, { ...paid, source: { id: "po_1", object: "payout" } }]));
    expect(await bench.provider.getPayout("po_1", null)).toMatchObject({ type: "found", movements: [] });
  });

  it.each([400, 404])("calls it missing only where Stripe says so (%d)", async (status) => {
    bench.stripe.script(json(status, error("resource_missing")));
    expect(await bench.provider.getPayout("po_1", null)).toMatchObject({ type: "missing" });
  });

  it.each([
    ...REFUSALS,
    ["a transaction without an amount", page([transaction({ net: null })]), "unreadable"],
    [
      "an amount that our unit cannot show",
      page([transaction({ currency: "isk", net: -5750 })]),
      "unreadable",
    ],
  ] as const)("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await bench.provider.getPayout("po_1", null)).toMatchObject({ type: "unanswered", reason });
  });

  it.each([
    ["an empty page that is not the last", page([], true)],
    ["a page that ends where it was to begin", page([transaction({ id: "txn_3" })], true)],
  ])("is not answered by %s", async (_what, reply) => {
    bench.stripe.script(reply);
    expect(await bench.provider.getPayout("po_1", "txn_3")).toMatchObject({
      type: "unanswered",
      reason: "unreadable",
    });
  });

  it("is not answered where the page behind a cursor is not there: that says nothing of the payout", async () => {
    bench.stripe.script(json(404, error("resource_missing")));
    expect(await bench.provider.getPayout("po_1", "txn_3")).toMatchObject({
      type: "unanswered",
      reason: "refused",
    });
  });
});
