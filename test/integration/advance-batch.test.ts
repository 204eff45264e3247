import { expect, test } from "vitest";
import type { ChargeView } from "../../src/domain/charge-change.js";
import { unchanged } from "../../src/domain/charge-change.js";
import { IllegalTransition } from "../../src/domain/transition.js";
import { createAdvanceBatch } from "../../src/operations/advance-batch.js";
import { recordOutcome } from "../../src/operations/record-outcome.js";
import { claimAttempts } from "../../src/store/attempts.js";
import { type Harness, pay } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

async function claimedViews(harness: Harness, count: number): Promise<ChargeView[]> {
  const { deps } = harness;
  await Promise.all(Array.from({ length: count }, () => pay(harness, { waitMs: 0 })));
  const claimed = await claimAttempts(deps.db.sql, {
    owner: deps.workerName,
    limit: count,
    leaseMs: 60_000,
    retryBudgetMs: 120_000,
    account: null,
    livemode: false,
    tells: deps.recovery.tells,
    which: "due",
  });
  const policy = {
    retryBudgetMs: 120_000,
    keyLifetimeMs: 82_800_000,
    reviewAfterMs: 86_400_000,
    customerActionExpiryMs: 86_400_000,
    retry: { firstMs: 10, mostMs: 10 },
    follow: { firstMs: 10, mostMs: 10 },
    random: () => 0,
  };
  return claimed.map(({ attempt, payment, refund, claimedAt }) => ({
    attempt,
    payment,
    refund,
    now: claimedAt,
    policy,
    recovering: false,
    earlierRuns: "harmless",
  }));
}

async function letWork(harness: Harness): Promise<void> {
  await harness.deps.db
    .sql`update attempts set lease_expires_at = null, due_at = now() where due_at is not null`;
  await harness.another();
}

const WAIT = {
  attemptEvents: [],
  paymentEvent: null,
  payment: {},
  reason: "test",
  review: null,
  note: null,
} as const;

test("outcomes that are recorded together share a statement, and a stale one among them is refused alone", async () => {
  const harness = await stage.start({ workers: [] });
  const views = await claimedViews(harness, 3);
  const [first, stale, last] = views;
  if (first === undefined || stale === undefined || last === undefined)
    throw new Error("three were accepted");
  const deps = { ...harness.deps, advances: createAdvanceBatch(harness.deps.db, harness.deps.recovery) };
  const record = (view: ChargeView) =>
    recordOutcome(
      deps,
      view,
      { ...WAIT, attempt: unchanged(view.attempt), then: { type: "wait", ms: 60_000 } },
      { sentAt: null },
    );
  const late = { ...stale, attempt: { ...stale.attempt, fence: stale.attempt.fence - 1 } };
  const recorded = await Promise.all([record(first), record(late), record(last)]);
  expect(recorded.map((one) => one !== null)).toEqual([true, false, true]);
  const rows = await harness.deps.db
    .sql`select distinct xmin::text from attempts where lease_expires_at is null`;
  expect(rows).toHaveLength(1);
  await letWork(harness);
});

test("a decision that a machine has no edge for throws and writes nothing", async () => {
  const harness = await stage.start({ workers: [] });
  const [view] = await claimedViews(harness, 1);
  if (view === undefined) throw new Error("one was accepted");
  const change = {
    ...WAIT,
    attemptEvents: ["FOLLOW"] as const,
    attempt: unchanged(view.attempt),
    then: { type: "end" } as const,
  };
  await expect(recordOutcome(harness.deps, view, change, { sentAt: null })).rejects.toThrow(
    IllegalTransition,
  );
  const [row] = await harness.deps.db.sql`select state, due_at is null as ended from attempts`;
  expect(row).toMatchObject({ state: "started", ended: false });
  await letWork(harness);
});
