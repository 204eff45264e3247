import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DisputeLookupOutcome, DisputeMovement, ProviderDispute } from "../../src/domain/provider.js";
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

const WITHDRAWN: DisputeMovement = { transactionId: "txn_1", amount: -10_000, currency: "usd", fee: 1_500 };
const REINSTATED: DisputeMovement = { transactionId: "txn_2", amount: 10_000, currency: "usd", fee: 0 };

function disputeOf(changes: Partial<ProviderDispute> = {}): ProviderDispute {
  return {
    id: randomId("dp"),
    chargeId: ours.objectId,
    status: "open",
    amount: 10_000,
    currency: "usd",
    reason: "fraudulent",
    livemode: false,
    movements: [],
    ...changes,
  };
}

/** A provider whose dispute is what the test makes of it. */
class Provider {
  constructor(public dispute: ProviderDispute) {}

  becomes(changes: Partial<ProviderDispute>): void {
    this.dispute = { ...this.dispute, ...changes };
  }

  get deps(): Deps {
    const getDispute = async (id: string): Promise<DisputeLookupOutcome> =>
      id === this.dispute.id
        ? { type: "found", dispute: this.dispute, evidence: NO_EVIDENCE }
        : { type: "missing", evidence: NO_EVIDENCE };
    return withProvider(harness.deps, { getDispute });
  }

  tells(type: string): Promise<string> {
    const { id, chargeId } = this.dispute;
    return storeEvent(harness, eventOf(`charge.dispute.${type}`, { id, payment_intent: chargeId }));
  }
}

async function rowsOf({ paymentId }: Seeded) {
  const { sql } = harness.deps.db;
  const [payment] = await sql`
    select version, status, refund_reserved, disputes::text from payments where id = ${paymentId}`;
  const entries = await sql<{ fact: string; leg: number; moved: string }[]>`
    select fact, leg, debit_account || '<' || credit_account || ' ' || amount as moved from ledger_entries
     where payment_id = ${paymentId} order by fact, leg`;
  const outbox = await sql<{ type: string; sequence: number; ordinal: number; data: string }[]>`
    select type, sequence, ordinal, data::text from outbox where payment_id = ${paymentId} order by sequence, ordinal`;
  const timeline = await sql<{ told: string }[]>`
    select kind || ' ' || reason || ': ' || outcome as told from timeline where payment_id = ${paymentId} order by id`;
  const reviews = await sql<{ reason: string }[]>`select reason from reviews where payment_id = ${paymentId}`;
  return {
    version: payment?.["version"] as number,
    status: payment?.["status"] as string,
    disputes: JSON.parse((payment?.["disputes"] as string | null) ?? "[]") as Record<string, unknown>[],
    entries: entries.map((row) => `${row.fact}/${row.leg} ${row.moved}`),
    outbox: outbox.map((row) => ({ ...row, data: JSON.parse(row.data) as Record<string, unknown> })),
    timeline: timeline.map((row) => row.told),
    reviews: reviews.map((row) => row.reason),
  };
}

async function outcomes(): Promise<string[]> {
  return (await inboxOf(harness)).map((row) => `${row.state}: ${row.outcome ?? ""}`);
}

/** The dispute's id and transactions are random or shared: what is compared between payments leaves the id out. */
function withoutId(texts: readonly string[], id: string): string[] {
  return texts.map((text) => text.replaceAll(id, "dp"));
}

describe("a dispute", () => {
  test("that is opened is on the payment, in its timeline and told, and no state of ours is written by it", async () => {
    const provider = new Provider(disputeOf());
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
    expect(await outcomes()).toEqual(["applied: dispute_advanced"]);
    expect(await attemptRow(harness, ours)).toMatchObject({ due_in_s: null, nudged: false });
  });

  test("posts each movement of funds, its fee, and its loss, and tells each in its order", async () => {
    const provider = new Provider(disputeOf({ movements: [WITHDRAWN] }));
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
    const provider = new Provider(disputeOf({ movements: [WITHDRAWN] }));
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
      const provider = new Provider(disputeOf());
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
    const live = new Provider(disputeOf());
    for (const { type, becomes } of STEPS) {
      live.becomes(becomes);
      await live.tells(type);
      await applyDue(live.deps);
    }
    const asItHappened = await rowsOf(ours);
    ours = await seedPayment(harness);
    const late = new Provider({ ...live.dispute, id: randomId("dp"), chargeId: ours.objectId });
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
    const provider = new Provider(disputeOf({ movements: [WITHDRAWN] }));
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
    const provider = new Provider(disputeOf());
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
    expect((await outcomes()).sort()).toEqual(["applied: dispute_advanced", "applied: dispute_unchanged"]);
  });

  test("of two ends, one read before the other was written, are settled by reading again", async () => {
    const provider = new Provider(disputeOf({ status: "lost", movements: [WITHDRAWN] }));
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
    expect(await outcomes()).toContain("pending: dispute_read_too_early");
    await harness.deps.db.sql`update provider_events set due_at = now() where event_id = ${early}`;
    await applyDue(provider.deps);
    expect((await rowsOf(ours)).disputes).toMatchObject([{ status: "won" }]);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "applied"]);
  });

  test("wait while somebody holds the payment's row, and write for the version that it has then", async () => {
    const provider = new Provider(disputeOf());
    await provider.tells("created");
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`update payments set version = version + 1 where id = ${ours.paymentId}`;
      await applyDue(provider.deps);
      expect(await outcomes()).toEqual(["pending: payment_busy"]);
    });
    await harness.deps.db.sql`update provider_events set due_at = now()`;
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({ version: 3, outbox: [{ sequence: 3 }] });
  });
});

describe("a dispute that is not simply ours", () => {
  test("is nothing to us where its charge is somebody else's, and leaves no row", async () => {
    const provider = new Provider(disputeOf({ chargeId: null }));
    await provider.tells("created");
    await applyDue(provider.deps);
    provider.becomes({ chargeId: randomId("pi") });
    await storeEvent(harness, eventOf("charge.dispute.updated", { id: provider.dispute.id, charge: "ch_1" }));
    await applyDue(provider.deps);
    expect(await inboxOf(harness)).toEqual([]);
  });

  test("does not touch a payment of the other mode", async () => {
    ours = await seedPayment(harness, { livemode: true });
    const provider = new Provider(disputeOf());
    await provider.tells("created");
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({ version: 1, disputes: [], outbox: [] });
    expect(await outcomes()).toEqual(["applied: other_mode"]);
  });

  test("in a status that is not known yet is kept, and read again", async () => {
    const provider = new Provider(disputeOf({ status: "unrecognized" }));
    await provider.tells("updated");
    await applyDue(provider.deps);
    expect(await outcomes()).toEqual(["pending: provider_status_unrecognized"]);
    expect(await rowsOf(ours)).toMatchObject({ version: 1, disputes: [] });
  });

  test("of an amount that is no whole number of ours is a person's to judge", async () => {
    const provider = new Provider(disputeOf({ amount: null }));
    await provider.tells("created");
    await applyDue(provider.deps);
    expect(await rowsOf(ours)).toMatchObject({
      version: 1,
      disputes: [],
      reviews: ["provider_amount_mismatch"],
    });
  });

  test.each(["timeout", "server_error", "rate_limited"] as const)(
    "that the provider does not show (%s) is asked for again",
    async (reason) => {
      const provider = new Provider(disputeOf());
      await provider.tells("created");
      const getDispute = async (): Promise<DisputeLookupOutcome> => ({
        type: "unanswered",
        reason,
        retryAfterMs: 60_000,
        evidence: { httpStatus: null, code: null, requestId: null },
      });
      await applyDue(withProvider(harness.deps, { getDispute }));
      const [row] = await harness.deps.db.sql<{ wait: number; outcome: string }[]>`
      select extract(epoch from due_at - now())::float8 as wait, outcome from provider_events`;
      expect(row?.outcome).toBe(`unanswered: ${reason}`);
      expect(row?.wait).toBeGreaterThan(50);
      expect(row?.wait).toBeLessThanOrEqual(60);
    },
  );
});
