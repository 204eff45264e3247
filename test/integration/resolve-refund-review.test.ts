import { describe, expect, test } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { paid, refund, untilRefund } from "../support/effects.js";
import { type Harness, newKey, until } from "../support/harness.js";
import {
  allowedIn,
  IMPATIENT,
  lastReview,
  reasonsOf,
  resolve,
  untilClosed,
  untilReturned,
  untilReview,
} from "../support/reviews.js";
import { HASTY, useStage } from "../support/stage.js";

const stage = useStage();

describe("mark_not_performed", () => {
  test("of a refund takes a complete list made after the key's lifetime, and frees amount and key", async () => {
    const env = { ...IMPATIENT, PROVIDER_KEY_LIFETIME_MS: "2500", ATTEMPT_RETRY_BUDGET_MS: "2000" };
    const harness = await stage.start({ env });
    const { control } = harness.sandbox;
    const payment = await paid(harness);
    await control.addFault({ match: { call: "refunds.create" }, fault: { type: "reset", effect: "none" } });
    await control.addFault({
      match: { call: "refunds.list" },
      times: null,
      fault: { type: "error", status: 503 },
    });
    const key = newKey();
    await refund(harness, payment, 3_000, { key, waitMs: 0 });
    const review = await untilReview(harness, "outcome_unknown");
    expect(await allowedIn(harness, review.id)).toEqual(["adopt_provider_object", "retry_same_key"]);
    await expect(resolve(harness, review.id, "mark_not_performed")).rejects.toMatchObject({
      code: "resolution_not_allowed",
      message: expect.stringContaining("adopt_provider_object, retry_same_key") as string,
    });
    await until(
      "a key past its lifetime",
      () => allowedIn(harness, review.id),
      (allowed) => allowed.includes("mark_not_performed"),
    );
    await resolve(harness, review.id, "mark_not_performed");
    expect(await getPayment(harness.deps, harness.caller, payment)).toMatchObject({ refundReserved: 3_000 });
    await control.clearFaults();
    await untilRefund(harness, (await refundIds(harness))[0] ?? "", "failed");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    expect(await getPayment(harness.deps, harness.caller, payment)).toMatchObject({ refundReserved: 0 });
    const again = await refund(harness, payment, 3_000, { key });
    expect(again).toMatchObject({ type: "final", response: { status: 201 } });
    expect(await control.listRefunds()).toHaveLength(1);
  });

  test("of a refund that the list has after all is refuted by it", async () => {
    const env = { ...IMPATIENT, PROVIDER_KEY_LIFETIME_MS: "2500", ATTEMPT_RETRY_BUDGET_MS: "2000" };
    const harness = await stage.start({ env });
    const { control } = harness.sandbox;
    const payment = await paid(harness);
    await control.addFault({
      match: { call: "refunds.create" },
      fault: { type: "reset", effect: "applied" },
    });
    await control.addFault({
      match: { call: "refunds.list" },
      times: null,
      fault: { type: "error", status: 503 },
    });
    await refund(harness, payment, 3_000, { waitMs: 0 });
    const review = await untilReview(harness, "outcome_unknown");
    await until(
      "a key past its lifetime",
      () => allowedIn(harness, review.id),
      (allowed) => allowed.includes("mark_not_performed"),
    );
    await resolve(harness, review.id, "mark_not_performed");
    await control.clearFaults();
    await untilRefund(harness, (await refundIds(harness))[0] ?? "", "succeeded");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "fact" });
  });
});

describe("retry_same_key", () => {
  /** A refund whose key the provider answers with a stored error. */
  async function spentRefund(harness: Harness): Promise<string> {
    const payment = await paid(harness);
    await harness.sandbox.control.addFault({
      match: { call: "refunds.create" },
      fault: { type: "stored_error", effect: "none" },
    });
    await refund(harness, payment, 3_000, { waitMs: 0 });
    return payment;
  }

  test("sends a refund once more under its own key, and closes with what that brought", async () => {
    const harness = await stage.start({ env: HASTY });
    await spentRefund(harness);
    const review = await untilReview(harness, "provider_key_spent");
    // The provider has put it right on its side.
    await harness.sandbox.control.pruneIdempotencyKeys();
    await resolve(harness, review.id, "retry_same_key");
    await untilRefund(harness, (await refundIds(harness))[0] ?? "", "succeeded");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    const log = await harness.sandbox.control.listRequests({ call: "refunds.create" });
    expect(new Set(log.map((entry) => entry.idempotency_key)).size).toBe(1);
    expect(await harness.sandbox.control.listRefunds()).toHaveLength(1);
  });

  test("that meets the stored error again is given back, and a person decides anew", async () => {
    const harness = await stage.start({ env: HASTY });
    const payment = await spentRefund(harness);
    const review = await untilReview(harness, "provider_key_spent");
    await resolve(harness, review.id, "retry_same_key");
    await untilReturned(harness, review.id);
    expect(await reasonsOf(harness, payment)).toContain("retry_same_key is not possible: stored_error");
    expect(await lastReview(harness)).toMatchObject({ id: review.id, closed_at: null });
    const sends = await harness.sandbox.control.listRequests({ call: "refunds.create" });
    expect(sends.map((entry) => entry.replayed)).toEqual([false, true, true]);
    expect(await harness.sandbox.control.listRefunds()).toEqual([]);
  });
});

async function refundIds({ deps }: Harness): Promise<string[]> {
  return (await deps.db.sql<{ id: string }[]>`select id from refunds order by id`).map((row) => row.id);
}
