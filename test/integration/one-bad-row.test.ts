import { afterAll, beforeAll, expect, test } from "vitest";
import { type Change, type ChargeView, unchanged } from "../../src/domain/charge-change.js";
import { recordOutcome } from "../../src/operations/record-outcome.js";
import { readAttempt } from "../../src/store/attempts.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
afterAll(() => harness.stop());

/** PostgreSQL stores no NUL in a text: the statement that brings one fails whole. */
const UNSTORABLE = "an answer with a \u0000 in it";

async function acceptedView(): Promise<ChargeView> {
  const { deps, caller } = harness;
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  const [row] = await deps.db.sql<{ id: string }[]>`select id from attempts where payment_id = ${id}`;
  const read = await readAttempt(deps.db.sql, caller.tenantId, row?.id ?? "");
  if (read === null) throw new Error("it was accepted");
  return read as unknown as ChargeView;
}

/** Waits for another reason, which is written down. */
function waitsFor({ attempt }: ChargeView, reason: string): Change {
  return {
    attemptEvents: [],
    attempt: { ...unchanged(attempt), waitReason: reason },
    paymentEvent: null,
    payment: {},
    reason: "test",
    review: null,
    note: null,
    then: { type: "wait", ms: 60_000 },
  };
}

test("of outcomes that share a statement, one that cannot be stored fails alone, and the others are written", async () => {
  const { deps } = harness;
  const views = [await acceptedView(), await acceptedView(), await acceptedView()];
  const reasons = ["first", UNSTORABLE, "last"];
  const written = await Promise.allSettled(
    views.map((view, at) => recordOutcome(deps, view, waitsFor(view, reasons[at] ?? ""), { sentAt: null })),
  );
  expect(written.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const rows = await deps.db.sql<{ id: string; wait_reason: string | null }[]>`select * from attempts`;
  const reasonOf = new Map(rows.map((row) => [row.id, row.wait_reason]));
  expect(views.map(({ attempt }) => reasonOf.get(attempt.id))).toEqual(["first", null, "last"]);
});

test("of requests that share a statement, one that cannot be stored fails alone, and the others are accepted", async () => {
  const { sql } = harness.deps.db;
  const keys = [newKey(), `${newKey()}\u0000`, newKey()];
  const answers = await Promise.allSettled(keys.map((key) => pay(harness, { key, waitMs: 0 })));
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const stored =
    await sql`select key from idempotency_keys where key in ${sql([keys[0] ?? "", keys[2] ?? ""])}`;
  expect(stored).toHaveLength(2);
});
