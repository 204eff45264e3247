import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MOST_PAGES } from "../../../../src/providers/stripe/list-pages.js";
import {
  ATTEMPT_ID,
  type Bench,
  endlessPages,
  intent,
  json,
  page,
  type Reply,
  reset,
  startBench,
  text,
} from "./scripted-stripe.js";

const FROM = new Date("2026-11-29T12:00:00.900Z");
const TO = new Date("2026-11-29T12:05:00.100Z");
const REFERENCE = { attemptId: ATTEMPT_ID, createdFrom: FROM, createdTo: TO };

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const foreign = (id: string) => intent({ id, metadata: { payment_attempt_id: "att_other" } });
const find = () => bench.provider.findCharge(REFERENCE);
const error = (code?: string) => ({ error: { type: "invalid_request_error", ...(code ? { code } : {}) } });

const REFUSALS: [string, Reply, string][] = [
  ["401", json(401, error()), "unauthorized"],
  ["403", json(403, error()), "forbidden"],
  ["429", json(429, error("rate_limit"), { "retry-after": "2" }), "rate_limited"],
  ["500", json(500, { error: { type: "api_error" } }), "server_error"],
  ["an HTML 502", text(502, "<html>"), "server_error"],
  ["400", json(400, error("parameter_invalid_integer")), "refused"],
  ["409", json(409, error()), "refused"],
  ["a reset", reset, "connection_lost"],
  ["an empty 200", text(200, ""), "unreadable"],
  ["a 200 in another form", json(200, { ok: true }), "unreadable"],
  ["a 404 that is not Stripe's", text(404, "<html>"), "unreadable"],
];

describe("the question by id", () => {
  it("finds the object", async () => {
    bench.stripe.script(json(200, intent({ status: "succeeded", amount_received: 4200 })));
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({
      type: "found",
      charge: { status: "succeeded", amountCaptured: 4200 },
      evidence: { httpStatus: 200, requestId: "req_scripted" },
    });
    expect(bench.stripe.requests[0]).toMatchObject({
      method: "GET",
      path: "/v1/payment_intents/pi_1?expand[0]=latest_charge.balance_transaction",
      body: "",
    });
  });

  it("calls it missing only where Stripe says so", async () => {
    bench.stripe.script(json(404, error("resource_missing")), json(404, error()));
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({
      type: "missing",
      evidence: { httpStatus: 404 },
    });
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({ type: "unanswered", reason: "refused" });
  });

  it.each(REFUSALS)("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({ type: "unanswered", reason });
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("is not answered by another object", async () => {
    bench.stripe.script(json(200, intent({ id: "pi_2" })));
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({
      type: "unanswered",
      reason: "unreadable",
    });
  });

  it("passes on for how long to wait", async () => {
    bench.stripe.script(json(429, error("rate_limit"), { "retry-after": "7" }));
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({ retryAfterMs: 7_000 });
  });
});

describe("the question by our own reference", () => {
  it("lists the whole window, and no less", async () => {
    bench.stripe.script(page([]));
    expect(await find()).toMatchObject({ type: "absent", evidence: { httpStatus: 200 } });
    const url = new URL(bench.stripe.requests[0]?.path ?? "", "http://stripe.test");
    expect(url.pathname).toBe("/v1/payment_intents");
    expect(Object.fromEntries(url.searchParams)).toEqual({
      "created[gte]": String(Math.floor(FROM.getTime() / 1000)),
      "created[lte]": String(Math.ceil(TO.getTime() / 1000)),
      limit: "100",
    });
  });

  it("finds the attempt's object among others, also on the last page", async () => {
    bench.stripe.script(
      page([foreign("pi_9"), foreign("pi_8")], true),
      page([intent({ id: "pi_7", metadata: null }), foreign("pi_6")], true),
      page([foreign("pi_5"), intent({ id: "pi_4" })]),
    );
    expect(await find()).toMatchObject({ type: "found", charge: { id: "pi_4", attemptId: ATTEMPT_ID } });
    const cursors = bench.stripe.requests.map(({ path }) =>
      new URLSearchParams(path.split("?")[1]).get("starting_after"),
    );
    expect(cursors).toEqual([null, "pi_8", "pi_6"]);
  });

  it("says absent only after the last page", async () => {
    bench.stripe.script(page([foreign("pi_9")], true), json(500, { error: { type: "api_error" } }));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "server_error" });
    bench.stripe.script(page([foreign("pi_9")], true), page([foreign("pi_8")]));
    expect(await find()).toMatchObject({ type: "absent" });
  });

  it("reads on after a match: of two objects it takes the one in which money moved, and says so in the log", async () => {
    bench.stripe.script(
      page([intent({ id: "pi_new" }), foreign("pi_8")], true),
      page([intent({ id: "pi_old", status: "succeeded", amount_received: 4200 })]),
    );
    expect(await find()).toMatchObject({ type: "found", charge: { id: "pi_old", status: "succeeded" } });
    expect(bench.logged()).toContain("more than one object at Stripe for one attempt");
  });

  it.each([
    ["succeeded", "requires_capture"],
    ["requires_capture", "processing"],
    ["processing", "requires_action"],
    ["requires_action", "something_new"],
    ["something_new", "requires_confirmation"],
    ["requires_confirmation", "canceled"],
  ])("prefers %s to %s, in either order", async (preferred, other) => {
    const objects = [intent({ id: "pi_a", status: preferred }), intent({ id: "pi_b", status: other })];
    for (const data of [objects, [...objects].reverse()]) {
      bench.stripe.script(page(data));
      expect(await find()).toMatchObject({ charge: { id: "pi_a" } });
    }
  });

  it.each(REFUSALS)("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await find()).toMatchObject({ type: "unanswered", reason });
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it.each([
    ["a 404, which no list is", json(404, error("resource_missing")), "refused"],
    ["a list without its end marker", json(200, { data: [] }), "unreadable"],
    ["a list that is none", json(200, { data: {}, has_more: false }), "unreadable"],
    ["more pages without a cursor", page([], true), "unreadable"],
    ["more pages after an entry without an id", page([{ object: "payment_intent" }], true), "unreadable"],
    ["an object of ours that cannot be read", page([intent({ status: null })]), "unreadable"],
  ])("is not answered by %s", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    expect(await find()).toMatchObject({ type: "unanswered", reason });
  });

  it("is not answered by a list without end, even where a match was seen", async () => {
    bench.stripe.script(endlessPages((id) => intent({ id }), "pi"));
    expect(await find()).toMatchObject({
      type: "unanswered",
      reason: "refused",
      evidence: { code: "too_many_pages" },
    });
    expect(bench.stripe.requests).toHaveLength(MOST_PAGES);
  });

  it("is not answered by a page that ends where it was to begin", async () => {
    bench.stripe.script(page([intent()], true));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "unreadable" });
    expect(bench.stripe.requests).toHaveLength(2);
  });

  it("ends at the provider's timeout, whatever number of pages it took", async () => {
    const slow = await startBench({ timeoutMs: 300 });
    const pages = endlessPages(foreign, "pi");
    const held: Reply = (response, socket, request) => {
      const timer = setTimeout(() => pages(response, socket, request), 40);
      response.once("close", () => clearTimeout(timer));
    };
    slow.stripe.script(held);
    const startedAt = performance.now();
    expect(await slow.provider.findCharge(REFERENCE)).toMatchObject({
      type: "unanswered",
      reason: "timeout",
    });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(slow.stripe.requests.length).toBeGreaterThan(1);
    await slow.close();
  });
});
