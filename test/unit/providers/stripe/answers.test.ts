import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ChargeCall, SendContext, SendOutcome } from "../../../../src/domain/provider.js";
import {
  type Bench,
  FIRST_SEND,
  intent,
  json,
  parametersOf,
  RE_SEND,
  startBench,
  text,
} from "./scripted-stripe.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.close());
beforeEach(() => {
  bench.stripe.requests.length = 0;
});

async function send(call: ChargeCall, context: SendContext): Promise<SendOutcome> {
  const { provider } = bench;
  switch (call) {
    case "create":
      return provider.createCharge(parametersOf(provider), context);
    case "confirm":
      return provider.confirmCharge("pi_1", parametersOf(provider), context);
    case "fence":
      return provider.cancelCharge("pi_1", context);
  }
}

interface Answered {
  readonly status: number;
  readonly error?: Record<string, unknown>;
  readonly headers?: Record<string, string>;
}

const REPLAYED = { "idempotent-replayed": "true" };
const invalid = (code?: string) => ({
  type: "invalid_request_error",
  message: "No.",
  ...(code ? { code } : {}),
});
const declined = (changes = {}) => ({
  type: "card_error",
  code: "card_declined",
  message: "Declined.",
  ...changes,
});
const mismatch = { type: "idempotency_error", message: "Keys can only be used with the same parameters." };
const unknown = (reason: string, keySpent = false) => ({ type: "unknown", reason, keySpent });

// Written from docs.stripe.com/error-low-level and the contract, apart from the table: what each answer comes to.
const FIRST_SENDS: [string, Answered, object, ChargeCall[]?][] = [
  ["a card error", { status: 402, error: declined() }, { type: "declined", replayed: false }],
  [
    "a replayed card error",
    { status: 402, error: declined(), headers: REPLAYED },
    { type: "declined", replayed: true },
  ],
  [
    "a decline that may be a duplicate",
    { status: 402, error: declined({ decline_code: "duplicate_transaction" }) },
    unknown("state_conflict"),
  ],
  [
    "a processing error",
    { status: 402, error: declined({ code: "processing_error" }) },
    unknown("state_conflict"),
  ],
  [
    "a timeout behind Stripe",
    { status: 402, error: declined({ code: "payment_method_provider_timeout" }) },
    unknown("state_conflict"),
  ],
  ["an invalid request", { status: 400, error: invalid("amount_too_small") }, { type: "rejected" }],
  ["an invalid request without a code", { status: 400, error: invalid() }, { type: "rejected" }],
  ["a replayed invalid request", { status: 400, error: invalid(), headers: REPLAYED }, { type: "rejected" }],
  [
    "an unexpected state",
    { status: 400, error: invalid("payment_intent_unexpected_state") },
    unknown("state_conflict"),
  ],
  [
    "a replayed unexpected state",
    { status: 400, error: invalid("payment_intent_unexpected_state"), headers: REPLAYED },
    unknown("state_conflict", true),
  ],
  [
    "an object captured already",
    { status: 400, error: invalid("charge_already_captured") },
    unknown("state_conflict"),
  ],
  ["other parameters under the key", { status: 400, error: mismatch }, unknown("key_mismatch", true)],
  ["a wrong key", { status: 401, error: invalid() }, { type: "not_performed", reason: "unauthorized" }],
  ["a missing permission", { status: 403, error: invalid() }, { type: "not_performed", reason: "forbidden" }],
  [
    "a missing customer",
    { status: 404, error: invalid("resource_missing") },
    { type: "rejected" },
    ["create"],
  ],
  [
    "a missing object",
    { status: 404, error: invalid("resource_missing") },
    unknown("object_missing"),
    ["confirm", "fence"],
  ],
  ["a key in use", { status: 409, error: invalid("idempotency_key_in_use") }, unknown("key_in_use")],
  [
    "a key in use, of the idempotency type",
    { status: 409, error: { ...mismatch, code: "idempotency_key_in_use" } },
    unknown("key_in_use"),
  ],
  ["any other conflict", { status: 409, error: invalid("resource_already_exists") }, unknown("key_in_use")],
  ["a failed dependency", { status: 424, error: { type: "api_error" } }, unknown("external_dependency")],
  ["a locked object", { status: 429, error: invalid("lock_timeout") }, unknown("object_locked")],
  [
    "a rate limit",
    { status: 429, error: invalid("rate_limit") },
    { type: "not_performed", reason: "rate_limited" },
  ],
  ["a server error", { status: 500, error: { type: "api_error" } }, unknown("server_error")],
  [
    "a stored server error",
    { status: 500, error: { type: "api_error" }, headers: REPLAYED },
    unknown("stored_error", true),
  ],
  ["an unavailable server", { status: 503, error: { type: "api_error" } }, unknown("server_error")],
  ["a status nobody foresaw", { status: 418, error: invalid() }, unknown("unreadable")],
];

const RE_SENDS: [string, Answered, object][] = [
  ["an invalid request", { status: 400, error: invalid() }, unknown("resend_refused")],
  [
    "an unexpected state",
    { status: 400, error: invalid("payment_intent_unexpected_state") },
    unknown("resend_refused"),
  ],
  ["a replayed invalid request", { status: 400, error: invalid(), headers: REPLAYED }, { type: "rejected" }],
  ["a wrong key", { status: 401, error: invalid() }, unknown("resend_refused")],
  ["a missing permission", { status: 403, error: invalid() }, unknown("resend_refused")],
  ["a rate limit", { status: 429, error: invalid("rate_limit") }, unknown("resend_refused")],
  ["a locked object", { status: 429, error: invalid("lock_timeout") }, unknown("resend_refused")],
  ["other parameters under the key", { status: 400, error: mismatch }, unknown("key_mismatch", true)],
  ["a key in use", { status: 409, error: invalid("idempotency_key_in_use") }, unknown("key_in_use")],
  ["a card error", { status: 402, error: declined() }, { type: "declined", replayed: false }],
  [
    "a stored server error",
    { status: 500, error: { type: "api_error" }, headers: REPLAYED },
    unknown("stored_error", true),
  ],
];

const ALL_CALLS: ChargeCall[] = ["create", "confirm", "fence"];

describe("the answer to a first send", () => {
  const cases = FIRST_SENDS.flatMap(([what, answered, expected, calls = ALL_CALLS]) =>
    calls.map((call) => [what, call, answered, expected] as const),
  );

  it.each(cases)(
    "%s, on %s, is what the table says, after one request",
    async (_what, call, answered, expected) => {
      bench.stripe.script(json(answered.status, { error: answered.error }, answered.headers));
      expect(await send(call, FIRST_SEND)).toMatchObject({
        ...expected,
        evidence: { httpStatus: answered.status },
      });
      expect(bench.stripe.requests).toHaveLength(1);
    },
  );

  it.each(ALL_CALLS)("2xx, on %s, is the object", async (call) => {
    bench.stripe.script(json(200, intent({ status: "succeeded", amount_received: 4200 }), REPLAYED));
    expect(await send(call, FIRST_SEND)).toMatchObject({
      type: "object",
      replayed: true,
      charge: { id: "pi_1", status: "succeeded", amountCaptured: 4200 },
      evidence: { httpStatus: 200, code: null, requestId: "req_scripted" },
    });
  });

  it.each([
    ["half a body of JSON", text(200, JSON.stringify(intent()).slice(0, 60)), "unreadable"],
    ["an empty 200", text(200, ""), "unreadable"],
    ["a page of HTML under 200", text(200, "<html>ok</html>"), "unreadable"],
    ["JSON that is no object", json(200, [intent()]), "unreadable"],
    ["JSON null", text(200, "null"), "unreadable"],
    ["an object that is no PaymentIntent", json(200, { id: "pi_1", object: "payment_intent" }), "unreadable"],
    ["an error under 200", json(200, { error: { type: "api_error" } }), "unreadable"],
    ["a redirect", json(302, {}, { location: "http://127.0.0.1:1/" }), "unreadable"],
    ["a 404 that is not Stripe's", text(404, "<html>no such page</html>"), "unreadable"],
    ["a 400 without an error object", json(400, { message: "bad gateway configuration" }), "unreadable"],
    ["a 402 in another form", json(402, { error: "payment_required" }), "unreadable"],
    ["a page of HTML under 502", text(502, "<html>Bad Gateway</html>"), "server_error"],
    ["a 500 without an error object", json(500, intent({ status: "succeeded" })), "server_error"],
    ["an empty 503", text(503, ""), "server_error"],
  ])("%s is unknown, and its status is kept", async (_what, reply, reason) => {
    bench.stripe.script(reply);
    const outcome = await send("confirm", FIRST_SEND);
    expect(outcome).toMatchObject({ type: "unknown", reason, keySpent: false });
    expect(outcome.evidence.httpStatus).toBeGreaterThan(199);
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("that shows another object than the one asked for is unknown", async () => {
    bench.stripe.script(json(200, intent({ id: "pi_2", status: "succeeded" })));
    for (const call of ["confirm", "fence"] as const) {
      expect(await send(call, FIRST_SEND)).toMatchObject({ type: "unknown", reason: "unreadable" });
    }
  });

  it.each([
    ["2", 2_000],
    ["0", 0],
    ["1.5", 2_000],
    ["0.001", 1_000],
    ["86400.5", 3_600_000],
    ["86400", 3_600_000],
    ["soon", null],
    [new Date(Date.now() - 60_000).toUTCString(), 0],
  ])("with Retry-After: %s asks for a wait of %s ms", async (header, retryAfterMs) => {
    bench.stripe.script(json(429, { error: invalid("rate_limit") }, { "retry-after": header }));
    expect(await send("create", FIRST_SEND)).toMatchObject({ reason: "rate_limited", retryAfterMs });
  });

  it("tells a decline's reasons in Stripe's words, redacted and short", async () => {
    const message = `Card 4242424242424242 was declined. ${"x".repeat(900)}`;
    const error = declined({ decline_code: "lost_card", advice_code: "do_not_try_again", message });
    bench.stripe.script(json(402, { error }));
    const outcome = await send("confirm", FIRST_SEND);
    expect(outcome).toMatchObject({
      failure: {
        code: "card_declined",
        decline_code: "lost_card",
        advice_code: "do_not_try_again",
        retry: "new_key",
      },
    });
    const shown = JSON.stringify(outcome);
    expect(shown).toContain("Card [digits redacted] was declined.");
    expect(shown.length).toBeLessThan(900);
  });

  it("names the type where a refusal has no code, and no decline code where there is none", async () => {
    bench.stripe.script(json(400, { error: invalid() }), json(402, { error: declined() }));
    expect(await send("create", FIRST_SEND)).toMatchObject({
      failure: { code: "invalid_request_error", decline_code: null },
    });
    expect(await send("confirm", FIRST_SEND)).toMatchObject({
      failure: { code: "card_declined", decline_code: null },
    });
  });
});

describe("the answer to a re-send", () => {
  const cases = RE_SENDS.flatMap(([what, answered, expected]) =>
    ALL_CALLS.map((call) => [what, call, answered, expected] as const),
  );

  it.each(cases)("%s, on %s, is what the table says", async (_what, call, answered, expected) => {
    bench.stripe.script(json(answered.status, { error: answered.error }, answered.headers));
    expect(await send(call, RE_SEND)).toMatchObject(expected);
  });

  it("404 on a create says nothing of the earlier send", async () => {
    bench.stripe.script(json(404, { error: invalid("resource_missing") }));
    expect(await send("create", RE_SEND)).toMatchObject(unknown("resend_refused"));
  });

  it("404 on a confirm or a cancel is an object that we know to exist", async () => {
    bench.stripe.script(json(404, { error: invalid("resource_missing") }));
    expect(await send("confirm", RE_SEND)).toMatchObject(unknown("object_missing"));
    expect(await send("fence", RE_SEND)).toMatchObject(unknown("object_missing"));
  });
});

describe("the log", () => {
  it("names the provider key, as an error, when the parameters have drifted", async () => {
    bench.stripe.script(json(400, { error: mismatch }));
    await send("confirm", RE_SEND);
    const line = JSON.parse(bench.logged().trim().split("\n").at(-1) ?? "{}") as Record<string, unknown>;
    expect(line).toMatchObject({ level: "error", call: "confirm", provider_key: RE_SEND.idempotencyKey });
  });

  it("holds no key, body or client secret, whatever Stripe answers", async () => {
    const marked = intent({ status: "requires_action", client_secret: "pi_1_secret_marked" });
    bench.stripe.script(
      json(200, marked),
      json(401, { error: { ...invalid(), message: "Invalid API Key" } }),
      json(400, { error: mismatch }),
    );
    await send("create", FIRST_SEND);
    await send("create", FIRST_SEND);
    await send("create", FIRST_SEND);
    expect(bench.logged()).not.toMatch(/sk_test_|secret_marked|pm_card_visa|4200/);
  });
});
