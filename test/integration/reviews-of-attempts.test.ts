import { describe, expect, test } from "vitest";
import type { Review } from "../../src/domain/review-document.js";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import { getPayment } from "../../src/operations/read-payments.js";
import { getReview } from "../../src/operations/read-reviews.js";
import { outcomeOf, paid, refund, untilRefund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "../support/harness.js";
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
import { onlyObject, useStage } from "../support/stage.js";

const stage = useStage();

function openReviews({ deps, caller }: Harness): Promise<Review[]> {
  return listOpenReviews(deps, caller.tenantId, 10);
}

test("each of two refunds of unknown outcome has its own review, and is decided by itself", async () => {
  const harness = await stage.start({ env: IMPATIENT });
  const { control } = harness.sandbox;
  const payment = await paid(harness);
  await control.addFault({
    match: { call: "refunds.create" },
    times: 2,
    fault: { type: "reset", effect: "none" },
  });
  const silence = {
    match: { call: "refunds.list" },
    times: null,
    fault: { type: "error", status: 503 },
  } as const;
  await control.addFault(silence);
  for (const amount of [1_000, 2_000]) await refund(harness, payment, amount, { waitMs: 0 });
  const open = await until(
    "a review of each refund",
    () => openReviews(harness),
    (reviews) => reviews.length === 2,
  );
  const refunds = await harness.deps.db.sql<{ id: string; attempt_id: string }[]>`
    select id, attempt_id from refunds order by id`;
  expect(open.map(({ refundId, attemptId }) => ({ id: refundId, attempt_id: attemptId }))).toEqual(
    expect.arrayContaining([...refunds]),
  );
  for (const { id, refundId } of open) {
    const { refund: shown, allowed } = await getReview(harness.deps, harness.caller, id);
    expect(shown?.refund).toMatchObject({ id: refundId, status: "needs_review" });
    expect(allowed.map((one) => one.resolution)).toContain("retry_same_key");
  }
  const [first, second] = open as [Review, Review];
  await resolve(harness, second.id, "retry_same_key");
  expect(await openReviews(harness)).toMatchObject([
    { id: first.id, resolution: null },
    { id: second.id, resolution: "retry_same_key" },
  ]);
  await control.clearFaults();
  for (const { id } of refunds) await untilRefund(harness, id, "succeeded");
  expect(await untilClosed(harness, second.id)).toMatchObject({ closed_by: "person" });
  expect(await untilClosed(harness, first.id)).toMatchObject({ closed_by: "fact", resolution: null });
  expect(await control.listRefunds()).toHaveLength(2);
});

describe("a review that comes to be about more", () => {
  test("shows that, with what it was about, and takes no decision made for the former", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { id, review } = await silentProvider(harness);
    const { payment_intent: object } = await onlyObject(harness);
    await harness.sandbox.control.patchPaymentIntent(object.id, { amount: 900 });
    await harness.sandbox.control.clearFaults();
    expect(await untilReview(harness, "provider_amount_mismatch")).toMatchObject({ id: review.id });
    const { review: shown } = await getReview(harness.deps, harness.caller, review.id);
    expect(shown.formerReasons).toEqual([
      { reason: "outcome_unknown", until: expect.stringMatching(/^20/) as string },
    ]);
    await expect(resolve(harness, review.id, "cancel_at_provider", { version: 1 })).rejects.toMatchObject({
      code: "review_changed",
      message: expect.stringContaining("provider_amount_mismatch") as string,
    });
    expect(await instructionsLeft(harness)).toBe(0);
    await resolve(harness, review.id, "cancel_at_provider", { version: 2 });
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    expect((await getPayment(harness.deps, harness.caller, id)).status).toBe("failed");
  });

  test("while a decision waits gives that back, where it would take what nobody had seen", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { control } = harness.sandbox;
    const { id, review } = await silentProvider(harness);
    const { payment_intent: object } = await onlyObject(harness);
    await resolve(harness, review.id, "adopt_provider_object");
    await control.confirmAsCustomer(object.id, { payment_method: "pm_card_visa" });
    await control.patchPaymentIntent(object.id, { amount_received: 900 });
    await control.clearFaults();
    await untilReturned(harness, review.id);
    expect(await lastReview(harness)).toMatchObject({ id: review.id, reason: "provider_amount_mismatch" });
    expect(await reasonsOf(harness, id)).toContain(
      "adopt_provider_object is not possible: found since: provider_amount_mismatch",
    );
    await resolve(harness, review.id, "adopt_provider_object", { version: 2 });
    expect(await untilStatus(harness, id, "succeeded")).toMatchObject({ amountCaptured: 900 });
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
  });

  test("keeps what it is about while the provider does not answer any more", async () => {
    const harness = await stage.start({ env: IMPATIENT });
    const { control } = harness.sandbox;
    const { review } = await silentProvider(harness);
    const { payment_intent: object } = await onlyObject(harness);
    await control.patchPaymentIntent(object.id, { amount: 900 });
    await control.clearFaults();
    await untilReview(harness, "provider_amount_mismatch");
    const match = { call: "payment_intents.retrieve" };
    await control.addFault({ match, times: null, fault: { type: "error", status: 503 } });
    const [last] = (await control.listRequests()).slice(-1);
    const since = { method: "GET", after_sequence: last?.sequence ?? 0 };
    await control.waitForRequests({ filter: since, count: 3 });
    expect(await lastReview(harness)).toMatchObject({ id: review.id, reason: "provider_amount_mismatch" });
  });
});

describe("a payment whose object the provider does not know any more", () => {
  const FORGETFUL = { ...IMPATIENT, PROVIDER_KEY_LIFETIME_MS: "2500", ATTEMPT_RETRY_BUDGET_MS: "2000" };

  test("is ended by a person once no key of ours can bring it back, for good, and holds its order id", async () => {
    const harness = await stage.start({ env: FORGETFUL });
    const { control } = harness.sandbox;
    const gone = { type: "error", status: 404 } as const;
    await control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "none" },
    });
    await control.addFault({ match: { call: "payment_intents.retrieve" }, times: null, fault: gone });
    const key = newKey();
    const input = { amount: 4_200, merchant_order_id: "order-gone" };
    const { id } = documentOf(await pay(harness, { key, input, waitMs: 0 }));
    const review = await untilReview(harness, "provider_object_missing");
    const { payment_intent: object } = await onlyObject(harness);
    await control.patchPaymentIntent(object.id, { metadata: { payment_attempt_id: "att_nobody" } });
    await expect(resolve(harness, review.id, "mark_not_performed")).rejects.toMatchObject({
      code: "resolution_not_allowed",
    });
    await until(
      "keys past their lifetime",
      () => allowedIn(harness, review.id),
      (allowed) => allowed.includes("mark_not_performed"),
    );
    await resolve(harness, review.id, "mark_not_performed");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({
      status: "failed",
      failure: { code: "provider_object_missing", retry: "new_key" },
    });
    expect(outcomeOf(await pay(harness, { key, input }))).toBe("402 payment_rejected");
    await expect(pay(harness, { input })).rejects.toMatchObject({ code: "merchant_order_id_taken" });
    expect(await instructionsLeft(harness)).toBe(0);
    // As what is gone is: nobody can pay it.
    await control.patchPaymentIntent(object.id, { status: "canceled" });
  });
});
