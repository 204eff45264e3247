import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { chargeOf, paid, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeEach(async () => {
  sandbox = await startSandbox({
    settings: { dispute_opens_after_ms: 1_000, refund_settles_after_ms: null },
  });
  stripe = stripeFor(sandbox);
});
afterEach(() => sandbox.stop());

async function typesOf(id: string): Promise<string[]> {
  return (await sandbox.control.listEvents({ object_id: id })).map((event) => event.type);
}

function sumsOf(dispute: Stripe.Dispute): [string, number, number][] {
  return dispute.balance_transactions.map((each) => [each.reporting_category, each.amount, each.fee]);
}

describe("a dispute", () => {
  it("follows every charge of pm_card_createDispute", async () => {
    const payment = await paid(stripe, { payment_method: "pm_card_createDispute" });
    expect(payment.status).toBe("succeeded");
    await sandbox.control.advanceClock(1_000);
    const { data } = await stripe.disputes.list({ payment_intent: payment.id });
    expect(data).toMatchObject([
      {
        object: "dispute",
        amount: 4200,
        charge: payment.latest_charge,
        reason: "fraudulent",
        status: "needs_response",
        is_charge_refundable: false,
      },
    ]);
    const dispute = data[0]!;
    expect(sumsOf(dispute)).toEqual([["dispute", -4200, 1500]]);
    expect(await typesOf(dispute.id)).toEqual(["charge.dispute.created", "charge.dispute.funds_withdrawn"]);
    expect((await chargeOf(stripe, payment)).disputed).toBe(true);
    await sandbox.control.advanceClock(60_000);
    expect((await stripe.disputes.list({ charge: payment.latest_charge as string })).data).toHaveLength(1);
  });

  it("of a held payment comes after its capture, not before", async () => {
    const held = await paid(stripe, {
      payment_method: "pm_card_createDispute",
      capture_method: "manual",
    });
    await sandbox.control.advanceClock(60_000);
    expect((await stripe.disputes.list()).data).toEqual([]);
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1000 });
    await sandbox.control.advanceClock(1_000);
    expect((await stripe.disputes.list()).data[0]?.amount).toBe(1000);
  });

  it("forbids a refund while it is open and when it is lost, and no more when it is won", async () => {
    for (const outcome of ["lost", "won"] as const) {
      const payment = await paid(stripe);
      const dispute = await sandbox.control.bank.openDispute(payment.id, { reason: "duplicate" });
      const open = await thrown(stripe.refunds.create({ payment_intent: payment.id }));
      expect(open).toMatchObject({ statusCode: 400, code: "charge_disputed" });
      expect(open.message).toBe(
        `Charge ${payment.latest_charge as string} has been charged back; cannot issue a refund.`,
      );
      await sandbox.control.bank.closeDispute(dispute.id, outcome);
      const refund = stripe.refunds.create({ payment_intent: payment.id });
      if (outcome === "won") expect((await refund).status).toBe("succeeded");
      else expect(await thrown(refund)).toMatchObject({ code: "charge_disputed" });
    }
  });

  it("that is won brings the money back, the fee only where that is asked for", async () => {
    const payment = await paid(stripe);
    const dispute = await sandbox.control.bank.openDispute(payment.id, { amount: 1000 });
    expect((await sandbox.control.dashboard.contestDispute(dispute.id)).status).toBe("under_review");
    const won = await sandbox.control.bank.closeDispute(dispute.id, "won");
    expect(won).toMatchObject({ status: "won", is_charge_refundable: true });
    expect(sumsOf(await stripe.disputes.retrieve(dispute.id))).toEqual([
      ["dispute", -1000, 1500],
      ["dispute_reversal", 1000, 0],
    ]);
    expect(await typesOf(dispute.id)).toEqual([
      "charge.dispute.created",
      "charge.dispute.funds_withdrawn",
      "charge.dispute.updated",
      "charge.dispute.closed",
      "charge.dispute.funds_reinstated",
    ]);
    const other = await paid(stripe);
    const second = await sandbox.control.bank.openDispute(other.id);
    const withFee = await sandbox.control.bank.closeDispute(second.id, "won", { return_fee: true });
    expect(withFee.balance_transactions.reduce((sum, each) => sum + each.net, 0)).toBe(0);
  });

  it("that is lost keeps the money, and is over", async () => {
    const payment = await paid(stripe);
    const dispute = await sandbox.control.bank.openDispute(payment.id);
    const lost = await sandbox.control.bank.closeDispute(dispute.id, "lost");
    expect(lost).toMatchObject({ status: "lost", is_charge_refundable: false });
    expect(lost.balance_transactions).toHaveLength(1);
    await expect(sandbox.control.bank.closeDispute(dispute.id, "won")).rejects.toThrow("is lost already");
    await expect(sandbox.control.bank.withdrawFunds(dispute.id)).rejects.toThrow("withdrawn already");
  });

  it("can have its funds withdrawn and reinstated apart from its end", async () => {
    const payment = await paid(stripe);
    const dispute = await sandbox.control.bank.openDispute(payment.id, { withdraw: false });
    expect(dispute.balance_transactions).toEqual([]);
    await expect(sandbox.control.bank.reinstateFunds(dispute.id)).rejects.toThrow("not withdrawn");
    await sandbox.control.bank.withdrawFunds(dispute.id);
    await sandbox.control.bank.closeDispute(dispute.id, "won", { reinstate: false });
    expect(sumsOf(await stripe.disputes.retrieve(dispute.id))).toHaveLength(1);
    await sandbox.control.bank.reinstateFunds(dispute.id);
    expect((await typesOf(dispute.id)).at(-1)).toBe("charge.dispute.funds_reinstated");
    expect((await stripe.balanceTransactions.list({ source: dispute.id })).data).toHaveLength(2);
  });

  it("as an inquiry takes nothing and forbids nothing, until it becomes a chargeback", async () => {
    const payment = await paid(stripe, { payment_method: "pm_card_createDisputeInquiry" });
    await sandbox.control.advanceClock(1_000);
    const inquiry = (await stripe.disputes.list()).data[0]!;
    expect(inquiry).toMatchObject({ status: "warning_needs_response", is_charge_refundable: true });
    expect(inquiry.balance_transactions).toEqual([]);
    await stripe.refunds.create({ payment_intent: payment.id, amount: 100 });
    const escalated = await sandbox.control.bank.withdrawFunds(inquiry.id);
    expect(escalated).toMatchObject({ status: "needs_response", is_charge_refundable: false });
    const closed = await sandbox.control.bank.openDispute((await paid(stripe)).id, { inquiry: true });
    expect((await sandbox.control.bank.closeDispute(closed.id, "won")).status).toBe("warning_closed");
  });

  it("fails a refund that is still pending, and covers only what was not given back", async () => {
    const payment = await paid(stripe, { payment_method: "pm_card_pendingRefund" });
    const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 1000 });
    const dispute = await sandbox.control.bank.openDispute(payment.id);
    expect(dispute.amount).toBe(3200);
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({
      status: "failed",
      failure_reason: "charge_for_pending_refund_disputed",
    });
    expect(await chargeOf(stripe, payment)).toMatchObject({ disputed: true, amount_refunded: 0 });
  });

  it("is not opened twice at a time, nor above the capture, nor on what was never captured", async () => {
    const { bank } = sandbox.control;
    const payment = await paid(stripe);
    await expect(bank.openDispute(payment.id, { amount: 4201 })).rejects.toThrow("not so much to dispute");
    await bank.openDispute(payment.id);
    await expect(bank.openDispute(payment.id)).rejects.toThrow("in dispute already");
    const held = await paid(stripe, { capture_method: "manual" });
    await expect(bank.openDispute(held.id)).rejects.toThrow("not so much to dispute");
    await expect(bank.openDispute("pi_nobody")).rejects.toThrow("there is no pi_nobody");
    expect(await thrown(stripe.disputes.retrieve("dp_nobody"))).toMatchObject({ statusCode: 404 });
  });
});
