import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ProviderRefund, RefundLookupOutcome } from "../../src/domain/provider.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
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
import {
  havingRefunds,
  refundOf,
  refundRowsOf,
  seedRefund,
  tellOfRefund,
} from "../support/provider-refunds.js";

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

describe("a refund of ours", () => {
  test("that is told of before our call was answered is not recorded again: its attempt looks once it may", async () => {
    const mine = await seedRefund(harness, ours);
    const refund = refundAt(mine);
    for (const type of ["refund.created", "refund.updated"]) await told(refund, type);
    await applyDue(having(refund).deps);
    expect(await attemptRow(harness, mine)).toMatchObject({ nudged: true, due_in_s: 60 });
    const rows = await rowsOf(ours);
    expect(rows.refunds).toMatchObject([{ external: false, status: "processing" }]);
    expect(rows.payment).toMatchObject({ version: 1, refund_reserved: "1000" });
    expect(rows.outbox).toEqual([]);
  });

  test("whose marker was wiped at the provider is known by its id, and not taken for one made outside", async () => {
    const mine = await seedRefund(harness, ours);
    const refund = refundAt();
    await harness.deps.db.sql`
      update refunds set provider_refund_id = ${refund.id} where attempt_id = ${mine.attemptId}`;
    await told(refund, "refund.updated");
    await applyDue(having(refund).deps);
    expect(await attemptRow(harness, mine)).toMatchObject({ nudged: true });
    expect((await rowsOf(ours)).refunds).toHaveLength(1);
  });

  test("whose attempt is not known here is kept and tried again", async () => {
    const refund = refundAt({ tenantId: ours.tenantId, attemptId: randomId("att") });
    await told(refund);
    await applyDue(having(refund).deps);
    expect(await outcomesOf(harness)).toEqual(["pending: attempt_not_known"]);
  });

  test.each<{ readonly name: string; readonly marker: (other: Seeded) => Promise<Partial<ProviderRefund>> }>([
    { name: "a refund of another payment", marker: (other) => seedRefund(harness, other) },
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
    const refund = refundAt(await marker(other));
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
    const refund = refundAt();
    await told(refund);
    const getRefund = async (): Promise<RefundLookupOutcome> => ({
      type: "unanswered",
      reason: "server_error",
      retryAfterMs: null,
      evidence: { httpStatus: 503, code: null, requestId: null },
    });
    await applyDue(withProvider(harness.deps, { getRefund }));
    expect(await outcomesOf(harness)).toEqual(["pending: unanswered: server_error"]);
    await harness.deps.db.sql`update provider_events set due_at = now()`;
    await applyDue(having(refund).deps);
    expect((await rowsOf(ours)).refunds).toHaveLength(1);
  });

  test("because it is not there is asked for again too: nothing is concluded from a 404", async () => {
    await told(refundAt());
    await applyDue(having().deps);
    expect(await outcomesOf(harness)).toEqual(["pending: provider_object_missing"]);
  });

  test("as ours leaves no row behind, where only the object itself could tell", async () => {
    const refund = refundAt({ chargeId: randomId("pi") });
    await storeEvent(harness, eventOf("refund.created", { id: refund.id, charge: "ch_1" }));
    const { deps, asked } = having(refund);
    await applyDue(deps);
    expect(asked).toEqual([refund.id]);
    expect(await inboxOf(harness)).toEqual([]);
  });
});
