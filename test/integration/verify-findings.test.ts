import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Harness, startHarness, untilStatus } from "../support/harness.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingsOf,
  findingWords,
  payOne,
  runsOf,
  untilSettled,
} from "../support/reconciliation.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

describe("a payment that is behind its object", () => {
  test("is brought up to it by its own attempt, and the finding is repaired in the same run", async () => {
    const { paymentId, objectId } = await payOne(harness, { input: { capture_method: "manual" } });
    await harness.sandbox.control.dashboard.capture(objectId);
    await untilSettled(harness);
    await compareNow(harness.deps);
    await untilStatus(harness, paymentId, "succeeded");
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} repaired`]);
    expect(await findingsOf(harness)).toMatchObject([
      { payment_id: paymentId, detail: "the payment is authorized, the object succeeded" },
    ]);
  });

  test("is not told of while its own change is younger than the lag", async () => {
    const { objectId } = await payOne(harness, { input: { capture_method: "manual" } });
    await untilSettled(harness);
    await harness.sandbox.control.dashboard.capture(objectId);
    await harness.deps.db.sql`update payments set updated_at = now()`;
    const stale = { ...harness.deps, settings: { ...harness.deps.settings, reconcileLagMs: 60_000 } };
    await compareNow(stale);
    expect(await findingWords(harness)).toEqual([]);
  });

  test("and whose provider does not answer stays open, and is repaired by a later run", async () => {
    const { paymentId, objectId } = await payOne(harness, { input: { capture_method: "manual" } });
    await harness.sandbox.control.dashboard.capture(objectId);
    await untilSettled(harness);
    const match = { call: "payment_intents.retrieve", object_id: objectId };
    await harness.sandbox.control.addFault({ match, times: null, fault: { type: "error", status: 500 } });
    await compareNow(harness.deps);
    expect(await runsOf(harness)).toMatchObject([
      {
        state: "completed",
        error: `not compared, since there was no answer about it that can be read: ${objectId}`,
      },
    ]);
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} open`]);
    await harness.sandbox.control.clearFaults();
    await untilStatus(harness, paymentId, "succeeded");
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} repaired`]);
  });
});

test("what differs no longer is gone after the next run, and opens again when it is back", async () => {
  const { objectId } = await payOne(harness);
  await untilSettled(harness);
  const words: string[][] = [];
  for (const amount of [4_300, 4_200, 4_300]) {
    await harness.sandbox.control.patchPaymentIntent(objectId, { amount });
    await compareNow(harness.deps);
    words.push(await findingWords(harness));
  }
  const [finding] = await findingsOf(harness);
  expect(words).toEqual(["open", "gone", "open"].map((state) => [`amount_differs ${objectId} ${state}`]));
  expect(finding).toMatchObject({ ours: expect.anything() as unknown });
});

test("what differs at one account is not looked at with another one's key: it would seem to be gone", async () => {
  const { objectId } = await payOne(harness);
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(objectId, { amount: 4_300 });
  await compareNow(harness.deps);
  const other = await harness.another({ env: COMPARING, workers: [], stripeKey: "sk_test_another" });
  expect(await other.comparison.accountOrThrow()).not.toBe(await harness.pawl.comparison.accountOrThrow());
  await compareNow(other.deps);
  expect(await findingWords(harness)).toEqual([`amount_differs ${objectId} open`]);
});
