import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Review } from "../../src/domain/review-document.js";
import { readTimeline } from "../../src/store/payments.js";
import { readReviewTimeline } from "../../src/store/reviews.js";
import { documentOf, type Harness, pay, startHarness } from "../support/harness.js";

/** Ids are made by the clocks of many processes: here the one of the later entry was behind. */
const ENTRIES = [
  { id: "tl_c", reason: "first", minutes: 1 },
  { id: "tl_a", reason: "second", minutes: 2 },
  { id: "tl_b", reason: "third", minutes: 3 },
];

let harness: Harness;
let paymentId: string;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
  const { sql } = harness.deps.db;
  paymentId = documentOf(await pay(harness, { waitMs: 0 })).id;
  await sql`delete from timeline where payment_id = ${paymentId}`;
  for (const { id, reason, minutes } of ENTRIES) {
    await sql`insert into timeline (tenant_id, payment_id, id, kind, reason, attempt_id, at)
              values (${harness.caller.tenantId}, ${paymentId}, ${id}, 'question', ${reason}, 'att_1',
                      now() + ${minutes}::int * interval '1 minute')`;
  }
});
afterAll(() => harness.stop());

const page = (limit: number, after: string | null = null) =>
  readTimeline(harness.deps.db.sql, harness.caller.tenantId, paymentId, { limit, after });

describe("a timeline", () => {
  test("is told in the order in which it was written by the database's clock, not in that of its ids", async () => {
    expect((await page(10)).map(({ reason }) => reason)).toEqual(["first", "second", "third"]);
  });

  test("is read page by page in that order, and no entry is left out or told twice", async () => {
    const read: string[] = [];
    for (let after: string | null = null; ; ) {
      const [entry] = await page(1, after);
      if (entry === undefined) break;
      read.push(entry.reason);
      after = entry.id;
    }
    expect(read).toEqual(["first", "second", "third"]);
  });

  test("shows its last entries beside a review", async () => {
    const review = { tenantId: harness.caller.tenantId, paymentId, attemptId: "att_1" } as Review;
    const last = await readReviewTimeline(harness.deps.db.sql, review, 2);
    expect(last.map(({ reason }) => reason)).toEqual(["second", "third"]);
  });
});
