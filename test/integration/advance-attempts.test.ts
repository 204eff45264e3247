import { describe, expect, test } from "vitest";
import { type AdvanceRow, advanceAttempts } from "../../src/store/advance.js";
import { type ClaimedAttempt, claimAttempts } from "../../src/store/attempts.js";
import { type Harness, newKey, pay } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();
const RETENTION_MS = 3_600_000;

interface Claimed {
  readonly harness: Harness;
  readonly claimed: readonly ClaimedAttempt[];
}

/** Attempts claimed by hand, with nobody else at work. */
async function claimedByHand(count = 1): Promise<Claimed> {
  const harness = await stage.start({ workers: [] });
  await Promise.all(Array.from({ length: count }, () => pay(harness, { waitMs: 0 })));
  const account = harness.deps.account.current();
  const claimed = await claimAttempts(harness.deps.db.sql, {
    owner: "one",
    limit: count,
    leaseMs: 60_000,
    retryBudgetMs: 120_000,
    account: account.type === "known" ? account.accountId : null,
    livemode: false,
    tells: harness.deps.recovery.tells,
    which: "due",
  });
  return { harness, claimed };
}

/** A write of everything at once: the attempt ends, the payment is rejected, the key is finished. */
function endOf({ attempt, payment }: ClaimedAttempt, changes: Partial<AdvanceRow> = {}): AdvanceRow {
  const failure = {
    code: "parameter_invalid",
    decline_code: null,
    message: null,
    advice_code: null,
    retry: "new_key",
  };
  return {
    tenant_id: attempt.tenantId,
    attempt_id: attempt.id,
    payment_id: payment.id,
    fence: attempt.fence,
    from_state: attempt.state,
    to_state: "completed",
    from_version: payment.version,
    provider_payment_id: null,
    unresolved: false,
    key_spent: false,
    fence_round: 1,
    waits: 0,
    wait_reason: null,
    unknown_since: null,
    sending: null,
    in_place_only: false,
    lease_ms: null,
    due_in_ms: null,
    payment: {
      from_status: payment.status,
      to_status: "failed",
      next_action: null,
      failure,
      amount_capturable: 0,
      amount_captured: 0,
      amount_refunded: 0,
      refund_reserved: 0,
      open_effect: null,
      authorized_until: null,
      cancellation_reason: null,
      holds_order_id: false,
      updated_at: "2026-01-01T00:00:00.000Z",
    },
    refund: null,
    ledger: [],
    merchant_order_id: payment.merchantOrderId,
    operation: attempt.operation,
    idempotency_key: attempt.idempotencyKey,
    run: attempt.run,
    key: {
      state: "completed",
      status: 402,
      headers: { Location: "/v1/payments/x" },
      body: '{"b":1,"10":2}',
      retention_ms: RETENTION_MS,
    },
    timeline: [timelineRow("rejected", payment.status, "failed")],
    // Sorts after the one of the accept.
    event: { id: `evt_z${newKey()}`, type: "payment.failed", sequence: payment.version + 1, data: "{}" },
    review: null,
    close_review: true,
    instruction: null,
    ...changes,
  };
}

function timelineRow(reason: string, from: string | null, to: string | null): AdvanceRow["timeline"][number] {
  return {
    // Ids of one payment sort by time; this one comes after any that the code makes.
    id: `tl_z${newKey()}`,
    refund_id: null,
    kind: to === null ? "question" : "transition",
    from_status: from,
    to_status: to,
    reason,
    call: null,
    provider_key: null,
    outcome: null,
    provider_request_id: null,
    sent_at: null,
  };
}

/** All rows that such a write touches, as text. */
async function everything({ deps: { db } }: Harness): Promise<Record<string, unknown>> {
  return {
    attempts: [...(await db.sql`select * from attempts order by id`)],
    payments: [...(await db.sql`select * from payments order by id`)],
    keys: [...(await db.sql`select * from idempotency_keys order by key`)],
    timeline: [...(await db.sql`select * from timeline order by id`)],
    outbox: [...(await db.sql`select * from outbox order by id`)],
    reviews: [...(await db.sql`select * from reviews order by id`)],
  };
}

async function end({ harness, claimed }: Claimed): Promise<void> {
  const results = await advanceAttempts(
    harness.deps.db.sql,
    claimed.map((one) => endOf(one)),
  );
  expect(results.filter((result) => result === null)).toEqual([]);
}

describe("a write of progress", () => {
  test("writes attempt, payment, key, timeline and event together", async () => {
    const staged = await claimedByHand();
    const { harness, claimed } = staged;
    const [one] = claimed as [ClaimedAttempt];
    const [advanced] = await advanceAttempts(harness.deps.db.sql, [endOf(one)]);
    expect(advanced?.dueAt).toBeNull();
    const left = (advanced?.keyExpiresAt?.getTime() ?? 0) - Date.now();
    expect(Math.abs(left - RETENTION_MS)).toBeLessThan(60_000);
    expect(await everything(harness)).toMatchObject({
      attempts: [{ state: "completed", lease_owner: null, lease_expires_at: null, due_at: null }],
      payments: [{ status: "failed", version: 2 }],
      keys: [{ state: "completed", response_status: 402, response_body: '{"b":1,"10":2}' }],
      outbox: [{ type: "payment.created" }, { type: "payment.failed" }],
    });
  });

  test.each<[string, Partial<AdvanceRow>]>([
    ["a fence that has moved on", { fence: 0 }],
    ["a fence that nobody holds yet", { fence: 2 }],
    ["a state that is no longer the attempt's", { from_state: "started" }],
    ["a version of the payment that is no longer its own", { from_version: 0 }],
    ["another tenant", { tenant_id: "ten_other" }],
    ["another payment", { payment_id: "pay_other" }],
  ])("that names %s writes nothing at all", async (_name, changes) => {
    const staged = await claimedByHand();
    const { harness, claimed } = staged;
    const [one] = claimed as [ClaimedAttempt];
    const before = await everything(harness);
    const review = { id: "rev_stale", reason: "stale", yields_to: "" };
    expect(await advanceAttempts(harness.deps.db.sql, [endOf(one, { ...changes, review })])).toEqual([null]);
    expect(await everything(harness)).toEqual(before);
    await end(staged);
  });

  test("in a batch beside one that has lost its fence is written all the same, and that one is not", async () => {
    const { harness, claimed } = await claimedByHand(3);
    const [first, lost, last] = claimed as [ClaimedAttempt, ClaimedAttempt, ClaimedAttempt];
    const rows = [endOf(first), endOf(lost, { fence: 7 }), endOf(last)];
    const results = await advanceAttempts(harness.deps.db.sql, rows);
    expect(results.map((result) => result === null)).toEqual([false, true, false]);
    const statuses = await harness.deps.db.sql<
      { id: string; status: string }[]
    >`select id, status from payments`;
    expect(statuses.filter((row) => row.status === "processing").map((row) => row.id)).toEqual([
      lost.payment.id,
    ]);
    await end({ harness, claimed: [lost] });
  });

  test("of two with one fence at once, one is written and the other told", async () => {
    const { harness, claimed } = await claimedByHand();
    const [one] = claimed as [ClaimedAttempt];
    const other = await harness.another({ workers: [] });
    const both = await Promise.all(
      [harness.deps, other.deps].map((deps) => advanceAttempts(deps.db.sql, [endOf(one)])),
    );
    expect(both.flat().filter((result) => result === null)).toHaveLength(1);
    expect(await harness.deps.db.sql`select 1 from outbox`).toHaveLength(2);
  });

  test("that waits for a take-over finds the fence moved when it is let in", async () => {
    const { harness, claimed } = await claimedByHand();
    const [one] = claimed as [ClaimedAttempt];
    const other = await harness.another({ workers: [] });
    const { sql } = harness.deps.db;
    const late = await sql.begin(async (tx) => {
      await tx`update attempts set fence = fence + 1`;
      const write = advanceAttempts(other.deps.db.sql, [endOf(one)]);
      await expect
        .poll(
          async () =>
            (
              await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
            ).length,
        )
        .toBe(1);
      return { write };
    });
    expect(await late.write).toEqual([null]);
    expect(await sql`select 1 from payments where status = 'processing'`).toHaveLength(1);
    await end({ harness, claimed: [{ ...one, attempt: { ...one.attempt, fence: 2 } }] });
  });

  test("does not touch a key that is in another run, or finished", async () => {
    const { harness, claimed } = await claimedByHand();
    const [one] = claimed as [ClaimedAttempt];
    const { sql } = harness.deps.db;
    const answered = { state: "completed", run: 1, response_status: 201, response_body: "first" };
    await sql`update idempotency_keys set state = 'completed', response_status = 201, response_body = 'first',
                     expires_at = now() + interval '1 day'`;
    const [advanced] = await advanceAttempts(sql, [endOf(one)]);
    expect(advanced).toEqual({ dueAt: null, keyExpiresAt: null });
    expect(await sql`select * from idempotency_keys`).toMatchObject([answered]);
  });

  test("keeps the first object id and the first time of each call", async () => {
    const { harness, claimed } = await claimedByHand();
    const [one] = claimed as [ClaimedAttempt];
    const { sql } = harness.deps.db;
    const going = {
      to_state: "charge_created",
      lease_ms: 60_000,
      payment: null,
      key: null,
      event: null,
      close_review: false,
    };
    const steps: Partial<AdvanceRow>[] = [
      { ...going, provider_payment_id: "pi_first", timeline: [] },
      { ...going, from_state: "charge_created", to_state: "confirming", sending: "confirm", timeline: [] },
    ];
    for (const step of steps) expect(await advanceAttempts(sql, [endOf(one, step)])).not.toEqual([null]);
    const [before] =
      await sql`select provider_payment_id, create_first_sent_at, confirm_first_sent_at from attempts`;
    expect(before).toMatchObject({ provider_payment_id: "pi_first" });
    const again = { ...going, from_state: "confirming", to_state: "confirming", timeline: [] };
    await advanceAttempts(sql, [
      endOf(one, { ...again, sending: "confirm", provider_payment_id: "pi_other" }),
    ]);
    await advanceAttempts(sql, [endOf(one, { ...again, sending: "create" })]);
    const [after] =
      await sql`select provider_payment_id, create_first_sent_at, confirm_first_sent_at from attempts`;
    expect(after).toEqual(before);
    await sql`update attempts set provider_payment_id = null`;
    await advanceAttempts(sql, [endOf(one, { from_state: "confirming" })]);
  });

  test("opens no second review beside an open one", async () => {
    const { harness, claimed } = await claimedByHand();
    const [one] = claimed as [ClaimedAttempt];
    const { sql } = harness.deps.db;
    const asks: Partial<AdvanceRow> = {
      to_state: one.attempt.state,
      due_in_ms: 60_000,
      payment: null,
      key: null,
      event: null,
      timeline: [],
      close_review: false,
    };
    const asking = (id: string, reason: string, yieldsTo: string | null) =>
      advanceAttempts(sql, [endOf(one, { ...asks, review: { id, reason, yields_to: yieldsTo } })]);
    await asking("rev_1", "first", null);
    await asking("rev_2", "second", "first,other");
    await asking("rev_3", "third", null);
    expect(await sql`select id, reason from reviews`).toEqual([{ id: "rev_1", reason: "first" }]);
    await asking("rev_4", "more", "other");
    await asking("rev_5", "first", "");
    const [review] = await sql`select id, reason, history::text from reviews`;
    expect(review).toMatchObject({ id: "rev_1", reason: "more" });
    expect(JSON.parse(String(review?.["history"]))).toEqual([
      { reason: "first", until: expect.stringMatching(/^20/) as string },
    ]);
    await end({ harness, claimed });
    expect(await sql`select 1 from reviews where closed_by = 'fact'`).toHaveLength(1);
  });
});
