import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { Receiver } from "./receiver.js";
import { chargeOf, paid, stripeFor, thrown } from "./support.js";

const DAY_MS = 86_400_000;
const EXPAND = ["latest_charge.balance_transaction"];

let sandbox: Sandbox;
let stripe: Stripe;

beforeEach(async () => {
  sandbox = await startSandbox();
  stripe = stripeFor(sandbox);
});
afterEach(() => sandbox.stop());

function transactionOf(paymentIntent: Stripe.PaymentIntent): unknown {
  return (paymentIntent.latest_charge as Stripe.Charge).balance_transaction;
}

describe("expand[]=latest_charge.balance_transaction", () => {
  const FEE_OF_42 = { object: "balance_transaction", amount: 4200, fee: 152, net: 4048, currency: "usd" };

  it("is answered by create, confirm, capture, cancel, retrieve and the list", async () => {
    expect(transactionOf(await paid(stripe, { expand: EXPAND }))).toMatchObject(FEE_OF_42);
    const made = await paid(stripe, { confirm: false, capture_method: "manual" });
    const held = await stripe.paymentIntents.confirm(made.id, { expand: EXPAND });
    expect(held.latest_charge).toMatchObject({ object: "charge", captured: false, amount_captured: 0 });
    expect(transactionOf(held)).toBeNull();
    expect(transactionOf(await stripe.paymentIntents.capture(made.id, { expand: EXPAND }))).toMatchObject(
      FEE_OF_42,
    );
    expect(transactionOf(await stripe.paymentIntents.retrieve(made.id, { expand: EXPAND }))).toMatchObject(
      FEE_OF_42,
    );
    const released = await paid(stripe, { capture_method: "manual" });
    const canceled = await stripe.paymentIntents.cancel(released.id, { expand: ["latest_charge"] });
    expect(canceled.latest_charge).toMatchObject({ amount_captured: 0, amount_refunded: 4200 });
    const { data } = await stripe.paymentIntents.list({
      expand: ["data.latest_charge.balance_transaction", "data.payment_method"],
    });
    expect(data.map((each) => (transactionOf(each) as { fee?: number } | null)?.fee)).toEqual([
      undefined,
      152,
      152,
    ]);
    expect(data[0]?.payment_method).toMatchObject({ object: "payment_method" });
  });

  it("goes deeper, and leaves what it cannot follow as it is", async () => {
    const payment = await paid(stripe);
    const transactions = await stripe.balanceTransactions.list({ expand: ["data.source.payment_intent"] });
    const source = transactions.data[0]?.source as Stripe.Charge;
    expect(source.payment_intent).toMatchObject({ id: payment.id, object: "payment_intent" });
    const plain = await stripe.paymentIntents.retrieve(payment.id, { expand: ["review", "nothing.at.all"] });
    expect(plain).toMatchObject({ id: payment.id, review: null, latest_charge: payment.latest_charge });
  });
});

describe("balance transactions", () => {
  it("carry 2.9 % and 30 of what was captured, rounded, and say what they are", async () => {
    const held = await paid(stripe, { amount: 1050, capture_method: "manual" });
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1000 });
    const charge = await chargeOf(stripe, held);
    const transaction = await stripe.balanceTransactions.retrieve(charge.balance_transaction as string);
    expect(transaction).toMatchObject({
      amount: 1000,
      fee: 59,
      net: 941,
      type: "charge",
      reporting_category: "charge",
      source: charge.id,
      status: "pending",
      available_on: transaction.created + 2 * 86_400,
    });
    expect(transaction.fee_details).toMatchObject([{ amount: 59, type: "stripe_fee", currency: "usd" }]);
    await sandbox.control.advanceClock(2 * DAY_MS);
    expect((await stripe.balanceTransactions.retrieve(transaction.id)).status).toBe("available");
  });

  it("are made for refunds and their failures, by which the balance is what it was", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({
      payment_intent: payment.id,
      amount: 1000,
      expand: ["balance_transaction"],
    });
    expect(refund.balance_transaction).toMatchObject({ amount: -1000, fee: 0, net: -1000, type: "refund" });
    await sandbox.control.bank.failRefund(refund.id);
    const ofRefund = await stripe.balanceTransactions.list({ source: refund.id });
    expect(ofRefund.data.map((each) => [each.type, each.net])).toEqual([
      ["refund_failure", 1000],
      ["refund", -1000],
    ]);
  });

  it("are listed by type, currency and time, page by page", async () => {
    await paid(stripe);
    await paid(stripe, { currency: "eur" });
    await sandbox.control.advanceClock(60_000);
    const last = await paid(stripe);
    await stripe.refunds.create({ payment_intent: last.id });
    const types = async (params: Stripe.BalanceTransactionListParams) =>
      (await stripe.balanceTransactions.list(params)).data.map((each) => `${each.type} ${each.currency}`);
    expect(await types({ type: "charge" })).toEqual(["charge usd", "charge eur", "charge usd"]);
    expect(await types({ currency: "eur" })).toEqual(["charge eur"]);
    expect(await types({ created: { gte: last.created } })).toEqual(["refund usd", "charge usd"]);
    const all: string[] = [];
    for await (const each of stripe.balanceTransactions.list({ limit: 1 })) all.push(each.type);
    expect(all).toEqual(["refund", "charge", "charge", "charge"]);
    expect(await thrown(stripe.balanceTransactions.retrieve("txn_nobody"))).toMatchObject({
      statusCode: 404,
    });
  });

  it("of a charge can come later than its capture, with an event that says so", async () => {
    await sandbox.control.changeSettings({ charge_booked_after_ms: 60_000 });
    const payment = await paid(stripe, { expand: EXPAND });
    expect(transactionOf(payment)).toBeNull();
    await sandbox.control.advanceClock(60_000);
    const later = await stripe.paymentIntents.retrieve(payment.id, { expand: EXPAND });
    expect(transactionOf(later)).toMatchObject({ fee: 152 });
    const [event] = await sandbox.control.listEvents({ type: "charge.updated" });
    expect(event?.data.previous_attributes).toEqual({ balance_transaction: null });
  });
});

describe("a payout", () => {
  it("takes what is available of each currency, and is found in its transactions", async () => {
    const early = await paid(stripe);
    await paid(stripe, { currency: "eur" });
    await sandbox.control.advanceClock(2 * DAY_MS);
    await paid(stripe);
    await stripe.refunds.create({ payment_intent: early.id, amount: 1000 });
    const payouts = await sandbox.control.bank.payOut();
    expect(payouts.map((each) => [each.currency, each.amount, each.status])).toEqual([
      ["usd", 3048, "paid"],
      ["eur", 4048, "paid"],
    ]);
    const id = payouts[0]?.id ?? "";
    const inPayout = await stripe.balanceTransactions.list({ payout: id });
    expect(inPayout.data.map((each) => [each.type, each.net])).toEqual([
      ["payout", -3048],
      ["refund", -1000],
      ["charge", 4048],
    ]);
    expect(await stripe.payouts.retrieve(id)).toMatchObject({
      amount: 3048,
      reconciliation_status: "completed",
      balance_transaction: inPayout.data[0]?.id,
    });
    expect((await stripe.payouts.list({ status: "paid" })).data).toHaveLength(2);
    const events = await sandbox.control.listEvents({ object_id: id });
    expect(events.map((each) => each.type)).toEqual([
      "payout.created",
      "payout.paid",
      "payout.reconciliation_completed",
    ]);
    expect(await sandbox.control.bank.payOut()).toEqual([]);
    await sandbox.control.advanceClock(2 * DAY_MS);
    const [next] = await sandbox.control.bank.payOut();
    const later = await stripe.balanceTransactions.list({ payout: next?.id ?? "", type: "charge" });
    expect([next?.amount, later.data.length]).toEqual([4048, 1]);
    expect(await thrown(stripe.balanceTransactions.list({ payout: "po_nobody" }))).toMatchObject({
      code: "resource_missing",
    });
  });

  it("leaves a balance below zero, other currencies and other accounts alone", async () => {
    await sandbox.control.changeSettings({ funds_available_after_ms: 0 });
    const payment = await paid(stripe);
    await stripe.refunds.create({ payment_intent: payment.id });
    expect(await sandbox.control.bank.payOut()).toEqual([]);
    await paid(stripe);
    const other = stripeFor(sandbox, "sk_test_another");
    await paid(other);
    const { id: account } = await other.accounts.retrieveCurrent();
    expect(await sandbox.control.bank.payOut({ account, currency: "eur" })).toEqual([]);
    expect(await sandbox.control.bank.payOut({ account })).toHaveLength(1);
    expect((await stripe.payouts.list()).data).toEqual([]);
    const [first] = await sandbox.control.bank.payOut();
    expect(first?.amount).toBe(4048 - 152);
  });
});

describe("an authorisation", () => {
  it("says until when it can be captured: seven days, or as it was set", async () => {
    const held = await paid(stripe, { capture_method: "manual", expand: ["latest_charge"] });
    const charge = held.latest_charge as Stripe.Charge;
    expect(charge.payment_method_details?.card).toMatchObject({ brand: "visa", last4: "4242" });
    expect(charge.payment_method_details?.card?.capture_before).toBe(charge.created + 7 * 86_400);
    await sandbox.control.changeSettings({ authorization_lifetime_ms: 3_600_000 });
    const brief = await chargeOf(stripe, await paid(stripe, { capture_method: "manual" }));
    expect(brief.payment_method_details?.card?.capture_before).toBe(brief.created + 3600);
    const captured = await chargeOf(stripe, await paid(stripe));
    expect(captured.payment_method_details?.card).not.toHaveProperty("capture_before");
  });

  it("that is over is released and canceled as the clock passes it, by nobody's request", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await sandbox.control.advanceClock(7 * DAY_MS - 60_000);
    expect((await sandbox.control.getPaymentIntent(held.id)).payment_intent.status).toBe("requires_capture");
    await sandbox.control.advanceClock(60_000);
    const record = await sandbox.control.getPaymentIntent(held.id);
    expect(record.payment_intent).toMatchObject({
      status: "canceled",
      cancellation_reason: "automatic",
      amount_capturable: 0,
    });
    expect(record.payment_intent.canceled_at).toBeGreaterThanOrEqual(held.created + 7 * 86_400);
    expect(record.charges[0]).toMatchObject({ captured: false, refunded: true, amount_refunded: 4200 });
    expect(record.refunds).toMatchObject([
      { amount: 4200, reason: "expired_uncaptured_charge", balance_transaction: null, metadata: {} },
    ]);
    const [event] = await sandbox.control.listEvents({ type: "payment_intent.canceled" });
    expect(event).toMatchObject({ request: { id: null, idempotency_key: null } });
    expect(await sandbox.control.listEvents({ type: "charge.expired" })).toHaveLength(1);
  });

  it("that was prolonged lapses at its new time", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    const charge = await chargeOf(stripe, held);
    const { card } = charge.payment_method_details!;
    const later = { ...card, capture_before: charge.created + 30 * 86_400 };
    await sandbox.control.patchObject(charge.id, {
      payment_method_details: { ...charge.payment_method_details, card: later },
    });
    await sandbox.control.advanceClock(8 * DAY_MS);
    expect((await stripe.paymentIntents.retrieve(held.id)).status).toBe("requires_capture");
    await sandbox.control.advanceClock(22 * DAY_MS);
    expect((await stripe.paymentIntents.retrieve(held.id)).status).toBe("canceled");
  });

  it("cannot be captured afterwards, nor canceled", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await sandbox.control.bank.expireAuthorization(held.id);
    for (const late of [stripe.paymentIntents.capture(held.id), stripe.paymentIntents.cancel(held.id)]) {
      const error = await thrown(late);
      expect(error).toMatchObject({ statusCode: 400, code: "payment_intent_unexpected_state" });
      expect(error.payment_intent).toMatchObject({ status: "canceled", cancellation_reason: "automatic" });
    }
    expect((await stripe.balanceTransactions.list()).data).toEqual([]);
    await expect(sandbox.control.bank.expireAuthorization(held.id)).rejects.toThrow("holds nothing");
  });

  it("that was captured or canceled in time is left alone", async () => {
    const taken = await paid(stripe, { capture_method: "manual" });
    const dropped = await paid(stripe, { capture_method: "manual" });
    await stripe.paymentIntents.capture(taken.id);
    await stripe.paymentIntents.cancel(dropped.id);
    await sandbox.control.advanceClock(8 * DAY_MS);
    expect((await stripe.paymentIntents.retrieve(taken.id)).status).toBe("succeeded");
    expect((await stripe.paymentIntents.retrieve(dropped.id)).cancellation_reason).toBeNull();
  });

  it("ends under a capture that is still on its way: the capture is refused", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await sandbox.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "hang", effect: "later" },
    });
    const capture = thrown(stripe.paymentIntents.capture(held.id));
    await sandbox.control.waitForHeld({ count: 1 });
    await sandbox.control.advanceClock(7 * DAY_MS);
    await sandbox.control.release();
    expect(await capture).toMatchObject({ code: "payment_intent_unexpected_state" });
    expect((await sandbox.control.getPaymentIntent(held.id)).charges[0]?.captured).toBe(false);
  });

  it("gives back what is not captured as a refund without a balance transaction", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 4000 });
    const { data } = await stripe.refunds.list({ payment_intent: held.id });
    expect(data).toMatchObject([{ amount: 200, balance_transaction: null, metadata: {}, reason: null }]);
    expect(await chargeOf(stripe, held)).toMatchObject({
      amount_captured: 4000,
      amount_refunded: 200,
      refunded: false,
    });
    const error = await thrown(stripe.refunds.create({ payment_intent: held.id, amount: 4001 }));
    expect(error.message).toContain("unrefunded amount on charge ($40.00)");
    await stripe.refunds.create({ payment_intent: held.id, amount: 4000 });
    expect(await chargeOf(stripe, held)).toMatchObject({ amount_refunded: 4200, refunded: true });
    expect((await sandbox.control.refundCounts()).by_payment_intent[held.id]?.amount).toBe(4000);
  });

  it("lapses by itself in real time, and its event goes out", async () => {
    const receiver = new Receiver();
    const url = await receiver.start();
    await sandbox.control.changeSettings({ authorization_lifetime_ms: 1 });
    await sandbox.control.addWebhookEndpoint({
      url,
      secrets: ["whsec_x"],
      enabled_events: ["payment_intent.canceled"],
    });
    await paid(stripe, { capture_method: "manual" });
    const [received] = await receiver.until(1);
    expect(received?.body).toContain("automatic");
    receiver.stop();
  });
});
