import Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { type Received, Receiver } from "./receiver.js";
import { created, paid, stripeFor, thrown } from "./support.js";

const SECRET = "whsec_one";

let sandbox: Sandbox;
let receiver: Receiver;
let url: string;
let stripe: Stripe;

beforeEach(async () => {
  receiver = new Receiver();
  url = await receiver.start();
  sandbox = await startSandbox({ webhookRetryDelaysMs: [5, 5] });
  stripe = stripeFor(sandbox);
});
afterEach(async () => {
  await sandbox.stop();
  receiver.stop();
});

const verified = ({ body, signature }: Received, secret = SECRET): Stripe.Event =>
  stripe.webhooks.constructEvent(body, signature, secret);

const typesOf = (received: readonly Received[]): string[] => received.map((each) => verified(each).type);

describe("events", () => {
  it("are signed so that the SDK accepts them, and tell of the request that made them", async () => {
    await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    const made = await stripe.paymentIntents.create(
      { amount: 4200, currency: "usd" },
      { idempotencyKey: "made" },
    );
    const [received] = await receiver.until(1);
    const event = verified(received!);
    expect(event).toMatchObject({
      object: "event",
      type: "payment_intent.created",
      api_version: Stripe.API_VERSION,
      livemode: false,
      pending_webhooks: 1,
      created: made.created,
      request: { id: made.lastResponse.requestId, idempotency_key: "made" },
    });
    expect((event.data.object as Stripe.PaymentIntent).id).toBe(made.id);
    expect(() => verified({ ...received!, body: received!.body.replace("4200", "4201") })).toThrow();
    expect(() => verified(received!, "whsec_other")).toThrow();
  });

  it("come one for each transition", async () => {
    const eventsOf = async (id: string) =>
      (await sandbox.control.listEvents({ object_id: id })).map((each) => each.type);
    const paid = await created(sandbox);
    await stripe.paymentIntents.confirm(paid.id);
    expect(await eventsOf(paid.id)).toEqual(["payment_intent.created", "payment_intent.succeeded"]);
    const declined = await created(sandbox, "pm_card_visa_chargeDeclined");
    await thrown(stripe.paymentIntents.confirm(declined.id));
    await stripe.paymentIntents.cancel(declined.id);
    expect((await eventsOf(declined.id)).slice(1)).toEqual([
      "payment_intent.payment_failed",
      "payment_intent.canceled",
    ]);
    const held = await created(sandbox, "pm_card_authenticationRequired", "&capture_method=manual");
    await stripe.paymentIntents.confirm(held.id);
    await sandbox.control.authenticate(held.id, "complete");
    await stripe.paymentIntents.capture(held.id);
    expect((await eventsOf(held.id)).slice(1)).toEqual([
      "payment_intent.requires_action",
      "payment_intent.amount_capturable_updated",
      "payment_intent.succeeded",
    ]);
  });

  it("can be listed and fetched through the API, newest first", async () => {
    const paid = await created(sandbox);
    await stripe.paymentIntents.confirm(paid.id);
    const all = await stripe.events.list({ limit: 1 });
    expect(all).toMatchObject({ has_more: true });
    expect(all.data.map((each) => each.type)).toEqual(["payment_intent.succeeded"]);
    const rest = await stripe.events.list({ starting_after: all.data[0]!.id });
    expect(rest.data.map((each) => each.type)).toEqual(["payment_intent.created"]);
    const typed = await stripe.events.list({ types: ["payment_intent.created"] });
    expect(typed.data.map((each) => each.id)).toEqual(rest.data.map((each) => each.id));
    expect((await stripe.events.retrieve(all.data[0]!.id)).type).toBe("payment_intent.succeeded");
    expect((await stripeFor(sandbox, "sk_test_stranger").events.list()).data).toEqual([]);
  });

  it("are not made by a replay or by a refusal", async () => {
    const made = await created(sandbox);
    await stripe.paymentIntents.confirm(made.id, {}, { idempotencyKey: "c" });
    await stripe.paymentIntents.confirm(made.id, {}, { idempotencyKey: "c" });
    await thrown(stripe.paymentIntents.confirm(made.id, {}, { idempotencyKey: "d" }));
    expect(await sandbox.control.listEvents({ type: "payment_intent.succeeded" })).toHaveLength(1);
  });
});

describe("deliveries", () => {
  it("carry one signature for each secret while one is rolled", async () => {
    await sandbox.control.addWebhookEndpoint({ url, secrets: ["whsec_old", SECRET] });
    await created(sandbox);
    const [received] = await receiver.until(1);
    expect(verified(received!, "whsec_old").id).toBe(verified(received!).id);
  });

  it("are tried again until they succeed, with the same bytes, and then no more", async () => {
    receiver.answers = [500, 404];
    await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    await created(sandbox);
    const received = await receiver.until(3);
    expect(new Set(received.map((each) => each.body)).size).toBe(1);
    await sandbox.control.webhooksIdle();
    const deliveries = await sandbox.control.listDeliveries();
    expect(deliveries.map((each) => [each.attempt, each.status])).toEqual([
      [1, 500],
      [2, 404],
      [3, 200],
    ]);
  });

  it("end after the last retry, and an unreachable receiver harms nobody", async () => {
    receiver.stop();
    await sandbox.control.addWebhookEndpoint({ url: "http://127.0.0.1:1/", secrets: [SECRET] });
    const made = await created(sandbox);
    expect(made.status).toBe("requires_confirmation");
  });

  it("are filtered by account and type", async () => {
    const account = (await stripe.accounts.retrieveCurrent()).id;
    const endpoint = { url, secrets: [SECRET], account, enabled_events: ["payment_intent.succeeded"] };
    await sandbox.control.addWebhookEndpoint(endpoint);
    await stripeFor(sandbox, "sk_test_stranger").paymentIntents.create({
      amount: 4200,
      currency: "usd",
      payment_method: "pm_card_visa",
      allowed_payment_method_types: ["card"],
      confirm: true,
    });
    const made = await created(sandbox);
    await stripe.paymentIntents.confirm(made.id);
    const received = await receiver.until(1);
    await sandbox.control.webhooksIdle();
    expect(typesOf(received)).toEqual(["payment_intent.succeeded"]);
  });

  it("can be held and released in any order", async () => {
    const endpoint = await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET], mode: "held" });
    const made = await created(sandbox);
    await stripe.paymentIntents.confirm(made.id);
    await created(sandbox);
    expect(await sandbox.control.heldEvents(endpoint.id)).toHaveLength(3);
    expect(receiver.received).toEqual([]);
    await sandbox.control.releaseEvents(endpoint.id, ["payment_intent.succeeded"]);
    await sandbox.control.releaseEvents(endpoint.id, "reverse");
    expect(typesOf(receiver.received)).toEqual([
      "payment_intent.succeeded",
      "payment_intent.created",
      "payment_intent.created",
    ]);
    const last = verified(receiver.received[2]!).data.object as Stripe.PaymentIntent;
    expect(last.id).toBe(made.id);
    expect(await sandbox.control.heldEvents(endpoint.id)).toEqual([]);
  });

  it("can come in copies, and again later with a time and signature of one's own", async () => {
    const endpoint = await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET], copies: 2 });
    await created(sandbox);
    const twice = await receiver.until(2);
    expect(twice[0]?.body).toBe(twice[1]?.body);
    await sandbox.control.webhooksIdle();
    const { id } = verified(twice[0]!);
    await sandbox.control.redeliverEvent(id);
    expect(verified(receiver.received[2]!).id).toBe(id);
    await sandbox.control.redeliverEvent(id, { timestamp_offset_seconds: -600 });
    expect(() => verified(receiver.received[3]!)).toThrow("tolerance");
    await sandbox.control.redeliverEvent(id, { endpoint_id: endpoint.id, signature: "t=abc" });
    expect(receiver.received[4]?.signature).toBe("t=abc");
  });

  it("can carry any bytes, signed as they are", async () => {
    const endpoint = await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    const odd =
      '{ "id":"evt_odd",\n "object":"event", "type":"payment_intent.succeeded", "emoji":"\u{1F600}" }\n';
    await sandbox.control.sendWebhook(endpoint.id, odd);
    expect(receiver.received[0]?.body).toBe(odd);
    expect(verified(receiver.received[0]!).id).toBe("evt_odd");
  });

  it("tell of a fact that never was, where a test wants one", async () => {
    await sandbox.control.addWebhookEndpoint({
      url,
      secrets: [SECRET],
      enabled_events: ["payment_intent.succeeded"],
    });
    const made = await created(sandbox);
    const changes = { status: "succeeded", amount_received: 900 } as const;
    await sandbox.control.patchPaymentIntent(made.id, changes, "payment_intent.succeeded");
    const [received] = await receiver.until(1);
    expect(verified(received!).data.object).toMatchObject({
      id: made.id,
      amount: 4200,
      amount_received: 900,
    });
    expect((await stripe.paymentIntents.retrieve(made.id)).amount_received).toBe(900);
  });

  it("can be lost for good, while the fact stays", async () => {
    await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET], mode: "lost" });
    const made = await created(sandbox);
    await sandbox.control.webhooksIdle();
    expect(receiver.received).toEqual([]);
    expect((await sandbox.control.listEvents({ object_id: made.id })).map((each) => each.type)).toEqual([
      "payment_intent.created",
    ]);
  });

  it("can come twice for one fact, as two events", async () => {
    await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    const made = await created(sandbox);
    const second = await sandbox.control.makeEvent({ type: "payment_intent.created", object_id: made.id });
    const events = (await receiver.until(2)).map((each) => verified(each));
    expect(events.map((each) => each.type)).toEqual(["payment_intent.created", "payment_intent.created"]);
    expect(events.filter((each) => each.id === second.id)).toHaveLength(1);
    expect(events[0]?.data.object).toEqual(events[1]?.data.object);
    expect((await stripe.events.retrieve(second.id)).type).toBe("payment_intent.created");
  });

  it("can be made by hand: another type, version, mode, or somebody else's object", async () => {
    await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    await sandbox.control.makeEvent({
      type: "customer.created",
      object: { id: "cus_1", object: "customer" },
      account: "acct_other",
      api_version: "2019-02-11",
      livemode: true,
    });
    const [received] = await receiver.until(1);
    expect(verified(received!)).toMatchObject({
      type: "customer.created",
      api_version: "2019-02-11",
      livemode: true,
      data: { object: { id: "cus_1", object: "customer" } },
    });
    await expect(sandbox.control.makeEvent({ type: "customer.created", object: {} })).rejects.toThrow(
      "account is needed",
    );
    await expect(sandbox.control.makeEvent({ type: "x", object_id: "pi_nobody" })).rejects.toThrow(
      "there is no object pi_nobody",
    );
    await expect(sandbox.control.makeEvent({ type: "x" })).rejects.toThrow("object_id or object is needed");
  });

  it("of a refund and of a dispute are held and let go in any order", async () => {
    const endpoint = await sandbox.control.addWebhookEndpoint({
      url,
      secrets: [SECRET],
      mode: "held",
      enabled_events: ["refund.*", "charge.refunded", "charge.dispute.*"],
    });
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 100 });
    await sandbox.control.bank.failRefund(refund.id);
    await sandbox.control.bank.openDispute(payment.id);
    await sandbox.control.releaseEvents(endpoint.id, [
      "refund.failed",
      "charge.dispute.funds_withdrawn",
      "refund.created",
    ]);
    expect(typesOf(receiver.received)).toEqual([
      "refund.failed",
      "charge.dispute.funds_withdrawn",
      "refund.created",
    ]);
    expect((await sandbox.control.heldEvents(endpoint.id)).map((each) => each.type)).toEqual([
      "charge.refunded",
      "refund.updated",
      "charge.dispute.created",
    ]);
  });

  it("stop when the endpoint is removed", async () => {
    const endpoint = await sandbox.control.addWebhookEndpoint({ url, secrets: [SECRET] });
    await sandbox.control.updateWebhookEndpoint(endpoint.id, { mode: "held" });
    expect((await sandbox.control.listWebhookEndpoints())[0]).toMatchObject({
      id: endpoint.id,
      mode: "held",
      url,
    });
    await sandbox.control.removeWebhookEndpoint(endpoint.id);
    await created(sandbox);
    await sandbox.control.webhooksIdle();
    expect(receiver.received).toEqual([]);
  });
});
