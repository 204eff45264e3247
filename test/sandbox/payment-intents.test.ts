import type Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, created, type ErrorBody, send, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeAll(async () => {
  sandbox = await startSandbox();
  stripe = stripeFor(sandbox);
});
afterAll(() => sandbox.stop());

const CARD: Stripe.PaymentIntentCreateParams = {
  amount: 4200,
  currency: "USD",
  payment_method: "pm_card_visa",
  allowed_payment_method_types: ["card"],
};

describe("creating and confirming", () => {
  it("makes an unconfirmed object that has moved no money", async () => {
    const made = await stripe.paymentIntents.create({
      ...CARD,
      metadata: { order: "17" },
      description: "A book",
    });
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
    const paid = await stripe.paymentIntents.confirm(made.id, {
      expand: ["latest_charge", "payment_method"],
    });
    expect(paid).toMatchObject({ status: "succeeded", amount_received: 4200, amount_capturable: 0 });
    expect(paid.latest_charge).toMatchObject({
      object: "charge",
      paid: true,
      captured: true,
      payment_intent: made.id,
    });
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
    const made = await stripe.paymentIntents.create({
      amount: 500,
      currency: "eur",
      allowed_payment_method_types: ["card"],
    });
    expect(made.status).toBe("requires_payment_method");
    const error = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(error).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect((await stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" })).status).toBe(
      "succeeded",
    );
  });

  it("leads a declined object back to requires_payment_method, with its error and without a second try", async () => {
    const made = await stripe.paymentIntents.create({
      ...CARD,
      payment_method: "pm_card_visa_chargeDeclined",
    });
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
    const open = { amount: 4200, currency: "usd", payment_method: "pm_card_visa", confirm: true };
    expect(await thrown(stripe.paymentIntents.create(open))).toMatchObject({
      statusCode: 400,
      param: "return_url",
    });
    const never = { enabled: true, allow_redirects: "never" } as const;
    const paid = await stripe.paymentIntents.create({ ...open, automatic_payment_methods: never });
    expect(paid.status).toBe("succeeded");
  });

  it("refuses payment_method_types since the version that made them read-only, and not before", async () => {
    const body = "amount=4200&currency=usd&payment_method_types[]=card";
    const now = await send(sandbox, { path: "/v1/payment_intents", body });
    expect(now.status).toBe(400);
    expect(bodyOf<ErrorBody>(now).error.code).toBe("payment_method_types_no_longer_supported");
    const headers = { "stripe-version": "2026-08-26.dahlia" };
    expect((await send(sandbox, { path: "/v1/payment_intents", body, headers })).status).toBe(200);
  });

  it.each([
    [
      "allowed types beside automatic payment methods",
      "allowed_payment_method_types[]=card&automatic_payment_methods[enabled]=true",
    ],
    ["a return URL without confirm", "return_url=https://shop.example/back"],
    ["a return URL that is none", "confirm=true&payment_method=pm_card_visa&return_url=back"],
    ["a statement descriptor for a card", "statement_descriptor=SHOP"],
  ])("refuses %s", async (_, more) => {
    const answer = await send(sandbox, {
      path: "/v1/payment_intents",
      body: `amount=4200&currency=usd&${more}`,
    });
    expect(answer.status).toBe(400);
    expect(bodyOf<ErrorBody>(answer).error.type).toBe("invalid_request_error");
  });
});

describe("canceling, capturing, updating", () => {
  it("cancels what is not paid, and then confirms it no more", async () => {
    const made = await created(sandbox);
    const canceled = await stripe.paymentIntents.cancel(made.id, { cancellation_reason: "abandoned" });
    expect(canceled).toMatchObject({ status: "canceled", cancellation_reason: "abandoned" });
    expect(canceled.canceled_at).toBeGreaterThanOrEqual(canceled.created);
    const confirmed = await thrown(
      stripe.paymentIntents.confirm(made.id, { payment_method: "pm_card_visa" }),
    );
    expect(confirmed).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
    expect(await thrown(stripe.paymentIntents.cancel(made.id))).toMatchObject({
      code: "payment_intent_unexpected_state",
    });
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
    expect(await thrown(stripe.paymentIntents.capture(held.id))).toMatchObject({
      code: "payment_intent_unexpected_state",
    });
  });

  it("releases a hold by cancel", async () => {
    const held = await stripe.paymentIntents.create({ ...CARD, capture_method: "manual", confirm: true });
    expect(await stripe.paymentIntents.cancel(held.id)).toMatchObject({
      status: "canceled",
      amount_capturable: 0,
    });
    const charge = await stripe.charges.retrieve(held.latest_charge as string);
    expect(charge).toMatchObject({ captured: false, refunded: true });
    const { refunds } = await sandbox.control.getPaymentIntent(held.id);
    expect(refunds).toMatchObject([{ amount: 4200, status: "succeeded", balance_transaction: null }]);
    const [event] = await sandbox.control.listEvents({ object_id: charge.id });
    expect(event).toMatchObject({ type: "charge.refunded", data: { object: { amount_refunded: 4200 } } });
  });

  it("updates metadata key by key and the amount only before payment", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, metadata: { a: "1", b: "2" } });
    const updated = await stripe.paymentIntents.update(made.id, {
      amount: 5000,
      metadata: { a: "", c: "3" },
    });
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
    [
      "an unknown parameter",
      "amount=4200&currency=usd&merchant_order_id=1",
      "parameter_unknown",
      "merchant_order_id",
    ],
    ["a fraction", "amount=10.5&currency=usd", "parameter_invalid_integer", "amount"],
    [
      "an unknown payment method",
      "amount=4200&currency=usd&payment_method=pm_nobody",
      "resource_missing",
      "payment_method",
    ],
    [
      "another account's customer shape",
      "amount=4200&currency=usd&customer=nobody",
      "resource_missing",
      "customer",
    ],
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
    const answer = await send(sandbox, {
      path: "/v1/payment_intents",
      body: "amount=500&currency=usd",
      key: "echo",
      headers,
    });
    expect(answer.headers["request-id"]).toMatch(/^req_[A-Za-z0-9]{14}$/);
    expect(answer.headers["stripe-version"]).toBe("2024-06-20");
    expect(answer.headers["idempotency-key"]).toBe("echo");
  });
});
