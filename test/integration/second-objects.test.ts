import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ProviderCharge } from "../../src/domain/provider.js";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import { showReview } from "../../src/operations/read-reviews.js";
import { resolveReviewByCommand } from "../../src/operations/resolve-review.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
  chargeEvent,
  emptyInbox,
  NO_EVIDENCE,
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

async function openReviewsOf({ tenantId, paymentId }: Seeded) {
  const open = await listOpenReviews(harness.deps, tenantId, 100);
  return open.filter((review) => review.paymentId === paymentId);
}

const RESTING = { due_in_s: null, nudged: false };

describe("a second object with an attempt's marker", () => {
  const charge = (amounts: { amountCaptured: number; amountCapturable: number }) => async () => ({
    type: "found" as const,
    charge: amounts as ProviderCharge,
    evidence: NO_EVIDENCE,
  });

  test("is nothing while no money has moved on it", async () => {
    await storeEvent(harness, chargeEvent({ ...ours, objectId: randomId("pi") }, "payment_intent.created"));
    const getCharge = charge({ amountCaptured: 0, amountCapturable: 0 });
    await applyDue(withProvider(harness.deps, { getCharge }));
    expect(await openReviewsOf(ours)).toEqual([]);
    expect(await outcomesOf(harness)).toEqual(["applied: provider_object_stray"]);
  });

  test.each([
    { amountCaptured: 4_200, amountCapturable: 0 },
    { amountCaptured: 0, amountCapturable: 4_200 },
  ])("on which money has moved (%j) is a person's to judge", async (amounts) => {
    await storeEvent(harness, chargeEvent({ ...ours, objectId: randomId("pi") }));
    await applyDue(withProvider(harness.deps, { getCharge: charge(amounts) }));
    expect(await openReviewsOf(ours)).toMatchObject([{ reason: "provider_object_stray" }]);
    expect(await attemptRow(harness, ours)).toMatchObject(RESTING);
  });

  test("has a review beside the attempt's own and that of a further object, which no fact of the attempt ends", async () => {
    const { sql } = harness.deps.db;
    await sql`insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
      values (${ours.tenantId}, 'rev_first', ${ours.paymentId}, ${ours.attemptId}, 'outcome_unknown')`;
    const strays = [randomId("pi"), randomId("pi")];
    const deps = withProvider(harness.deps, {
      getCharge: charge({ amountCaptured: 1, amountCapturable: 0 }),
    });
    for (const objectId of [...strays, ...strays])
      await storeEvent(harness, chargeEvent({ ...ours, objectId }));
    await applyDue(deps);
    expect(await outcomesOf(harness)).toEqual(
      Array.from({ length: 4 }, () => "applied: provider_object_stray"),
    );
    const open = await openReviewsOf(ours);
    expect(open.map(({ objectId, reason }) => `${reason} ${objectId ?? "own"}`).toSorted()).toEqual(
      ["outcome_unknown own", ...strays.map((id) => `provider_object_stray ${id}`)].toSorted(),
    );
  });

  test("is dismissed at once, by whoever is first, and nothing is asked of the attempt", async () => {
    const { sql } = harness.deps.db;
    const objectId = randomId("pi");
    await storeEvent(harness, chargeEvent({ ...ours, objectId }));
    await applyDue(
      withProvider(harness.deps, { getCharge: charge({ amountCaptured: 1, amountCapturable: 0 }) }),
    );
    const [review] = await openReviewsOf(ours);
    const id = review?.id ?? "";
    const evidence = await showReview(harness.deps, id);
    expect(evidence?.allowed.map((one) => one.resolution)).toEqual(["dismiss"]);
    const decision = { reason: "given back by hand", providerObjectId: null, version: null };
    await expect(
      resolveReviewByCommand(harness.deps, id, { ...decision, resolution: "adopt_provider_object" }),
    ).rejects.toMatchObject({ code: "resolution_not_allowed" });
    const twice = await Promise.allSettled(
      [1, 2].map(() => resolveReviewByCommand(harness.deps, id, { ...decision, resolution: "dismiss" })),
    );
    expect(twice.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect((await showReview(harness.deps, id))?.review).toMatchObject({
      closedBy: "person",
      resolution: "dismiss",
      resolvedBy: "command-line",
    });
    expect(await attemptRow(harness, ours)).toMatchObject(RESTING);
    expect(await sql`select 1 from attempts where instruction is not null`).toEqual([]);
    const told = await sql`
      select reason, outcome from timeline where kind = 'request' and payment_id = ${ours.paymentId}`;
    expect(told).toEqual([{ reason: "dismiss requested: given back by hand", outcome: "by command-line" }]);
  });
});
