import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MOST_PAGES } from "../../../../src/providers/stripe/list-pages.js";
import { toProviderRefund } from "../../../../src/providers/stripe/refund-outcome.js";
import {
  ATTEMPT_ID,
  type Bench,
  endlessPages,
  json,
  page,
  type Reply,
  refund,
  reset,
  startBench,
  TENANT_ID,
  text,
} from "./scripted-stripe.js";

const REFERENCE = { attemptId: ATTEMPT_ID, chargeId: "pi_1" };

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const error = (code?: string) => ({ error: { type: "invalid_request_error", ...(code ? { code } : {}) } });
const foreign = (id: string) => refund({ id, metadata: { payment_attempt_id: "att_other" } });
const find = () => bench.provider.findRefund(REFERENCE);

const REFUSALS: [string, Reply, string][] = [
  ["401", json(401, error()), "unauthorized"],
  ["403", json(403, error()), "forbidden"],
  ["429", json(429, error("rate_limit")), "rate_limited"],
  ["500", json(500, { error: { type: "api_error" } }), "server_error"],
  ["400", json(400, error("parameter_unknown")), "refused"],
  ["a 404 without a code", json(404, error()), "refused"],
  ["a reset", reset, "connection_lost"],
  ["an empty 200", text(200, ""), "unreadable"],
  ["a 200 in another form", json(200, { ok: true }), "unreadable"],
];

describe("a Refund, read", () => {
  it("shows its money and whose it is", () => {
    expect(toProviderRefund(refund())).toEqual({
      id: "re_1",
      chargeId: "pi_1",
      status: "succeeded",
      amount: 1500,
      currency: "usd",
      attemptId: ATTEMPT_ID,
      tenantId: TENANT_ID,
      failure: null,
    });
  });

  it.each([
    ["pending", "pending"],
    ["requires_action", "pending"],
    ["succeeded", "succeeded"],
    ["failed", "failed"],
    ["canceled", "failed"],
    ["something_new", "unrecognized"],
    [null, "unrecognized"],
    [undefined, "unrecognized"],
  ])("%s is %s", (status, expected) => {
    expect(toProviderRefund(refund({ status }))?.status).toBe(expected);
  });

  it.each([
    ["failed", "expired_or_canceled_card", "expired_or_canceled_card"],
    ["failed", undefined, "refund_failed"],
    ["canceled", undefined, "refund_canceled"],
    ["canceled", "merchant_request", "merchant_request"],
  ])("%s for %s tells the code %s", (status, reason, code) => {
    expect(toProviderRefund(refund({ status, failure_reason: reason }))?.failure).toEqual({
      code,
      decline_code: null,
      message: null,
      advice_code: null,
      retry: "new_key",
    });
  });

  it("names the PaymentIntent, be it an id, the object or nothing", () => {
    const chargeOf = (paymentIntent: unknown) =>
      toProviderRefund(refund({ payment_intent: paymentIntent }))?.chargeId;
    expect(chargeOf({ id: "pi_7", object: "payment_intent" })).toBe("pi_7");
    expect(chargeOf(null)).toBeNull();
    expect(chargeOf(undefined)).toBeNull();
  });

  it("has no amount where Stripe's is no whole number of our unit", () => {
    expect(toProviderRefund(refund({ currency: "isk", amount: 550 }))?.amount).toBeNull();
    expect(toProviderRefund(refund({ currency: "isk", amount: 5500 }))?.amount).toBe(55);
  });

  it("of an authorisation's rest is told from money that was given back", () => {
    const rest = { balance_transaction: null, metadata: {}, reason: "expired_uncaptured_charge" };
    expect(toProviderRefund(refund(rest))?.releasesHold).toBe(true);
    expect(toProviderRefund(refund({ ...rest, reason: null }))?.releasesHold).toBe(true);
    const others = [
      { balance_transaction: "txn_1" },
      { status: "pending" },
      { metadata: refund()["metadata"] },
    ];
    for (const changes of others) {
      expect(toProviderRefund(refund({ ...rest, ...changes }))).not.toHaveProperty("releasesHold");
    }
  });

  it.each([
    ["nothing", null],
    ["an id", "re_1"],
    ["no id", refund({ id: "" })],
    ["no amount", refund({ amount: undefined })],
    ["a fraction", refund({ amount: 1.5 })],
    ["a negative amount", refund({ amount: -1 })],
    ["no currency", refund({ currency: null })],
  ])("is not made of %s", (_what, value) => {
    expect(toProviderRefund(value)).toBeNull();
  });
});

describe("the question for a refund by id", () => {
  it("finds it", async () => {
    bench.stripe.script(json(200, refund({ status: "failed", failure_reason: "declined" })));
    expect(await bench.provider.getRefund("re_1")).toMatchObject({
      type: "found",
      refund: { id: "re_1", status: "failed", failure: { code: "declined" } },
      evidence: { httpStatus: 200, requestId: "req_scripted" },
    });
    expect(bench.stripe.requests[0]).toMatchObject({ method: "GET", path: "/v1/refunds/re_1" });
  });

  it("calls it missing only where Stripe says so", async () => {
    bench.stripe.script(json(404, error("resource_missing")));
    expect(await bench.provider.getRefund("re_1")).toMatchObject({ type: "missing" });
  });

  it.each([...REFUSALS, ["another refund", json(200, refund({ id: "re_2" })), "unreadable"]] as const)(
    "is not answered by %s",
    async (_what, reply, reason) => {
      bench.stripe.script(reply);
      expect(await bench.provider.getRefund("re_1")).toMatchObject({ type: "unanswered", reason });
      expect(bench.stripe.requests).toHaveLength(1);
    },
  );
});

describe("the question for an attempt's refund", () => {
  it("lists all refunds of the object", async () => {
    bench.stripe.script(page([]));
    expect(await find()).toMatchObject({ type: "absent", evidence: { httpStatus: 200 } });
    const url = new URL(bench.stripe.requests[0]?.path ?? "", "http://stripe.test");
    expect(url.pathname).toBe("/v1/refunds");
    expect(Object.fromEntries(url.searchParams)).toEqual({ payment_intent: "pi_1", limit: "100" });
  });

  it("finds it among others, also on the last page", async () => {
    bench.stripe.script(
      page([foreign("re_9"), foreign("re_8")], true),
      page([refund({ id: "re_7", metadata: null }), foreign("re_6")], true),
      page([foreign("re_5"), refund({ id: "re_4" })]),
    );
    expect(await find()).toMatchObject({ type: "found", refund: { id: "re_4", attemptId: ATTEMPT_ID } });
    const cursors = bench.stripe.requests.map(({ path }) =>
      new URLSearchParams(path.split("?")[1]).get("starting_after"),
    );
    expect(cursors).toEqual([null, "re_8", "re_6"]);
  });

  it("says absent only after the last page", async () => {
    bench.stripe.script(page([foreign("re_9")], true), json(500, { error: { type: "api_error" } }));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "server_error" });
    bench.stripe.script(page([foreign("re_9")], true), page([foreign("re_8")]));
    expect(await find()).toMatchObject({ type: "absent" });
  });

  it.each([
    ["succeeded", "pending"],
    ["pending", "something_new"],
    ["something_new", "failed"],
    ["requires_action", "canceled"],
  ])("reads on after a match, and prefers %s to %s, in either order", async (preferred, other) => {
    const objects = [refund({ id: "re_a", status: preferred }), refund({ id: "re_b", status: other })];
    for (const [one, another] of [objects, [...objects].reverse()]) {
      bench.stripe.script(page([one], true), page([another]));
      expect(await find()).toMatchObject({ refund: { id: "re_a" } });
    }
    expect(bench.logged()).toContain("more than one object at Stripe for one attempt");
  });

  it.each(REFUSALS)("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await find()).toMatchObject({ type: "unanswered", reason });
    bench.stripe.script(page([foreign("re_9")], true), reply);
    expect(await find()).toMatchObject({ type: "unanswered", reason });
  });

  it.each([400, 404])("is about a missing object where Stripe says so (%d)", async (status) => {
    bench.stripe.script(json(status, error("resource_missing")));
    expect(await find()).toMatchObject({ type: "missing", evidence: { httpStatus: status } });
  });

  it("is not answered by a cursor that is missing", async () => {
    bench.stripe.script(page([refund()], true), json(400, error("resource_missing")));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "refused" });
  });

  it("is not answered by a refund of ours that cannot be read", async () => {
    bench.stripe.script(page([refund({ amount: null })]));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "unreadable" });
  });

  it("is not answered by a list without end", async () => {
    bench.stripe.script(endlessPages((id) => refund({ id }), "re"));
    expect(await find()).toMatchObject({ type: "unanswered", evidence: { code: "too_many_pages" } });
    expect(bench.stripe.requests).toHaveLength(MOST_PAGES);
  });

  it.each([
    ["an empty page that is not the last", page([], true), 1],
    ["a page that ends where it was to begin", page([refund()], true), 2],
  ])("is not answered by %s", async (_what, reply, requests) => {
    bench.stripe.script(reply);
    expect(await find()).toMatchObject({ type: "unanswered", reason: "unreadable" });
    expect(bench.stripe.requests).toHaveLength(requests);
  });

  it.each([
    ["whatever number of pages it took", 300, 40, () => endlessPages(foreign, "re")],
    ["also within a page that began late", 800, 500, null],
  ])("ends at the provider's timeout, %s", async (_what, timeoutMs, afterMs, nextPage) => {
    const slow = await startBench({ timeoutMs });
    const held =
      (reply: Reply): Reply =>
      (response, socket, request) => {
        const timer = setTimeout(() => reply(response, socket, request), afterMs);
        response.once("close", () => clearTimeout(timer));
      };
    const silence: Reply = () => undefined;
    slow.stripe.script(held(page([foreign("re_9")], true)), nextPage === null ? silence : held(nextPage()));
    const startedAt = performance.now();
    expect(await slow.provider.findRefund(REFERENCE)).toMatchObject({
      type: "unanswered",
      reason: "timeout",
    });
    expect(performance.now() - startedAt).toBeLessThan(timeoutMs + 350);
    expect(slow.stripe.requests.length).toBeGreaterThan(1);
    await slow.close();
  });
});
