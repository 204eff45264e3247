import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ProviderRefund } from "../../src/domain/provider.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
  emptyInbox,
  inboxOf,
  OPEN_INBOX,
  outcomesOf,
  type Seeded,
  seedPayment,
} from "../support/provider-events.js";
import { havingRefunds, refundOf, refundRowsOf, tellOfRefund } from "../support/provider-refunds.js";

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

const refundAt = (changes: Partial<ProviderRefund> = {}) => refundOf(ours, changes);
const told = (one: ProviderRefund, type?: string) => tellOfRefund(harness, one, type);
const having = (...refunds: readonly ProviderRefund[]) => havingRefunds(harness, ...refunds);
const rowsOf = (seeded: Seeded) => refundRowsOf(harness, seeded);

describe("a refund that was made outside", () => {
  test("is recorded with everything that follows from it, and its attempt is due", async () => {
    const refund = refundAt();
    await told(refund);
    await applyDue(having(refund).deps);
    const rows = await rowsOf(ours);
    const [record] = rows.refunds;
    const refundId = record?.["id"] as string;
    const attemptId = record?.["attempt_id"] as string;
    expect(rows).toEqual({
      payment: { version: 2, refund_reserved: "1000", amount_refunded: "0", status: "succeeded" },
      refunds: [
        {
          id: expect.stringMatching(/^re_/) as string,
          attempt_id: expect.stringMatching(/^att_[0-9a-f]{32}$/) as string,
          status: "processing",
          amount: "1000",
          currency: "usd",
          provider_refund_id: refund.id,
          external: true,
        },
      ],
      attempts: [
        {
          id: attemptId,
          state: "following",
          operation: "refunds.external",
          idempotency_key: refund.id,
          amount: "1000",
          refund_id: refundId,
          livemode: false,
          provider_account: "acct_test",
          provider_payment_id: ours.objectId,
          due: true,
        },
      ],
      timeline: [
        {
          kind: "transition",
          refund_id: refundId,
          to_status: "processing",
          reason: "refunded_outside",
          attempt_id: attemptId,
        },
      ],
      outbox: [{ type: "refund.created", sequence: 2, ordinal: 0, data: expect.anything() as unknown }],
      reviews: [],
    });
    expect(JSON.parse(rows.outbox[0]?.["data"] as string)).toMatchObject({
      id: refundId,
      object: "refund",
      payment_id: ours.paymentId,
      status: "processing",
      amount: 1_000,
      external: true,
      provider_refund_id: refund.id,
    });
    expect(await outcomesOf(harness)).toEqual(["applied: external_refund_recorded"]);
  });

  test("is recorded once, however many events tell of it, and each later one makes its attempt look again", async () => {
    const refund = refundAt();
    const { deps } = having(refund);
    for (const type of ["refund.created", "charge.refund.updated", "refund.updated"]) {
      await told(refund, type);
      await applyDue(deps);
    }
    const rows = await rowsOf(ours);
    expect(rows.refunds).toHaveLength(1);
    expect(rows.payment).toMatchObject({ version: 2, refund_reserved: "1000" });
    expect(rows.outbox).toHaveLength(1);
    const attempt = { tenantId: ours.tenantId, attemptId: rows.attempts[0]?.["id"] as string };
    expect(await attemptRow(harness, attempt)).toMatchObject({ nudged: true, due_in_s: 0 });
    expect((await outcomesOf(harness)).sort()).toEqual([
      "applied: external_refund_recorded",
      "applied: nudged",
      "applied: nudged",
    ]);
  });

  test("is recorded once by two workers that write at the same moment", async () => {
    const refund = refundAt();
    await told(refund);
    await told(refund, "refund.updated");
    const { deps } = having(refund);
    const gate = new Gate("before_fact_written");
    const both = [applyDue({ ...deps, probe: gate.probe }), applyDue({ ...deps, probe: gate.probe })];
    await expect.poll(() => gate.arrivals).toBe(2);
    gate.open();
    await Promise.all(both);
    const rows = await rowsOf(ours);
    expect(rows.refunds).toHaveLength(1);
    expect(rows.payment).toMatchObject({ version: 2, refund_reserved: "1000" });
    expect([rows.outbox, rows.timeline, rows.attempts].map((some) => some.length)).toEqual([1, 1, 1]);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "applied"]);
  });

  test.each(["pending", "failed", "succeeded"] as const)(
    "is recorded where it is %s when it is first seen",
    async (status) => {
      const refund = refundAt({ status });
      await told(refund);
      await applyDue(having(refund).deps);
      expect((await rowsOf(ours)).refunds).toMatchObject([{ status: "processing", external: true }]);
    },
  );

  test("beside others adds up, each with its own amount", async () => {
    const refunds = [refundAt(), refundAt({ amount: 2_500 }), refundAt({ amount: 1 })];
    for (const refund of refunds) await told(refund);
    await applyDue(having(...refunds).deps);
    for (let round = 0; round < 3; round += 1) {
      await harness.deps.db.sql`update provider_events set due_at = now() where state = 'pending'`;
      await applyDue(having(...refunds).deps);
    }
    const rows = await rowsOf(ours);
    expect(rows.payment).toMatchObject({ version: 4, refund_reserved: "3501" });
    expect(rows.refunds.map((row) => String(row["amount"])).sort()).toEqual(["1", "1000", "2500"]);
    expect(rows.outbox.map((row) => Number(row["sequence"]))).toEqual([2, 3, 4]);
  });

  test.each([
    { name: "another currency", changes: { currency: "eur" } },
    { name: "an amount that is no whole number of ours", changes: { amount: null } },
  ])("in $name is a person's to judge, and reserves nothing", async ({ changes }) => {
    const refund = refundAt(changes);
    await told(refund);
    await applyDue(having(refund).deps);
    expect(await rowsOf(ours)).toMatchObject({
      payment: { version: 1, refund_reserved: "0" },
      refunds: [],
      attempts: [],
      outbox: [],
      reviews: ["outside_refund_mismatch"],
    });
  });

  test("waits while somebody holds the payment's row, and is recorded when it is free", async () => {
    const refund = refundAt();
    const { deps } = having(refund);
    const eventId = await told(refund);
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`select 1 from payments where id = ${ours.paymentId} for update`;
      await applyDue(deps);
      expect(await inboxOf(harness)).toMatchObject([{ state: "pending", outcome: "payment_busy" }]);
      expect((await rowsOf(ours)).refunds).toEqual([]);
    });
    await harness.deps.db.sql`update provider_events set due_at = now() where event_id = ${eventId}`;
    await applyDue(deps);
    expect((await rowsOf(ours)).refunds).toHaveLength(1);
  });

  test("is recorded on the payment as it is by then, where that has moved on since it was read", async () => {
    const refund = refundAt();
    await told(refund);
    const gate = new Gate("before_fact_written");
    const applying = applyDue({ ...having(refund).deps, probe: gate.probe });
    await gate.reached();
    await harness.deps.db.sql`
      update payments set version = version + 1, refund_reserved = 400 where id = ${ours.paymentId}`;
    gate.open();
    await applying;
    const rows = await rowsOf(ours);
    expect(rows.payment).toMatchObject({ version: 3, refund_reserved: "1400" });
    expect(rows.outbox).toMatchObject([{ sequence: 3 }]);
  });
});
