import type Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, created, type ErrorBody, send, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeAll(async () => {
  sandbox = await startSandbox({ searchLagMs: 60_000 });
  stripe = stripeFor(sandbox);
});
afterAll(() => sandbox.stop());

const CARD: Stripe.PaymentIntentCreateParams = {
  amount: 4200,
  currency: "USD",
  payment_method: "pm_card_visa",
  payment_method_types: ["card"],
};

describe("creating and confirming", () => {
  it("makes an unconfirmed object that has moved no money", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, metadata: { order: "17" }, description: "A book" });
    expect(made).toMatchObject({
      object: "payment_intent",
      status: "requires_confirmation",
      amount: 4200,
      currency: "usd",
      amount_received: 0,
      latest_charge: null,
      livemode: false,
      capture_method: "automatic_async",
      description: "A book",
      metadata: { order: "17" },
    });
    expect(made.id).toMatch(/^pi_[A-Za-z0-9]{24}$/);
    expect(made.client_secret).toMatch(new RegExp(`^${made.id}_secret_`));
    expect(made.payment_method).toMatch(/^pm_3/);
  });

  it("pays on confirm, once, with a charge that can be expanded", async () => {
    const made = await stripe.paymentIntents.create(CARD);
    const paid = await stripe.paymentIntents.confirm(made.id, { expand: ["latest_charge", "payment_method"] });
    expect(paid).toMatchObject({ status: "succeeded", amount_received: 4200, amount_capturable: 0 });
    expect(paid.latest_charge).toMatchObject({ object: "charge", paid: true, captured: true, payment_intent: made.id });
    expect(paid.payment_method).toMatchObject({ object: "payment_method", type: "card" });
    const error = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(error).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect(error.payment_intent).toMatchObject({ id: made.id, status: "succeeded" });
    expect((await sandbox.control.getPaymentIntent(made.id)).successful_charges).toBe(1);
  });

  it("does both in one call where confirm=true", async () => {
    expect((await stripe.paymentIntents.create({ ...CARD, confirm: true })).status).toBe("succeeded");
  });

  it("waits for a payment method where none is given, and refuses a confirm without one", async () => {
    const made = await stripe.paymentIntents.create({ amount: 500, currency: "eur", payment_method_types: ["card"] });
    expect(made.status).toBe("requires_payment_method");
    const error = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(error).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect((await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" })).status).toBe("succeeded");
  });

  it("leads a declined object back to requires_payment_method, with its error and without a second try", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, payment_method: "pm_card_visa_chargeDeclined" });
    const error = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(error).toMatchObject({ type: "StripeCardError", statusCode: 402, code: "card_declined" });
    const declined = await stripe.paymentIntents.retrieve(made.id);
    expect(declined).toMatchObject({
      status: "requires_payment_method",
      payment_method: null,
      amount_received: 0,
      last_payment_error: { type: "card_error", code: "card_declined", decline_code: "generic_decline" },
    });
    expect(declined.last_payment_error?.charge).toBe(declined.latest_charge);
    const second = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(second).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect((await sandbox.control.getPaymentIntent(made.id)).charges).toHaveLength(1);
  });

  it("asks for a return URL where redirects are possible", async () => {
    const error = await thrown(
      stripe.paymentIntents.create({ amount: 4200, currency: "usd", payment_method: "pm_card_visa", confirm: true }),
    );
    expect(error).toMatchObject({ statusCode: 400, param: "return_url" });
    const never = { enabled: true, allow_redirects: "never" } as const;
    const { payment_method_types: _, ...rest } = CARD;
    const paid = await stripe.paymentIntents.create({ ...rest, automatic_payment_methods: never, confirm: true });
    expect(paid.status).toBe("succeeded");
  });
});

describe("canceling, capturing, updating", () => {
  it("cancels what is not paid, and then confirms it no more", async () => {
    const made = await created(sandbox);
    const canceled = await stripe.paymentIntents.cancel(made.id, { cancellation_reason: "abandoned" });
    expect(canceled).toMatchObject({ status: "canceled", cancellation_reason: "abandoned" });
    expect(canceled.canceled_at).toBeGreaterThanOrEqual(canceled.created);
    const confirmed = await thrown(stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" }));
    expect(confirmed).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect(await thrown(stripe.paymentIntents.cancel(made.id))).toMatchObject({ code: "payment_intent_unexpected_state" });
    expect((await sandbox.control.getPaymentIntent(made.id)).charges).toHaveLength(0);
  });

  it("refuses to cancel what is paid, and shows that it is paid", async () => {
    const paid = await stripe.paymentIntents.create({ ...CARD, confirm: true });
    const error = await thrown(stripe.paymentIntents.cancel(paid.id));
    expect(error).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect(error.payment_intent?.status).toBe("succeeded");
  });

  it("holds the amount of a manual capture until part of it is captured, once", async () => {
    const held = await stripe.paymentIntents.create({ ...CARD, capture_method: "manual", confirm: true });
    expect(held).toMatchObject({ status: "requires_capture", amount_capturable: 4200, amount_received: 0 });
    expect(await thrown(stripe.paymentIntents.capture(held.id, { amount_to_capture: 4201 }))).toMatchObject({
      statusCode: 400,
      code: "amount_too_large",
    });
    const captured = await stripe.paymentIntents.capture(held.id, { amount_to_capture: 4000 });
    expect(captured).toMatchObject({ status: "succeeded", amount_received: 4000, amount_capturable: 0 });
    expect(await thrown(stripe.paymentIntents.capture(held.id))).toMatchObject({ code: "payment_intent_unexpected_state" });
  });

  it("releases a hold by cancel", async () => {
    const held = await stripe.paymentIntents.create({ ...CARD, capture_method: "manual", confirm: true });
    expect(await stripe.paymentIntents.cancel(held.id)).toMatchObject({ status: "canceled", amount_capturable: 0 });
    const charge = await stripe.charges.retrieve(held.latest_charge as string);
    expect(charge).toMatchObject({ captured: false, refunded: true });
  });

  it("updates metadata key by key and the amount only before payment", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, metadata: { a: "1", b: "2" } });
    const updated = await stripe.paymentIntents.update(made.id, { amount: 5000, metadata: { a: "", c: "3" } });
    expect(updated).toMatchObject({ amount: 5000 });
    expect(updated.metadata).toEqual({ b: "2", c: "3" });
    await stripe.paymentIntents.confirm(made.id);
    const late = await thrown(stripe.paymentIntents.update(made.id, { amount: 9000 }));
    expect(late).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect((await stripe.paymentIntents.update(made.id, { description: "late" })).description).toBe("late");
  });
});

describe("refusals have Stripe's shape", () => {
  const post = (body: string) => send(sandbox, { path: "/v1/payment_intents", body });

  it.each([
    ["a missing amount", "currency=usd", "parameter_missing", "amount"],
    ["an unknown parameter", "amount=4200&currency=usd&merchant_order_id=1", "parameter_unknown", "merchant_order_id"],
    ["a fraction", "amount=10.5&currency=usd", "parameter_invalid_integer", "amount"],
    ["an unknown payment method", "amount=4200&currency=usd&payment_method=pm_nobody", "resource_missing", "payment_method"],
    ["another account's customer shape", "amount=4200&currency=usd&customer=nobody", "resource_missing", "customer"],
  ])("%s is a 400", async (_, body, code, param) => {
    const answer = await post(body);
    const { error } = bodyOf<ErrorBody>(answer);
    expect(answer.status).toBe(400);
    expect(error).toMatchObject({ type: "invalid_request_error", code, param });
    expect(error.doc_url).toBe(`https://stripe.com/docs/error-codes/${code.replaceAll("_", "-")}`);
    expect(error.request_log_url).toContain(answer.headers["request-id"] as string);
  });

  it("metadata beyond Stripe's limits is a 400", async () => {
    const start = "amount=4200&currency=usd";
    const many = Array.from({ length: 51 }, (_, index) => `&metadata[k${index}]=v`).join("");
    expect((await post(start + many)).status).toBe(400);
    expect((await post(`${start}&metadata[${"k".repeat(41)}]=v`)).status).toBe(400);
    expect((await post(`${start}&metadata[k]=${"v".repeat(501)}`)).status).toBe(400);
    expect((await post(`${start}&metadata[${"k".repeat(40)}]=${"v".repeat(500)}`)).status).toBe(200);
  });

  it("an unknown id is a 404, an unknown path too", async () => {
    const error = await thrown(stripe.paymentIntents.retrieve("pi_nobody"));
    expect(error).toMatchObject({ statusCode: 404, code: "resource_missing", param: "intent" });
    expect((await send(sandbox, { method: "GET", path: "/v1/nothing" })).status).toBe(404);
  });

  it("an answer carries a request id and echoes version and key", async () => {
    const headers = { "stripe-version": "2024-06-20" };
    const answer = await send(sandbox, { path: "/v1/payment_intents", body: "amount=500&currency=usd", key: "echo", headers });
    expect(answer.headers["request-id"]).toMatch(/^req_[A-Za-z0-9]{14}$/);
    expect(answer.headers["stripe-version"]).toBe("2024-06-20");
    expect(answer.headers["idempotency-key"]).toBe("echo");
  });
});

describe("the list", () => {
  it("is complete at once, newest first, in pages that lose and repeat nothing", async () => {
    const key = "sk_test_lists";
    const own = stripeFor(sandbox, key);
    const ids: string[] = [];
    for (let at = 0; at < 7; at += 1) {
      ids.unshift((await own.paymentIntents.create({ ...CARD, customer: at === 3 ? "cus_three" : "cus_other" })).id);
    }
    const first = await own.paymentIntents.list({ limit: 3 });
    expect(first).toMatchObject({ object: "list", has_more: true, url: "/v1/payment_intents" });
    expect(first.data.map((each) => each.id)).toEqual(ids.slice(0, 3));
    const second = await own.paymentIntents.list({ limit: 3, starting_after: ids[2]! });
    expect(second.data.map((each) => each.id)).toEqual(ids.slice(3, 6));
    const back = await own.paymentIntents.list({ limit: 2, ending_before: ids[5]! });
    expect(back.data.map((each) => each.id)).toEqual(ids.slice(3, 5));
    expect(back.has_more).toBe(true);
    const all: string[] = [];
    for await (const each of own.paymentIntents.list({ limit: 2 })) all.push(each.id);
    expect(all).toEqual(ids);
    expect((await own.paymentIntents.list({ customer: "cus_three" })).data.map((each) => each.id)).toEqual([ids[3]]);
  });

  it("filters by created with both ends, also after the clock was set back", async () => {
    const own = stripeFor(sandbox, "sk_test_windows");
    const at = (seconds: number) => sandbox.control.setClock(new Date(seconds * 1000));
    const made: Stripe.PaymentIntent[] = [];
    for (const seconds of [2_000_000_100, 2_000_000_300, 2_000_000_200]) {
      await at(seconds);
      made.push(await own.paymentIntents.create(CARD));
    }
    const idsOf = async (created: Stripe.RangeQueryParam) =>
      (await own.paymentIntents.list({ created })).data.map((each) => each.id);
    const [first, third, second] = made as [Stripe.PaymentIntent, Stripe.PaymentIntent, Stripe.PaymentIntent];
    expect(await idsOf({ gte: 0 })).toEqual([third.id, second.id, first.id]);
    expect(await idsOf({ gte: second.created })).toEqual([third.id, second.id]);
    expect(await idsOf({ gt: second.created })).toEqual([third.id]);
    expect(await idsOf({ lt: second.created })).toEqual([first.id]);
    expect(await idsOf({ gte: first.created + 1, lte: third.created - 1 })).toEqual([second.id]);
    await sandbox.control.setClock(new Date());
  });
});

describe("search", () => {
  it("shows an object only after the lag, and then finds it by metadata", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, metadata: { attempt: 'a"1' } });
    const query = String.raw`metadata["attempt"]:"a\"1"`;
    expect((await stripe.paymentIntents.search({ query })).data).toEqual([]);
    await sandbox.control.advanceClock(61_000);
    const found = await stripe.paymentIntents.search({ query });
    expect(found.data.map((each) => each.id)).toEqual([made.id]);
    const both = await stripe.paymentIntents.search({ query: `${query} AND status:"canceled"` });
    expect(both.data).toEqual([]);
    const either = await stripe.paymentIntents.search({ query: `${query} OR status:"canceled"` });
    expect(either.data.map((each) => each.id)).toContain(made.id);
    expect(await thrown(stripe.paymentIntents.search({ query: "metadata" }))).toMatchObject({ statusCode: 400 });
  });
});
