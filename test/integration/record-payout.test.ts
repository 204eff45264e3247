import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { PayoutLookupOutcome, PayoutMovement } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import { createTenant } from "../../src/operations/manage-tenants.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
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

const told = () => storeEvent(harness, eventOf("payout.reconciliation_completed", { id: randomId("po") }));

function paying(...movements: readonly PayoutMovement[]): Deps {
  const getPayout = async (): Promise<PayoutLookupOutcome> => ({
    type: "found",
    movements,
    evidence: NO_EVIDENCE,
  });
  return withProvider(harness.deps, { getPayout });
}

function movement(chargeId: string | null, amount: number): PayoutMovement {
  return { transactionId: randomId("txn"), chargeId, amount, currency: "usd" };
}

async function entriesOf({ tenantId, paymentId }: Seeded): Promise<string[]> {
  const rows = await harness.deps.db.sql<{ entry: string }[]>`
    select fact || ' ' || debit_account || '<' || credit_account || ' ' || amount as entry from ledger_entries
     where tenant_id = ${tenantId} and payment_id = ${paymentId} order by created_at, fact`;
  return rows.map((row) => row.entry);
}

describe("a payout", () => {
  test("posts what it brought, on each payment of ours and in each tenant, and nothing of anybody else's", async () => {
    const { id: tenantId } = await createTenant(harness.deps, "other");
    const theirs = await seedPayment(harness, { tenantId });
    const [sale, refund, other] = [
      movement(ours.objectId, 9_700),
      movement(ours.objectId, -1_000),
      movement(theirs.objectId, 500),
    ];
    await told();
    await applyDue(paying(sale, movement(randomId("pi"), 7), other, movement(null, 3), refund));
    expect((await entriesOf(ours)).sort()).toEqual(
      [
        `paid_out:${sale.transactionId} bank<provider_balance 9700`,
        `paid_out:${refund.transactionId} provider_balance<bank 1000`,
      ].sort(),
    );
    expect(await entriesOf(theirs)).toEqual([`paid_out:${other.transactionId} bank<provider_balance 500`]);
    expect(await inboxOf(harness)).toMatchObject([{ state: "applied", outcome: "paid_out: 3 movements" }]);
  });

  test("told twice, or taken up again after a worker died half-way, posts nothing twice", async () => {
    const movements = [movement(ours.objectId, 9_700), movement(ours.objectId, 300)];
    const deps = paying(...movements);
    await told();
    const dies = async (name: string) => {
      if (name === "before_payout_ended") throw new Error("as if killed");
    };
    await applyDue({ ...deps, probe: dies });
    expect(await entriesOf(ours)).toHaveLength(2);
    expect(await inboxOf(harness)).toMatchObject([{ state: "pending" }]);
    await harness.deps.db.sql`update provider_events set due_at = now()`;
    await told();
    await applyDue(deps);
    expect(await entriesOf(ours)).toHaveLength(2);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "applied"]);
  });

  test("of more movements than one look-up takes posts all of them", async () => {
    const many = Array.from({ length: 1_201 }, (_, index) =>
      movement(index % 400 === 0 ? ours.objectId : randomId("pi"), 1),
    );
    await told();
    await applyDue(paying(...many));
    expect(await entriesOf(ours)).toHaveLength(4);
  });

  test("of more pages than one claim has time for is gone on with by the next, behind what is posted", async () => {
    const movements = ["a", "b", "c"].map(() => movement(ours.objectId, 100));
    const asked: (string | null)[] = [];
    const getPayout = (_id: string, after: string | null): Promise<PayoutLookupOutcome> => {
      asked.push(after);
      const at = movements.findIndex(({ transactionId }) => transactionId === after) + 1;
      const next = at + 1 < movements.length ? { next: movements[at]?.transactionId ?? "" } : {};
      return Promise.resolve({
        type: "found",
        movements: movements.slice(at, at + 1),
        ...next,
        evidence: NO_EVIDENCE,
      });
    };
    const { deps } = harness;
    const hurried = { ...deps, settings: { ...deps.settings, attemptLeaseMs: 0 } };
    await told();
    await applyDue(withProvider(hurried, { getPayout }));
    expect(await inboxOf(harness)).toMatchObject([
      { state: "pending", tries: 0, outcome: `paid_out: 1 movements, up to ${movements[0]?.transactionId}` },
    ]);
    await applyDue(withProvider(deps, { getPayout }));
    expect(asked).toEqual([null, movements[0]?.transactionId, movements[1]?.transactionId]);
    expect(await inboxOf(harness)).toMatchObject([{ state: "applied", outcome: "paid_out: 3 movements" }]);
    expect(await entriesOf(ours)).toHaveLength(3);
  });

  test("with nothing of ours leaves no row", async () => {
    await told();
    await applyDue(paying(movement(randomId("pi"), 7)));
    expect(await inboxOf(harness)).toEqual([]);
  });

  test("that brings a live payment's money is none of a test-mode process's", async () => {
    const live = await seedPayment(harness, { livemode: true });
    await told();
    await applyDue(paying(movement(live.objectId, 100)));
    expect(await entriesOf(live)).toEqual([]);
  });

  test("that the provider does not show is asked for again", async () => {
    await told();
    const getPayout = async (): Promise<PayoutLookupOutcome> => ({
      type: "unanswered",
      reason: "forbidden",
      retryAfterMs: null,
      evidence: { httpStatus: 403, code: null, requestId: null },
    });
    await applyDue(withProvider(harness.deps, { getPayout }));
    expect(await inboxOf(harness)).toMatchObject([{ state: "pending", outcome: "unanswered: forbidden" }]);
  });
});
