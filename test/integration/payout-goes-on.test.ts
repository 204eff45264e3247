import { afterAll, beforeAll, expect, test } from "vitest";
import type { PayoutLookupOutcome } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  eventOf,
  inboxOf,
  NO_EVIDENCE,
  OPEN_INBOX,
  randomId,
  seedPayment,
  storeEvent,
  withProvider,
} from "../support/provider-events.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [], env: OPEN_INBOX });
});
afterAll(() => harness.stop());

test("a payout of more pages than one claim has time for is due again at once, and a worker is told", async () => {
  const { objectId } = await seedPayment(harness);
  const getPayout = (): Promise<PayoutLookupOutcome> =>
    Promise.resolve({
      type: "found",
      movements: [{ transactionId: randomId("txn"), chargeId: objectId, amount: 1, currency: "usd" }],
      next: "txn_next",
      evidence: NO_EVIDENCE,
    });
  let told = 0;
  const { deps } = harness;
  const due = Object.assign(Object.create(deps.due) as Deps["due"], { eventStored: () => (told += 1) });
  await storeEvent(harness, eventOf("payout.reconciliation_completed", { id: randomId("po") }));
  // No time for a second page, and so no second claim of its own accord.
  const settings = { ...deps.settings, attemptLeaseMs: 0, providerEventMostTries: 1 };
  let claims = 0;
  const probe = async (point: string) => {
    if (point === "before_payout_ended") claims += 1;
  };
  await applyDue({ ...withProvider(deps, { getPayout }), due, settings, probe });
  expect(told).toBeGreaterThan(0);
  expect(claims).toBe(0);
  const [event] = await inboxOf(harness);
  expect(event).toMatchObject({ state: "pending" });
});
