import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, chargeOf, type ErrorBody, paid, send, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeEach(async () => {
  sandbox = await startSandbox({ settings: { refund_settles_after_ms: null } });
  stripe = stripeFor(sandbox);
});
afterEach(() => sandbox.stop());

async function typesOf(id: string): Promise<string[]> {
  return (await sandbox.control.listEvents({ object_id: id })).map((event) => event.type);
}

describe("a refund", () => {
  it("gives part of a payment back, and the charge shows how much", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({
      payment_intent: payment.id,
      amount: 1200,
      reason: "requested_by_customer",
      metadata: { payment_attempt_id: "a1" },
    });
    expect(refund).toMatchObject({
      object: "refund",
      amount: 1200,
      currency: "usd",
      status: "succeeded",
      reason: "requested_by_customer",
      payment_intent: payment.id,
      charge: payment.latest_charge,
      metadata: { payment_attempt_id: "a1" },
    });
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({ id: refund.id, amount: 1200 });
    const charge = await chargeOf(stripe, payment, ["refunds"]);
    expect(charge).toMatchObject({ amount_captured: 4200, amount_refunded: 1200, refunded: false });
    expect(charge.refunds?.data.map((each) => each.id)).toEqual([refund.id]);
    expect((await chargeOf(stripe, payment)).refunds).toBeUndefined();
  });

  it("tells of itself and of the charge", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 1200 });
    expect(await typesOf(refund.id)).toEqual(["refund.created"]);
    const [event] = await sandbox.control.listEvents({ type: "charge.refunded" });
    expect(event?.data.object).toMatchObject({ id: payment.latest_charge, amount_refunded: 1200 });
  });

  it("without an amount gives back all that is left, by the charge's id as well", async () => {
    const payment = await paid(stripe);
    await stripe.refunds.create({ payment_intent: payment.id, amount: 1200 });
    const rest = await stripe.refunds.create({ charge: payment.latest_charge as string });
    expect(rest.amount).toBe(3000);
    expect(await chargeOf(stripe, payment)).toMatchObject({ amount_refunded: 4200, refunded: true });
  });

  it("is refused where nothing is left, in Stripe's words", async () => {
    const payment = await paid(stripe);
    await stripe.refunds.create({ payment_intent: payment.id });
    const error = await thrown(stripe.refunds.create({ payment_intent: payment.id, amount: 1 }));
    expect(error).toMatchObject({ statusCode: 400, code: "charge_already_refunded" });
    expect(error.message).toBe(`Charge ${payment.latest_charge as string} has already been refunded.`);
  });

  it("above what is left is refused, with no code and the parameter's name", async () => {
    const payment = await paid(stripe);
    const first = await thrown(stripe.refunds.create({ payment_intent: payment.id, amount: 4201 }));
    expect(first.message).toBe("Refund amount ($42.01) is greater than charge amount ($42.00)");
    await stripe.refunds.create({ payment_intent: payment.id, amount: 2055 });
    const second = await thrown(stripe.refunds.create({ payment_intent: payment.id, amount: 2500 }));
    expect(second).toMatchObject({ statusCode: 400, param: "amount", rawType: "invalid_request_error" });
    expect(second.code).toBeUndefined();
    expect(second.message).toBe(
      "Refund amount ($25.00) is greater than unrefunded amount on charge ($21.45)",
    );
    expect((await sandbox.control.refundCounts()).refunds).toBe(1);
  });

  it("never exceeds the capture in sum, however many are sent at once", async () => {
    const payment = await paid(stripe);
    const sent = await Promise.allSettled(
      Array.from({ length: 20 }, () => stripe.refunds.create({ payment_intent: payment.id, amount: 500 })),
    );
    expect(sent.filter((each) => each.status === "fulfilled")).toHaveLength(8);
    expect((await chargeOf(stripe, payment)).amount_refunded).toBe(4000);
    expect((await sandbox.control.refundCounts()).by_payment_intent[payment.id]).toEqual({
      refunds: 8,
      amount: 4000,
    });
  });

  it.each([
    ["an amount that is none", "payment_intent=PI&amount=0", "parameter_invalid_integer", "amount"],
    ["a fraction", "payment_intent=PI&amount=1.5", "parameter_invalid_integer", "amount"],
    ["no payment at all", "amount=100", "parameter_missing", undefined],
    ["two payments", "payment_intent=PI&charge=ch_1", "parameters_exclusive", undefined],
    ["an unknown parameter", "payment_intent=PI&note=x", "parameter_unknown", "note"],
    ["an unknown payment", "payment_intent=pi_nobody", "resource_missing", "payment_intent"],
    ["an unknown charge", "charge=ch_nobody", "resource_missing", "charge"],
    ["a reason Stripe does not take", "payment_intent=PI&reason=bored", undefined, "reason"],
  ])("with %s is a 400", async (_, body, code, param) => {
    const payment = await paid(stripe);
    const answer = await send(sandbox, { path: "/v1/refunds", body: body.replace("PI", payment.id) });
    expect(answer.status).toBe(400);
    const { error } = bodyOf<ErrorBody>(answer);
    expect([error.code, error.param]).toEqual([code, param]);
    expect((await sandbox.control.refundCounts()).refunds).toBe(0);
  });

  it.each([
    ["is only held", { capture_method: "manual" } as const],
    ["was never confirmed", { confirm: false }],
  ])("of a payment that %s finds nothing to refund", async (_, more) => {
    const payment = await paid(stripe, more);
    const error = await thrown(stripe.refunds.create({ payment_intent: payment.id }));
    expect(error.message).toBe(
      `This PaymentIntent (${payment.id}) does not have a successful charge to refund.`,
    );
  });

  it("of another account's payment does not exist", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id });
    const other = stripeFor(sandbox, "sk_test_another");
    expect(await thrown(other.refunds.retrieve(refund.id))).toMatchObject({ statusCode: 404 });
    expect((await other.refunds.list()).data).toEqual([]);
  });
});

describe("a refund that does not end at once", () => {
  it("starts pending, counts as refunded, and succeeds when the bank says so", async () => {
    const payment = await paid(stripe, { payment_method: "pm_card_pendingRefund" });
    const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 4000 });
    expect(refund).toMatchObject({ status: "pending", pending_reason: "processing" });
    expect((await chargeOf(stripe, payment)).amount_refunded).toBe(4000);
    expect(await thrown(stripe.refunds.create({ payment_intent: payment.id, amount: 201 }))).toMatchObject({
      param: "amount",
    });
    await sandbox.control.bank.settleRefund(refund.id, "succeed");
    const settled = await stripe.refunds.retrieve(refund.id);
    expect(settled.status).toBe("succeeded");
    expect(settled.pending_reason).toBeUndefined();
    expect(await typesOf(refund.id)).toEqual(["refund.created", "refund.updated", "charge.refund.updated"]);
    const [updated] = await sandbox.control.listEvents({ type: "refund.updated" });
    expect(updated?.data.previous_attributes).toEqual({ status: "pending" });
    expect(updated?.request).toEqual({ id: null, idempotency_key: null });
    await expect(sandbox.control.bank.settleRefund(refund.id, "fail")).rejects.toThrow("is succeeded");
  });

  it("by itself once its time on the sandbox's clock has passed, with nobody asking", async () => {
    await sandbox.control.changeSettings({ refund_settles_after_ms: 3_600_000 });
    const slow = await paid(stripe, { payment_method: "pm_card_pendingRefund" });
    const bad = await paid(stripe, { payment_method: "pm_card_refundFail" });
    const pending = await stripe.refunds.create({ payment_intent: slow.id });
    const failing = await stripe.refunds.create({ payment_intent: bad.id });
    expect([pending.status, failing.status]).toEqual(["pending", "succeeded"]);
    await sandbox.control.advanceClock(3_540_000);
    expect((await stripe.refunds.retrieve(pending.id)).status).toBe("pending");
    await sandbox.control.advanceClock(60_000);
    expect(await typesOf(pending.id)).toContain("refund.updated");
    expect((await stripe.refunds.retrieve(pending.id)).status).toBe("succeeded");
    expect((await stripe.refunds.retrieve(failing.id)).status).toBe("failed");
  });

  it("fails after it succeeded: the money can be refunded again, and three events tell of it", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id });
    await sandbox.control.bank.failRefund(refund.id);
    const failed = await stripe.refunds.retrieve(refund.id, { expand: ["failure_balance_transaction"] });
    expect(failed).toMatchObject({
      status: "failed",
      failure_reason: "expired_or_canceled_card",
      failure_balance_transaction: { type: "refund_failure", amount: 4200, source: refund.id },
    });
    expect(await chargeOf(stripe, payment)).toMatchObject({ amount_refunded: 0, refunded: false });
    expect(await typesOf(refund.id)).toEqual([
      "refund.created",
      "refund.updated",
      "charge.refund.updated",
      "refund.failed",
    ]);
    expect((await stripe.refunds.create({ payment_intent: payment.id })).amount).toBe(4200);
    await expect(sandbox.control.bank.failRefund(refund.id)).rejects.toThrow("is failed");
  });

  it("can wait for the customer, and only then be canceled by the API", async () => {
    const payment = await paid(stripe, { payment_method: "pm_card_pendingRefund" });
    const refund = await stripe.refunds.create({ payment_intent: payment.id });
    const early = await thrown(stripe.refunds.cancel(refund.id));
    expect(early).toMatchObject({ statusCode: 400 });
    expect(early.message).toContain("status of pending");
    await sandbox.control.bank.settleRefund(refund.id, "require_action");
    expect((await stripe.refunds.retrieve(refund.id)).status).toBe("requires_action");
    expect((await stripe.refunds.cancel(refund.id)).status).toBe("canceled");
    expect((await chargeOf(stripe, payment)).amount_refunded).toBe(0);
    expect((await sandbox.control.refundCounts()).refunds).toBe(0);
  });
});

describe("the list of refunds", () => {
  it("is newest first, by payment, charge and time, page by page", async () => {
    const one = await paid(stripe);
    const other = await paid(stripe);
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      ids.unshift((await stripe.refunds.create({ payment_intent: one.id, amount: 100 })).id);
    }
    const elsewhere = await stripe.refunds.create({ payment_intent: other.id, amount: 100 });
    const first = await stripe.refunds.list({ payment_intent: one.id, limit: 2 });
    expect(first).toMatchObject({ object: "list", has_more: true, url: "/v1/refunds" });
    expect(first.data.map((each) => each.id)).toEqual(ids.slice(0, 2));
    const all: string[] = [];
    for await (const refund of stripe.refunds.list({ payment_intent: one.id, limit: 2 })) all.push(refund.id);
    expect(all).toEqual(ids);
    const before = await stripe.refunds.list({ charge: one.latest_charge as string, ending_before: ids[2]! });
    expect(before.data.map((each) => each.id)).toEqual(ids.slice(0, 2));
    expect((await stripe.refunds.list()).data[0]?.id).toBe(elsewhere.id);
    const later = { gt: elsewhere.created };
    expect((await stripe.refunds.list({ created: later })).data).toEqual([]);
    expect(await thrown(stripe.refunds.list({ starting_after: "re_nobody" }))).toMatchObject({
      statusCode: 400,
      code: "resource_missing",
    });
  });

  it("takes metadata key by key, and tells of the change", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id, metadata: { a: "1", b: "2" } });
    const updated = await stripe.refunds.update(refund.id, { metadata: { a: "", c: "3" } });
    expect(updated.metadata).toEqual({ b: "2", c: "3" });
    const [event] = await sandbox.control.listEvents({ type: "refund.updated" });
    expect(event?.data.previous_attributes).toEqual({ metadata: { a: "1", b: "2" } });
  });
});

describe("the rules of keys, locks and faults hold for refunds", () => {
  const bodyFor = (payment: Stripe.PaymentIntent) => `payment_intent=${payment.id}&amount=4200`;

  it("the same key makes one refund, and keeps a refusal", async () => {
    const payment = await paid(stripe);
    const request = { path: "/v1/refunds", body: bodyFor(payment), key: "r1" };
    const first = await send(sandbox, request);
    const again = await send(sandbox, request);
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(again.text).toBe(first.text);
    const refused = await send(sandbox, { ...request, key: "r2" });
    expect(refused.status).toBe(400);
    const refusal = await send(sandbox, { ...request, key: "r2" });
    expect(refusal.headers["idempotent-replayed"]).toBe("true");
    const mismatch = await send(sandbox, { ...request, body: `payment_intent=${payment.id}&amount=1` });
    expect(bodyOf<ErrorBody>(mismatch).error.type).toBe("idempotency_error");
    expect((await sandbox.control.refundCounts()).refunds).toBe(1);
  });

  it("the payment is locked while a refund of it is under way", async () => {
    const payment = await paid(stripe);
    const match = { call: "refunds.create", object_id: payment.id };
    await sandbox.control.addFault({ match, fault: { type: "reset", effect: "later" } });
    const request = { path: "/v1/refunds", body: bodyFor(payment) };
    expect((await send(sandbox, { ...request, key: "r1" })).broken).toBe("ECONNRESET");
    const locked = await send(sandbox, { ...request, key: "r2" });
    expect([locked.status, bodyOf<ErrorBody>(locked).error.code]).toEqual([429, "lock_timeout"]);
    expect((await send(sandbox, { ...request, key: "r1" })).status).toBe(409);
    expect((await stripe.refunds.list({ payment_intent: payment.id })).data).toEqual([]);
    await sandbox.control.release();
    expect((await stripe.refunds.list({ payment_intent: payment.id })).data).toHaveLength(1);
    const replay = await send(sandbox, { ...request, key: "r1" });
    expect(replay.headers["idempotent-replayed"]).toBe("true");
  });

  it("a lost answer leaves the refund, and a stored 500 hides it for ever", async () => {
    const payment = await paid(stripe);
    await sandbox.control.addFault({
      match: { call: "refunds.*", metadata: { payment_attempt_id: "a1" } },
      fault: { type: "stored_error", effect: "applied" },
    });
    const body = `${bodyFor(payment)}&metadata[payment_attempt_id]=a1`;
    for (let send500 = 0; send500 < 2; send500 += 1) {
      expect((await send(sandbox, { path: "/v1/refunds", body, key: "r1" })).status).toBe(500);
    }
    const { data } = await stripe.refunds.list({ payment_intent: payment.id });
    expect(data.map((each) => each.metadata)).toEqual([{ payment_attempt_id: "a1" }]);
    expect((await sandbox.control.refundCounts("payment_attempt_id")).by_metadata["a1"]).toEqual({
      refunds: 1,
      amount: 4200,
    });
  });

  it("a refund that arrives after another took the money is refused by the state guard", async () => {
    const payment = await paid(stripe);
    await sandbox.control.addFault({
      match: { call: "refunds.create" },
      fault: { type: "reset", effect: "later", arrival: "in_network" },
    });
    await send(sandbox, { path: "/v1/refunds", body: bodyFor(payment), key: "late" });
    await stripe.refunds.create({ payment_intent: payment.id });
    await sandbox.control.release();
    const [late] = await sandbox.control.listRequests({ idempotency_key: "late" });
    expect(late).toMatchObject({ result_status: 400, error_code: "charge_already_refunded", effect: "none" });
  });

  it("the log names the call, and the refund that it made", async () => {
    const payment = await paid(stripe);
    const refund = await stripe.refunds.create({ payment_intent: payment.id });
    const [entry] = await sandbox.control.listRequests({ call: "refunds.create" });
    expect(entry).toMatchObject({ object_id: refund.id, effect: "applied", status: 200 });
  });

  it("a list can be lost as any other call", async () => {
    await sandbox.control.addFault({
      match: { call: "refunds.list" },
      fault: { type: "error", status: 503 },
    });
    expect((await send(sandbox, { method: "GET", path: "/v1/refunds" })).status).toBe(503);
  });
});
