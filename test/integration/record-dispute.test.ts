import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ProviderDispute } from "../../src/domain/provider.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  DisputeProvider,
  disputeOf,
  disputeRowsOf,
  REINSTATED,
  WITHDRAWN,
} from "../support/provider-disputes.js";
import {
  applyDue,
  attemptRow,
  emptyInbox,
  inboxOf,
  OPEN_INBOX,
  outcomesOf,
  randomId,
  type Seeded,
  seedPayment,
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

const rowsOf = (seeded: Seeded) => disputeRowsOf(harness, seeded);

/** The dispute's id and transactions are random or shared: what is compared between payments leaves the id out. */
function withoutId(texts: readonly string[], id: string): string[] {
  return texts.map((text) => text.replaceAll(id, "dp"));
}

describe("a dispute", () => {
  test("that is opened is on the payment, in its timeline and told, and no state of ours is written by it", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours));
    await provider.tells("created");
    await applyDue(provider.deps);
    const rows = await rowsOf(ours);
    const { id } = provider.dispute;
    expect(rows).toMatchObject({
      version: 2,
      status: "succeeded",
      disputes: [{ id, status: "open", amount: 10_000, currency: "usd", reason: "fraudulent" }],
      entries: [],
      timeline: [`fact dispute.opened: ${id} open`],
      outbox: [{ type: "dispute.opened", sequence: 2, ordinal: 0 }],
      reviews: [],
    });
    expect(rows.outbox[0]?.data).toMatchObject({
      object: "dispute",
      id,
      status: "open",
      amount: 10_000,
      payment_id: ours.paymentId,
      movements: [],
      payment: {
        id: ours.paymentId,
        object: "payment",
        status: "succeeded",
        disputes: [{ id, status: "open" }],
      },
    });
    expect(await outcomesOf(harness)).toEqual(["applied: dispute_advanced"]);
    expect(await attemptRow(harness, ours)).toMatchObject({ due_in_s: null, nudged: false });
  });

  test("posts each movement of funds, its fee, and its loss, and tells each in its order", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { movements: [WITHDRAWN] }));
    const { id } = provider.dispute;
    await provider.tells("created");
    await applyDue(provider.deps);
    provider.becomes({ status: "lost" });
    await provider.tells("closed");
    await applyDue(provider.deps);
    const rows = await rowsOf(ours);
    expect(rows.entries).toEqual([
      `dispute:${id}:txn_1/1 disputed<provider_balance 10000`,
      `dispute:${id}:txn_1/2 provider_fees<provider_balance 1500`,
      `dispute_lost:${id}/1 dispute_losses<disputed 10000`,
    ]);
    expect(rows.outbox.map((row) => `${row.sequence}.${row.ordinal} ${row.type}`)).toEqual([
      "2.0 dispute.opened",
      "2.1 dispute.funds_withdrawn",
      "3.0 dispute.lost",
    ]);
    expect(rows.outbox[1]?.data).toMatchObject({
      movements: [{ id: "txn_1", amount: -10_000, fee: 1_500, currency: "usd" }],
    });
  });

  test("that is won gives its funds back", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { movements: [WITHDRAWN] }));
    const { id } = provider.dispute;
    await provider.tells("created");
    await applyDue(provider.deps);
    provider.becomes({ status: "won", movements: [WITHDRAWN, REINSTATED] });
    await provider.tells("funds_reinstated");
    await provider.tells("closed");
    await applyDue(provider.deps);
    const rows = await rowsOf(ours);
    expect(rows.disputes).toMatchObject([{ id, status: "won" }]);
    expect(rows.entries).toEqual([
      `dispute:${id}:txn_1/1 disputed<provider_balance 10000`,
      `dispute:${id}:txn_1/2 provider_fees<provider_balance 1500`,
      `dispute:${id}:txn_2/1 provider_balance<disputed 10000`,
    ]);
    expect(rows.outbox.map((row) => row.type)).toEqual([
      "dispute.opened",
      "dispute.funds_withdrawn",
      "dispute.funds_reinstated",
      "dispute.won",
    ]);
    expect(rows.version).toBe(3);
  });
});

/** What Stripe tells of a dispute that ends, one step after the other. */
const STEPS: readonly { readonly type: string; readonly becomes: Partial<ProviderDispute> }[] = [
  { type: "created", becomes: {} },
  { type: "funds_withdrawn", becomes: { movements: [WITHDRAWN] } },
  { type: "updated", becomes: { status: "under_review" } },
  { type: "funds_reinstated", becomes: { status: "won", movements: [WITHDRAWN, REINSTATED] } },
  { type: "closed", becomes: {} },
];

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

describe("a dispute's events", () => {
  test("end alike in every order, each delivered twice", async () => {
    const ends = new Set<string>();
    for (const order of permutations(STEPS)) {
      ours = await seedPayment(harness);
      const provider = new DisputeProvider(harness, disputeOf(ours));
      for (const { becomes } of STEPS) provider.becomes(becomes);
      for (const { type } of [...order, ...order]) {
        await provider.tells(type);
        await applyDue(provider.deps);
      }
      const { disputes, entries, outbox } = await rowsOf(ours);
      const { id } = provider.dispute;
      const [{ status, amount, movements } = {}] = disputes;
      const told = outbox.map((row) => `${row.sequence}.${row.ordinal} ${row.type}`);
      ends.add(JSON.stringify([disputes.length, status, amount, movements, withoutId(entries, id), told]));
    }
    expect(ends.size).toBe(1);
  });

  test("told one by one as they happen end as they do when all come late", async () => {
    const live = new DisputeProvider(harness, disputeOf(ours));
    for (const { type, becomes } of STEPS) {
      live.becomes(becomes);
      await live.tells(type);
      await applyDue(live.deps);
    }
    const asItHappened = await rowsOf(ours);
    ours = await seedPayment(harness);
    const late = new DisputeProvider(harness, {
      ...live.dispute,
      id: randomId("dp"),
      chargeId: ours.objectId,
    });
    for (const { type } of STEPS.toReversed()) await late.tells(type);
    await applyDue(late.deps);
    const afterwards = await rowsOf(ours);
    expect(withoutId(afterwards.entries, late.dispute.id)).toEqual(
      withoutId(asItHappened.entries, live.dispute.id),
    );
    expect(afterwards.disputes.map(({ status, movements }) => [status, movements])).toEqual(
      asItHappened.disputes.map(({ status, movements }) => [status, movements]),
    );
    expect(asItHappened.outbox.map((row) => row.type)).toEqual([
      "dispute.opened",
      "dispute.funds_withdrawn",
      "dispute.updated",
      "dispute.funds_reinstated",
      "dispute.won",
    ]);
  });

  test("applied by two workers at the same moment post and tell once", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours, { movements: [WITHDRAWN] }));
    await provider.tells("created");
    await provider.tells("funds_withdrawn");
    const gate = new Gate("before_fact_written");
    const both = [
      applyDue({ ...provider.deps, probe: gate.probe }),
      applyDue({ ...provider.deps, probe: gate.probe }),
    ];
    await expect.poll(() => gate.arrivals).toBe(2);
    gate.open();
    await Promise.all(both);
    const rows = await rowsOf(ours);
    expect(rows.version).toBe(2);
    expect(rows.entries).toHaveLength(2);
    expect(rows.outbox.map((row) => row.type)).toEqual(["dispute.opened", "dispute.funds_withdrawn"]);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "applied"]);
  });

  test("of which one was read before and is written after the other do not take the payment back", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours));
    await provider.tells("created");
    const gate = new Gate("after_get_dispute");
    const late = applyDue({ ...provider.deps, probe: gate.probe });
    await gate.reached();
    provider.becomes({ status: "lost", movements: [WITHDRAWN] });
    await provider.tells("closed");
    await applyDue(provider.deps);
    gate.open();
    await late;
    const rows = await rowsOf(ours);
    expect(rows.disputes).toMatchObject([{ status: "lost", movements: [WITHDRAWN] }]);
    expect(rows.outbox.map((row) => row.type)).toEqual([
      "dispute.opened",
      "dispute.funds_withdrawn",
      "dispute.lost",
    ]);
    expect((await outcomesOf(harness)).sort()).toEqual([
      "applied: dispute_advanced",
      "applied: dispute_unchanged",
    ]);
  });

  test("of two ends, one read before the other was written, are settled by reading again", async () => {
    const provider = new DisputeProvider(
      harness,
      disputeOf(ours, { status: "lost", movements: [WITHDRAWN] }),
    );
    const early = await provider.tells("closed");
    const gate = new Gate("after_get_dispute");
    const late = applyDue({ ...provider.deps, probe: gate.probe });
    await gate.reached();
    provider.becomes({ status: "won", movements: [WITHDRAWN, REINSTATED] });
    await provider.tells("updated");
    await applyDue(provider.deps);
    gate.open();
    await late;
    expect((await rowsOf(ours)).disputes).toMatchObject([{ status: "won" }]);
    expect(await outcomesOf(harness)).toContain("pending: dispute_read_too_early");
    await harness.deps.db.sql`update provider_events set due_at = now() where event_id = ${early}`;
    await applyDue(provider.deps);
    expect((await rowsOf(ours)).disputes).toMatchObject([{ status: "won" }]);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "applied"]);
  });

  test("wait while somebody holds the payment's row, and write for the version that it has then", async () => {
    const provider = new DisputeProvider(harness, disputeOf(ours));
    await provider.tells("created");
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`update payments set version = version + 1 where id = ${ours.paymentId}`;
      await applyDue(provider.deps);
      expect(await outcomesOf(harness)).toEqual(["pending: payment_busy"]);
    });
    await harness.deps.db.sql`update provider_events set due_at = now()`;
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({ version: 3, outbox: [{ sequence: 3 }] });
  });
});
