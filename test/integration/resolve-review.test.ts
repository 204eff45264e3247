import { describe, expect, test } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { resolveReview as writeResolution } from "../../src/store/reviews.js";
import { paid } from "../support/effects.js";
import { documentOf, type Harness, pay, until, untilStatus } from "../support/harness.js";
import {
  allowedIn,
  IMPATIENT,
  instructionsLeft,
  lastReview,
  reasonsOf,
  resolve,
  silentProvider,
  untilClosed,
  untilReturned,
  untilReview,
} from "../support/reviews.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** Makes every attempt of the payment due, as news of it would. */
async function nudge(harness: Harness, paymentId: string): Promise<void> {
  await harness.deps.db.sql`update attempts set due_at = now() where payment_id = ${paymentId}`;
}

describe("cancel_at_provider", () => {
  test("fences the charge instead of confirming it again, and the same key then pays afresh", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { id, key, review } = await silentProvider(harness);
    expect(await allowedIn(harness, review.id)).toContain("cancel_at_provider");
    await resolve(harness, review.id, "cancel_at_provider");
    // Nobody answers yet: the decision waits.
    await harness.sandbox.control.clearFaults();
    expect(await untilStatus(harness, id, "failed")).toMatchObject({ failure: { retry: "same_key" } });
    expect(await untilClosed(harness, review.id)).toMatchObject({
      closed_by: "person",
      resolution: "cancel_at_provider",
      resolution_reason: "looked at it",
      resolved_by: harness.caller.keyId,
    });
    const wire = (await wireOf(harness)).filter((line) => line !== "retrieve 503");
    expect(wire).toEqual(["create 200", "confirm -", "retrieve 200", "fence 200", "retrieve 200"]);
    expect(await reasonsOf(harness, id)).toEqual(
      expect.arrayContaining(["cancel_at_provider requested: looked at it", "cancel_at_provider"]),
    );
    expect(await instructionsLeft(harness)).toBe(0);
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });

  test("finds the charge paid, and adopts that", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { id, review } = await silentProvider(harness);
    await resolve(harness, review.id, "cancel_at_provider");
    const { payment_intent: object } = await onlyObject(harness);
    await harness.sandbox.control.confirmAsCustomer(object.id, { payment_method: "pm_card_visa" });
    await harness.sandbox.control.clearFaults();
    await untilStatus(harness, id, "succeeded");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "fact" });
    expect(await instructionsLeft(harness)).toBe(0);
    expect(await wireOf(harness)).not.toContain("fence 200");
  });

  test("stays until the provider can be reached, and is carried out once", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { id, review } = await silentProvider(harness);
    await resolve(harness, review.id, "cancel_at_provider");
    const [last] = (await harness.sandbox.control.listRequests()).slice(-1);
    const since = { call: "payment_intents.retrieve", after_sequence: last?.sequence ?? 0 } as const;
    await harness.sandbox.control.waitForRequests({ filter: since, count: 3 });
    expect(await instructionsLeft(harness)).toBe(1);
    expect(await lastReview(harness)).toMatchObject({ closed_at: null, resolution: "cancel_at_provider" });
    await harness.sandbox.control.clearFaults();
    await untilStatus(harness, id, "failed");
    const fences = (await wireOf(harness)).filter((line) => line.startsWith("fence"));
    expect(fences).toEqual(["fence 200"]);
  });
});

describe("adopt_provider_object", () => {
  const DECLINED = { payment_method: "pm_card_visa_chargeDeclined", merchant_order_id: "order-1" };

  /** A declined payment whose order id went to another one, and whose canceled object was paid all the same. */
  async function paidAfterEnd(harness: Harness): Promise<string> {
    const { id } = documentOf(await pay(harness, { input: DECLINED }));
    const { payment_intent: object } = await onlyObject(harness);
    await until(
      "a free order id",
      () => harness.deps.db.sql`select 1 from order_ids`,
      (rows) => rows.length === 0,
    );
    await pay(harness, { input: { merchant_order_id: "order-1" } });
    await harness.sandbox.control.patchPaymentIntent(object.id, {
      status: "succeeded",
      amount_received: 4200,
    });
    await nudge(harness, id);
    await untilStatus(harness, id, "needs_review");
    return id;
  }

  test("takes money that moved after the end, without the order id, and no later look doubts it", async () => {
    const harness = await stage.start();
    const id = await paidAfterEnd(harness);
    const review = await untilReview(harness, "paid_after_end");
    expect(await allowedIn(harness, review.id)).toEqual([
      "adopt_provider_object",
      "cancel_at_provider",
      "mark_not_performed",
    ]);
    await resolve(harness, review.id, "adopt_provider_object");
    expect(await untilStatus(harness, id, "succeeded")).toMatchObject({
      holdsOrderId: false,
      amountCaptured: 4200,
      failure: null,
    });
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    const looks = (await wireOf(harness)).length;
    await nudge(harness, id);
    await harness.sandbox.control.waitForRequests({ count: looks + 1 });
    await until(
      "an attempt at rest",
      () =>
        harness.deps.db.sql`select 1 from attempts where due_at is not null or lease_expires_at is not null`,
      (rows) => rows.length === 0,
    );
    expect(await harness.deps.db.sql`select 1 from reviews where closed_at is null`).toEqual([]);
    const [held] = await harness.deps.db.sql`select payment_id from order_ids`;
    expect(held?.["payment_id"]).not.toBe(id);
  });

  test("of the wrong amount takes what was really captured, and no later look doubts it", async () => {
    const gate = stage.gate("before_get");
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "applied" },
    });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await gate.reached();
    const { payment_intent: object } = await onlyObject(harness);
    await harness.sandbox.control.patchPaymentIntent(object.id, { amount_received: 900 });
    gate.open();
    const review = await untilReview(harness, "provider_amount_mismatch");
    await resolve(harness, review.id, "adopt_provider_object");
    expect(await untilStatus(harness, id, "succeeded")).toMatchObject({ amount: 4200, amountCaptured: 900 });
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
  });

  test("of a key that the provider knows with other parameters takes the object that the person names", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.create" },
      fault: { type: "reset", effect: "applied" },
    });
    await control.addFault({
      match: { call: "payment_intents.list" },
      times: null,
      fault: { type: "error", status: 503 },
    });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    const review = await untilReview(harness, "outcome_unknown");
    const { payment_intent: object } = await onlyObject(harness);
    await resolve(harness, review.id, "adopt_provider_object", { object: "pi_nobody_has" });
    await untilReturned(harness, review.id);
    expect(await reasonsOf(harness, id)).toContain(
      "adopt_provider_object is not possible: provider_object_missing",
    );
    await resolve(harness, review.id, "adopt_provider_object", { object: object.id });
    expect(await untilStatus(harness, id, "succeeded")).toMatchObject({ providerPaymentId: object.id });
    await untilClosed(harness, review.id);
    expect(await wireOf(harness)).toContain("retrieve 200");
  });

  test("takes no object of somebody else that happens to fit", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { control } = harness.sandbox;
    const other = await paid(harness, { input: { amount: 4200 } });
    const { providerPaymentId } = await getPayment(harness.deps, harness.caller, other);
    await control.addFault({
      match: { call: "payment_intents.create" },
      fault: { type: "reset", effect: "none" },
    });
    const list = {
      match: { call: "payment_intents.list" },
      times: null,
      fault: { type: "error", status: 503 },
    } as const;
    await control.addFault(list);
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    const review = await untilReview(harness, "outcome_unknown");
    await resolve(harness, review.id, "adopt_provider_object", { object: providerPaymentId ?? "" });
    await untilReturned(harness, review.id);
    expect((await getPayment(harness.deps, harness.caller, id)).providerPaymentId).toBeNull();
    expect(await reasonsOf(harness, id)).toContain(
      "adopt_provider_object is not possible: provider_object_foreign",
    );
  });
});

describe("dismiss", () => {
  test("closes a flag on a payment that stays as it is, and asks nothing", async () => {
    const harness = await stage.start();
    const id = await paid(harness);
    const { payment_intent: object } = await onlyObject(harness);
    await harness.sandbox.control.patchPaymentIntent(object.id, {
      metadata: { payment_attempt_id: "att_other" },
    });
    await nudge(harness, id);
    const review = await untilReview(harness, "provider_object_foreign");
    expect(await allowedIn(harness, review.id)).toEqual(["dismiss"]);
    await harness.sandbox.control.patchPaymentIntent(object.id, { metadata: object.metadata });
    await resolve(harness, review.id, "dismiss");
    expect(await untilClosed(harness, review.id)).toMatchObject({
      closed_by: "person",
      resolution: "dismiss",
    });
    const [attempt] = await harness.deps.db.sql`select state, due_at, instruction, wait_reason from attempts`;
    expect(attempt).toEqual({ state: "completed", due_at: null, instruction: null, wait_reason: null });
    expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("succeeded");
    expect(await reasonsOf(harness, id)).toEqual(
      expect.arrayContaining(["dismiss requested: looked at it", "dismiss"]),
    );
  });
});

describe("a decision that was checked against an attempt as it was before a worker claimed it", () => {
  test("is not written, and is checked again", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { review } = await silentProvider(harness);
    const { sql } = harness.deps.db;
    const [attempt] = await sql<{ fence: string }[]>`select fence from attempts`;
    const decision = {
      tenant_id: harness.caller.tenantId,
      review_id: review.id,
      attempt_id: review.attempt_id,
      fence: Number(attempt?.fence) - 1,
      former_reasons: 0,
      resolution: "cancel_at_provider",
      resolution_reason: "too late",
      resolved_by: "key_test",
      resolved_at: new Date(),
      instruction: "{}",
      timeline_id: "tl_test",
    } as const;
    expect(await writeResolution(sql, decision)).toBe(false);
    // Nor is one for a review that has come to be about something else.
    const other = { ...decision, fence: decision.fence + 1, former_reasons: 1 };
    expect(await writeResolution(sql, other)).toBe(false);
    expect(await lastReview(harness)).toMatchObject({ resolution: null, resolved_by: null });
    expect(await instructionsLeft(harness)).toBe(0);
    expect(await sql`select 1 from timeline where id = 'tl_test'`).toEqual([]);
  });
});
