import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DisputeLookupOutcome } from "../../src/domain/provider.js";
import { type Harness, startHarness } from "../support/harness.js";
import { DisputeProvider, disputeOf, disputeRowsOf } from "../support/provider-disputes.js";
import {
  applyDue,
  emptyInbox,
  eventOf,
  inboxOf,
  OPEN_INBOX,
  outcomesOf,
  randomId,
  type Seeded,
  seedPayment,
  storeEvent,
  withProvider,
} from "../support/provider-events.js";

let harness: Harness;
let ours: Seeded;
beforeAll(async () => {
  harness = await startHarness({ workers: [], env: OPEN_INBOX });
});
beforeEach(async () => {
  await emptyInbox(harness);
  ours = await seedPayment(harness);
});
afterAll(() => harness.stop());

const rowsOf = (seeded: Seeded) => disputeRowsOf(harness, seeded);

describe("a dispute that is not simply ours", () => {
  test("is nothing to us where its charge is somebody else's, and leaves no row", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { chargeId: null }));
    await provider.tells("created");
    await applyDue(provider.deps);
    provider.becomes({ chargeId: randomId("pi") });
    await storeEvent(harness, eventOf("charge.dispute.updated", { id: provider.dispute.id, charge: "ch_1" }));
    await applyDue(provider.deps);
    expect(await inboxOf(harness)).toEqual([]);
  });

  test("does not touch a payment of the other mode", async () => {
    ours = await seedPayment(harness, { livemode: true });
    const provider = new DisputeProvider(harness, disputeOf(ours));
    await provider.tells("created");
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({ version: 1, disputes: [], outbox: [] });
    expect(await outcomesOf(harness)).toEqual(["applied: other_mode"]);
  });

  test("in a status that is not known yet is kept, and read again", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { status: "unrecognized" }));
    await provider.tells("updated");
    await applyDue(provider.deps);
    expect(await outcomesOf(harness)).toEqual(["pending: provider_status_unrecognized"]);
    expect(await rowsOf(ours)).toMatchObject({ version: 1, disputes: [] });
  });

  test("of an amount that is no whole number of ours is a person's to judge", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { amount: null }));
    await provider.tells("created");
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({
      version: 1,
      disputes: [],
      reviews: ["provider_amount_mismatch"],
    });
  });

  test.each(["timeout", "server_error", "rate_limited"] as const)(
    "that the provider does not show (%s) is asked for again",
    async (reason) => {
      const provider = new DisputeProvider(harness, disputeOf(ours));
      await provider.tells("created");
      const getDispute = async (): Promise<DisputeLookupOutcome> => ({
        type: "unanswered",
        reason,
        retryAfterMs: 60_000,
        evidence: { httpStatus: null, code: null, requestId: null },
      });
      await applyDue(withProvider(harness.deps, { getDispute }));
      const [row] = await harness.deps.db.sql<{ wait: number; outcome: string }[]>`
      select extract(epoch from due_at - now())::float8 as wait, outcome from provider_events`;
      expect(row?.outcome).toBe(`unanswered: ${reason}`);
      expect(row?.wait).toBeGreaterThan(50);
      expect(row?.wait).toBeLessThanOrEqual(60);
    },
  );
});
