import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ProviderRefund, RefundLookupOutcome } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
  emptyInbox,
  eventOf,
  inboxOf,
  NO_EVIDENCE,
  OPEN_INBOX,
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

function refundOf(changes: Partial<ProviderRefund> = {}): ProviderRefund {
  return {
    id: randomId("re"),
    chargeId: ours.objectId,
    status: "succeeded",
    amount: 1_000,
    currency: "usd",
    attemptId: null,
    tenantId: null,
    failure: null,
    ...changes,
  };
}

function told(refund: ProviderRefund, type = "refund.created"): Promise<string> {
  return storeEvent(harness, eventOf(type, { id: refund.id, payment_intent: refund.chargeId }));
}

/** A provider that has these refunds, and counts how often it is asked. */
function having(...refunds: readonly ProviderRefund[]): { deps: Deps; asked: string[] } {
  const asked: string[] = [];
  const getRefund = async (id: string): Promise<RefundLookupOutcome> => {
    asked.push(id);
    const refund = refunds.find((one) => one.id === id);
    if (refund === undefined) return { type: "missing", evidence: NO_EVIDENCE };
    return { type: "found", refund, evidence: NO_EVIDENCE };
  };
  return { deps: withProvider(harness.deps, { getRefund }), asked };
}

async function rowsOf({ paymentId }: Seeded) {
  const { sql } = harness.deps.db;
  return {
    payment: (
      await sql`select version, refund_reserved, amount_refunded, status from payments where id = ${paymentId}`
    )[0],
    refunds: await sql`
      select id, attempt_id, status, amount, currency, provider_refund_id, external from refunds
       where payment_id = ${paymentId} order by id`,
    attempts: await sql`
      select id, state, operation, idempotency_key, amount, refund_id, livemode, provider_account,
             provider_payment_id, due_at <= now() as due from attempts
       where payment_id = ${paymentId} and kind = 'refund' order by id`,
    timeline:
      await sql`select kind, refund_id, to_status, reason, attempt_id from timeline where payment_id = ${paymentId}`,
    outbox:
      await sql`select type, sequence, ordinal, data::text from outbox where payment_id = ${paymentId} order by id`,
    reviews: (await sql`select reason from reviews where payment_id = ${paymentId}`).map(
      (row) => row["reason"] as string,
    ),
  };
}

async function outcomes(): Promise<string[]> {
  return (await inboxOf(harness)).map((row) => `${row.state}: ${row.outcome ?? ""}`);
}

describe("a refund that was made outside", () => {
  test("is recorded with everything that follows from it, and its attempt is due", async () => {
    const refund = refundOf();
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
    expect(await outcomes()).toEqual(["applied: external_refund_recorded"]);
  });

  test("is recorded once, however many events tell of it, and each later one makes its attempt look again", async () => {
    const refund = refundOf();
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
    expect((await outcomes()).sort()).toEqual([
      "applied: external_refund_recorded",
      "applied: nudged",
      "applied: nudged",
    ]);
  });

  test("is recorded once by two workers that write at the same moment", async () => {
    const refund = refundOf();
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
      const refund = refundOf({ status });
      await told(refund);
      await applyDue(having(refund).deps);
      expect((await rowsOf(ours)).refunds).toMatchObject([{ status: "processing", external: true }]);
    },
  );

  test("beside others adds up, each with its own amount", async () => {
    const refunds = [refundOf(), refundOf({ amount: 2_500 }), refundOf({ amount: 1 })];
    for (const refund of refunds) await told(refund);
    await applyDue(having(...refunds).deps);
    for (let round = 0; round < 3; round += 1) {
      await harness.deps.db.sql`update provider_events set due_at = now() where state = 'pending'`;
      await applyDue(having(...refunds).deps);
    }
    const rows = await rowsOf(ours);
    expect(rows.payment).toMatchObject({ version: 4, refund_reserved: "3501" });
    expect(rows.refunds.map((row) => row["amount"]).sort()).toEqual(["1", "1000", "2500"]);
    expect(rows.outbox.map((row) => row["sequence"])).toEqual([2, 3, 4]);
  });

  test.each([
    { name: "another currency", changes: { currency: "eur" } },
    { name: "an amount that is no whole number of ours", changes: { amount: null } },
  ])("in $name is a person's to judge, and reserves nothing", async ({ changes }) => {
    const refund = refundOf(changes);
    await told(refund);
    await applyDue(having(refund).deps);
    expect(await rowsOf(ours)).toMatchObject({
      payment: { version: 1, refund_reserved: "0" },
      refunds: [],
      attempts: [],
      outbox: [],
      reviews: ["provider_amount_mismatch"],
    });
  });

  test("waits while somebody holds the payment's row, and is recorded when it is free", async () => {
    const refund = refundOf();
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
    const refund = refundOf();
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

/** A refund of ours, whose call is out. */
async function seedRefund(seeded: Seeded): Promise<{ tenantId: string; attemptId: string }> {
  const attemptId = randomId("att");
  const refundId = randomId("re");
  await harness.deps.db.sql.begin(async (tx) => {
    await tx`
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, state, provider, livemode, parameters, provider_payment_id, lease_owner, lease_expires_at, due_at)
      values (${seeded.tenantId}, ${attemptId}, ${seeded.paymentId}, 'refund', 'refunds.create', ${randomId("key")}, 1,
        'req_1', 1000, ${refundId}, 'sending', 'stripe', false, '', ${seeded.objectId}, 'somebody',
        now() + interval '1 minute', now() + interval '1 minute')`;
    await tx`
      insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider)
      values (${seeded.tenantId}, ${refundId}, ${seeded.paymentId}, ${attemptId}, 1000, 'usd', '{}', 'stripe')`;
    await tx`update payments set refund_reserved = 1000 where id = ${seeded.paymentId}`;
  });
  return { tenantId: seeded.tenantId, attemptId };
}

describe("a refund of ours", () => {
  test("that is told of before our call was answered is not recorded again: its attempt looks once it may", async () => {
    const mine = await seedRefund(ours);
    const refund = refundOf(mine);
    for (const type of ["refund.created", "refund.updated"]) await told(refund, type);
    await applyDue(having(refund).deps);
    expect(await attemptRow(harness, mine)).toMatchObject({ nudged: true, due_in_s: 60 });
    const rows = await rowsOf(ours);
    expect(rows.refunds).toMatchObject([{ external: false, status: "processing" }]);
    expect(rows.payment).toMatchObject({ version: 1, refund_reserved: "1000" });
    expect(rows.outbox).toEqual([]);
  });

  test("whose marker was wiped at the provider is known by its id, and not taken for one made outside", async () => {
    const mine = await seedRefund(ours);
    const refund = refundOf();
    await harness.deps.db.sql`
      update refunds set provider_refund_id = ${refund.id} where attempt_id = ${mine.attemptId}`;
    await told(refund, "refund.updated");
    await applyDue(having(refund).deps);
    expect(await attemptRow(harness, mine)).toMatchObject({ nudged: true });
    expect((await rowsOf(ours)).refunds).toHaveLength(1);
  });

  test("whose attempt is not known here is kept and tried again", async () => {
    const refund = refundOf({ tenantId: ours.tenantId, attemptId: randomId("att") });
    await told(refund);
    await applyDue(having(refund).deps);
    expect(await outcomes()).toEqual(["pending: attempt_not_known"]);
  });

  test.each<{ readonly name: string; readonly marker: (other: Seeded) => Promise<Partial<ProviderRefund>> }>([
    { name: "a refund of another payment", marker: (other) => seedRefund(other) },
    {
      name: "a charge",
      marker: async () => ({ tenantId: ours.tenantId, attemptId: ours.attemptId }),
    },
    {
      name: "another tenant's attempt",
      marker: async () => ({ tenantId: "ten_elsewhere", attemptId: randomId("att") }),
    },
  ])("that carries the marker of $name is flagged on the payment that was refunded", async ({ marker }) => {
    const other = await seedPayment(harness);
    const refund = refundOf(await marker(other));
    const before = await rowsOf(other);
    await told(refund);
    await applyDue(having(refund).deps);
    expect((await rowsOf(ours)).reviews).toEqual(["provider_object_foreign"]);
    expect((await rowsOf(ours)).refunds).toEqual([]);
    expect(await rowsOf(other)).toEqual(before);
  });
});

describe("a refund that cannot be fetched", () => {
  test("because the provider is away is asked for again", async () => {
    const refund = refundOf();
    await told(refund);
    const getRefund = async (): Promise<RefundLookupOutcome> => ({
      type: "unanswered",
      reason: "server_error",
      retryAfterMs: null,
      evidence: { httpStatus: 503, code: null, requestId: null },
    });
    await applyDue(withProvider(harness.deps, { getRefund }));
    expect(await outcomes()).toEqual(["pending: unanswered: server_error"]);
    await harness.deps.db.sql`update provider_events set due_at = now()`;
    await applyDue(having(refund).deps);
    expect((await rowsOf(ours)).refunds).toHaveLength(1);
  });

  test("because it is not there is asked for again too: nothing is concluded from a 404", async () => {
    await told(refundOf());
    await applyDue(having().deps);
    expect(await outcomes()).toEqual(["pending: provider_object_missing"]);
  });

  test("as ours leaves no row behind, where only the object itself could tell", async () => {
    const refund = refundOf({ chargeId: randomId("pi") });
    await storeEvent(harness, eventOf("refund.created", { id: refund.id, charge: "ch_1" }));
    const { deps, asked } = having(refund);
    await applyDue(deps);
    expect(asked).toEqual([refund.id]);
    expect(await inboxOf(harness)).toEqual([]);
  });
});
