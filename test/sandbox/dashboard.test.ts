import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { runSandboxCommand } from "./sandbox-process.js";
import { chargeOf, paid, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeEach(async () => {
  sandbox = await startSandbox({ settings: { refund_settles_after_ms: null } });
  stripe = stripeFor(sandbox);
});
afterEach(() => sandbox.stop());

describe("the dashboard's hand", () => {
  it("captures part of a held payment, and the API finds it captured", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    const record = await sandbox.control.dashboard.capture(held.id, 1500);
    expect(record.payment_intent).toMatchObject({ status: "succeeded", amount_received: 1500 });
    expect(await thrown(stripe.paymentIntents.capture(held.id))).toMatchObject({
      code: "payment_intent_unexpected_state",
    });
    const all = await paid(stripe, { capture_method: "manual" });
    expect((await sandbox.control.dashboard.capture(all.id)).payment_intent.amount_received).toBe(4200);
    const [event] = await sandbox.control.listEvents({ type: "payment_intent.succeeded" });
    expect(event?.request?.idempotency_key).toBeNull();
  });

  it("cancels, and is refused where the API would be", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    expect((await sandbox.control.dashboard.cancel(held.id)).payment_intent.status).toBe("canceled");
    await expect(sandbox.control.dashboard.cancel(held.id)).rejects.toThrow("has a status of canceled");
    await expect(sandbox.control.dashboard.capture(held.id)).rejects.toThrow("has a status of canceled");
    await expect(sandbox.control.dashboard.cancel("pi_nobody")).rejects.toThrow("there is no pi_nobody");
  });

  it("refunds without metadata or key, all that is left or a part, and never more", async () => {
    const payment = await paid(stripe);
    const part = await sandbox.control.dashboard.refund(payment.id, 1000);
    expect(part).toMatchObject({ amount: 1000, metadata: {}, status: "succeeded" });
    await expect(sandbox.control.dashboard.refund(payment.id, 3201)).rejects.toThrow(
      "greater than unrefunded",
    );
    expect((await sandbox.control.dashboard.refund(payment.id)).amount).toBe(3200);
    expect((await stripe.refunds.list({ payment_intent: payment.id })).data).toHaveLength(2);
    await sandbox.control.dashboard.refund((await paid(stripe)).id);
    const seen = await sandbox.control.listRefunds({ payment_intent: payment.id });
    expect(seen.map((each) => each.amount)).toEqual([1000, 3200]);
    expect(await sandbox.control.listRefunds()).toHaveLength(3);
    expect(await sandbox.control.listRequests({ call: "refunds.create" })).toEqual([]);
  });

  it("comes in between a capture that is under way and its effect", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await sandbox.control.addFault({
      match: { call: "payment_intents.capture" },
      fault: { type: "hang", effect: "later" },
    });
    const capture = thrown(stripe.paymentIntents.capture(held.id));
    await sandbox.control.waitForHeld();
    await sandbox.control.dashboard.cancel(held.id);
    await sandbox.control.release();
    expect(await capture).toMatchObject({ code: "payment_intent_unexpected_state" });
    expect((await stripe.paymentIntents.retrieve(held.id)).status).toBe("canceled");
  });

  it("calls a refund off while it is pending, or young", async () => {
    const payment = await paid(stripe);
    const young = await sandbox.control.dashboard.refund(payment.id);
    expect(await sandbox.control.dashboard.cancelRefund(young.id)).toMatchObject({ status: "canceled" });
    expect(await chargeOf(stripe, payment)).toMatchObject({ amount_refunded: 0, refunded: false });
    const old = await sandbox.control.dashboard.refund(payment.id);
    await sandbox.control.advanceClock(31 * 60_000);
    await expect(sandbox.control.dashboard.cancelRefund(old.id)).rejects.toThrow("is succeeded");
  });

  it("does not touch the release of an authorisation, which is a refund by name only", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    await stripe.paymentIntents.cancel(held.id);
    const [release] = (await sandbox.control.getPaymentIntent(held.id)).refunds;
    for (const act of [
      sandbox.control.dashboard.cancelRefund(release!.id),
      sandbox.control.bank.failRefund(release!.id),
    ]) {
      await expect(act).rejects.toThrow("release of an authorisation");
    }
  });
});

describe("facts that no call could make", () => {
  it("can be written into a refund and a charge, with an event of them", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 1000 });
    await sandbox.control.patchObject(refund.id, { amount: 9000, currency: "eur" }, "refund.updated");
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({ amount: 9000, currency: "eur" });
    const [event] = await sandbox.control.listEvents({ type: "refund.updated" });
    expect(event?.data.object).toMatchObject({ id: refund.id, amount: 9000 });
    await sandbox.control.patchObject(payment.latest_charge as string, { amount_captured: 1 });
    expect((await chargeOf(stripe, payment)).amount_captured).toBe(1);
    await expect(sandbox.control.patchObject("re_nobody", {})).rejects.toThrow("there is no object");
  });

  it("wrong settings are refused by name, and the rest stays as it was", async () => {
    await expect(sandbox.control.changeSettings({ authorization_lifetime_ms: 0 })).rejects.toThrow(
      "authorization_lifetime_ms must be a whole number from 1",
    );
    await sandbox.control.changeSettings({ refund_settles_after_ms: 5 });
    expect(await sandbox.control.settings()).toMatchObject({
      refund_settles_after_ms: 5,
      authorization_lifetime_ms: 7 * 86_400_000,
    });
  });
});

describe("pawl sandbox, against one that runs", () => {
  it("acts on payments, refunds, disputes and the balance", async () => {
    const held = await paid(stripe, { capture_method: "manual" });
    const lapsing = await paid(stripe, { capture_method: "manual" });
    const disputed = await paid(stripe);
    const run = async <T>(...words: string[]): Promise<T> => {
      const done = await runSandboxCommand(...words, "--control-url", sandbox.controlUrl, "--json");
      expect(done.stderr).toBe("");
      return JSON.parse(done.stdout) as T;
    };
    expect(await run("capture", held.id, "4000")).toMatchObject({
      payment_intent: { amount_received: 4000 },
    });
    const [refund, dispute, lapsed] = await Promise.all([
      run<Stripe.Refund>("refund", held.id, "300"),
      run<Stripe.Dispute>("disputes", "open", disputed.id, "--amount", "700", "--no-withdraw"),
      run("expire", lapsing.id),
    ]);
    expect(refund.amount).toBe(300);
    expect(dispute).toMatchObject({ amount: 700, balance_transactions: [] });
    expect(lapsed).toMatchObject({ payment_intent: { cancellation_reason: "automatic" } });
    const [failed, closed] = await Promise.all([
      run("refunds", "fail", refund.id, "--reason", "unknown"),
      run("disputes", "close", dispute.id, "lost"),
    ]);
    expect(failed).toMatchObject({ status: "failed", failure_reason: "unknown" });
    expect(closed).toMatchObject({ status: "lost" });
    const refused = await runSandboxCommand("cancel", held.id, "--control-url", sandbox.controlUrl);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("has a status of succeeded");
  });

  it("refuses words that it does not know before it does anything", async () => {
    const wrong = await runSandboxCommand("refunds", "settle", "re_1", "perhaps");
    expect(wrong.stderr).toContain("Allowed choices are succeed, fail, require_action");
    expect(wrong.code).not.toBe(0);
  });
});
