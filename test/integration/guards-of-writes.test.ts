import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Change, type ChargeView, unchanged } from "../../src/domain/charge-change.js";
import { notPerformed } from "../../src/domain/charge-decisions.js";
import { effectNotPerformed } from "../../src/domain/effect-decisions.js";
import { recordOutcome, renewLease } from "../../src/operations/record-outcome.js";
import { readAttempt } from "../../src/store/attempts.js";
import { refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";

const ORDER_ID = "order-1";

let harness: Harness;
let view: ChargeView;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
beforeEach(async () => {
  const { sql } = harness.deps.db;
  await sql`delete from order_ids`;
  const { id } = documentOf(await pay(harness, { input: { merchant_order_id: ORDER_ID }, waitMs: 0 }));
  view = await viewOf(id, "charge");
});
afterAll(() => harness.stop());

async function viewOf(paymentId: string, kind: "charge" | "refund"): Promise<ChargeView> {
  const { deps, caller } = harness;
  const [row] = await deps.db.sql<{ id: string }[]>`
    select id from attempts where payment_id = ${paymentId} and kind = ${kind}`;
  const read = await readAttempt(deps.db.sql, caller.tenantId, row?.id ?? "");
  if (read === null) throw new Error("it was accepted");
  return read as unknown as ChargeView;
}

test.each([
  ["create", "charge", "create_unknown", "create_first_sent_at"],
  ["confirm", "charge", "charge_created", "confirm_first_sent_at"],
  ["fence", "charge", "confirm_unknown", "fence_first_sent_at"],
  ["capture", "capture", "send_unknown", "effect_first_sent_at"],
  ["cancel", "cancel", "send_unknown", "effect_first_sent_at"],
  ["refund", "refund", "send_unknown", "effect_first_sent_at"],
] as const)(
  "a %s that is about to be sent is written down: since when its key counts, and no other call's",
  async (call, kind, state, column) => {
    const { sql } = harness.deps.db;
    const attempt = { ...view.attempt, kind, state };
    await sql`update attempts set kind = ${kind}, state = ${state} where id = ${attempt.id}`;
    const aboutToSend: Change = {
      attemptEvents: [],
      attempt: unchanged(attempt),
      paymentEvent: null,
      payment: {},
      reason: "due",
      review: null,
      note: null,
      then: { type: "send", call },
    };
    const written = await recordOutcome(harness.deps, { ...view, attempt }, aboutToSend, { sentAt: null });
    expect(written).not.toBeNull();
    const [row] = await sql<Record<string, string | null>[]>`
    select create_first_sent_at, confirm_first_sent_at, fence_first_sent_at, effect_first_sent_at
      from attempts where id = ${attempt.id}`;
    const set = Object.entries(row ?? {}).filter(([, at]) => at !== null);
    expect(set.map(([name]) => name)).toEqual([column]);
  },
);

test("a lease is renewed whatever the payment has become meanwhile: it is the attempt that is held", async () => {
  const stale = { ...view, payment: { ...view.payment, version: view.payment.version + 7 } };
  expect(await renewLease(harness.deps, stale, false)).toBe(true);
});

describe("a payment that ends without effect", () => {
  test("leaves its order id to the payment that holds it by then", async () => {
    const { sql } = harness.deps.db;
    await sql`update order_ids set payment_id = 'pay_other' where merchant_order_id = ${ORDER_ID}`;
    expect(
      await recordOutcome(harness.deps, view, notPerformed(view, "test", null), { sentAt: null }),
    ).not.toBeNull();
    expect(await sql`select payment_id from order_ids`).toEqual([{ payment_id: "pay_other" }]);
  });

  test("gives its own order id back", async () => {
    await recordOutcome(harness.deps, view, notPerformed(view, "test", null), { sentAt: null });
    expect(await harness.deps.db.sql`select payment_id from order_ids`).toEqual([]);
  });

  test("does not touch its key where that runs again", async () => {
    const { sql } = harness.deps.db;
    const { idempotencyKey: key } = view.attempt;
    await sql`update idempotency_keys set run = 2 where key = ${key}`;
    await recordOutcome(harness.deps, view, notPerformed(view, "test", null), { sentAt: null });
    expect(await sql`select state, run, expires_at from idempotency_keys where key = ${key}`).toEqual([
      { state: "in_progress", run: 2, expires_at: null },
    ]);
  });
});

test("a refund that was written meanwhile is written no more by who read it before, nor is its payment", async () => {
  const { sql } = harness.deps.db;
  const { id } = view.payment;
  await sql`update attempts set state = 'completed', due_at = null, provider_payment_id = ${`pi_${id}`} where payment_id = ${id}`;
  await sql`update payments set status = 'succeeded', amount_captured = amount where id = ${id}`;
  await refund(harness, id, 1_000, { key: newKey(), waitMs: 0 });
  const read = await viewOf(id, "refund");
  await sql`update refunds set version = version + 1 where payment_id = ${id}`;
  const change = effectNotPerformed(read, "test", null);
  expect(await recordOutcome(harness.deps, read, change, { sentAt: null })).toBeNull();
  expect(await sql`select refund_reserved from payments where id = ${id}`).toEqual([
    { refund_reserved: "1000" },
  ]);
  expect(await sql`select status from refunds where payment_id = ${id}`).toEqual([{ status: "processing" }]);
});
