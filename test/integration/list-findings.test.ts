import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ListedCharge, PageOutcome, PageRequest } from "../../src/domain/provider.js";
import { findingsOf, reportOf } from "../../src/operations/list-findings.js";
import { readBacklog } from "../../src/operations/read-backlog.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { purgeReconciliation } from "../../src/store/reconciliation.js";
import { rowsRead } from "../support/doctor-crowd.js";
import { type Harness, pay, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingWords,
  payMany,
  payOne,
  untilSettled,
} from "../support/reconciliation.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

describe("an object that the list does not show", () => {
  test("is no difference while the provider has it: the list may lag behind its objects", async () => {
    await payMany(harness, 3);
    await untilSettled(harness);
    const listCharges = async (page: PageRequest): Promise<PageOutcome<ListedCharge>> => {
      const listed = await harness.deps.provider.listCharges(page);
      return listed.type === "page" ? { ...listed, items: listed.items.slice(1) } : listed;
    };
    await compareNow(withProvider(harness.deps, { listCharges }));
    expect(await findingWords(harness)).toEqual([]);
  });

  test("is missing there when the provider says so, and its payment waits for a person", async () => {
    const [gone, ...others] = await payMany(harness, 3);
    await untilSettled(harness);
    await harness.sandbox.control.removePaymentIntent(gone!.objectId);
    await compareNow(harness.deps);
    expect(others).toHaveLength(2);
    expect(await findingWords(harness)).toEqual([`missing_there ${gone!.objectId} open`]);
    const { sql } = harness.deps.db;
    expect(await sql`select payment_id, reason from reviews`).toEqual([
      { payment_id: gone!.paymentId, reason: "provider_object_missing" },
    ]);
  });
});

test("the report tells what the run compared, what is open, and what is unfinished on our own side", async () => {
  const paid = await payOne(harness);
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(paid.objectId, { amount: 4_300 });
  await harness.deps.db.sql`
    update attempts set unknown_since = now() - interval '2 days', due_at = now() + interval '1 hour'`;
  const id = await compareNow(harness.deps);
  expect(await reportOf(harness.deps, id)).toMatchObject({
    run: { id, state: "completed", trigger: "command", error: null },
    findings: [
      {
        kind: "amount_differs",
        paymentId: paid.paymentId,
        ours: { amount: 4_200, currency: "usd" },
        theirs: { amount: 4_300, currency: "usd" },
      },
    ],
    unfinished: { openReviews: 1, parkedEvents: 0, pastBound: [{ paymentId: paid.paymentId }] },
  });
  expect(await reportOf(harness.deps, "rec_none")).toBeNull();
  const backlog = await readBacklog(harness.deps);
  expect(backlog).toMatchObject({ openFindings: 1, isRecovering: false });
  expect(backlog.secondsSinceCompared).toBeGreaterThanOrEqual(0);
});

test("a comparison of last year's payments does not pass for one of today's", async () => {
  const comparison = new Comparison(harness.deps);
  const lastYear = { from: new Date("2025-01-01T00:00:00Z"), to: new Date("2025-02-01T00:00:00Z") };
  expect(await comparison.drive(await comparison.begin(lastYear))).toMatchObject({ state: "completed" });
  expect((await readBacklog(harness.deps)).secondsSinceCompared).toBeGreaterThan(86_400);
});

test("what cannot be read is told, since nothing is known of it, and hides nothing else", async () => {
  const { objectId } = await payOne(harness);
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(objectId, { amount: 4_300 });
  const listDisputes = async (page: PageRequest) => {
    const listed = await harness.deps.provider.listDisputes(page);
    return { ...listed, unreadable: ["dp_1"] };
  };
  const id = await compareNow(withProvider(harness.deps, { listDisputes }));
  expect((await reportOf(harness.deps, id))?.run).toMatchObject({
    state: "completed",
    error: "not compared, since there was no answer about it that can be read: dp_1",
  });
  expect(await findingWords(harness)).toEqual([`amount_differs ${objectId} open`]);
});

test("a list that the key may not read is left out and told, and the others are compared", async () => {
  const { objectId } = await payOne(harness);
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(objectId, { amount: 4_300 });
  await harness.sandbox.control.addFault({
    match: { call: ["disputes.list", "balance_transactions.list"] },
    times: null,
    fault: { type: "error", status: 403 },
  });
  const report = await reportOf(harness.deps, await compareNow(harness.deps));
  expect(report?.run).toMatchObject({
    state: "completed",
    error: "not compared, since the key may not read it: disputes, transactions",
  });
  expect(await findingWords(harness)).toEqual([`amount_differs ${objectId} open`]);
  expect((await pay(harness)).type).toBe("final");
});

describe("a run that saw more than a document shows", () => {
  const MENDED = 10_500;

  async function stageMany(): Promise<string> {
    const id = await compareNow(harness.deps);
    await harness.deps.db.sql`
      insert into reconciliation_findings (provider, kind, object_id, state, detail, first_run, last_run, closed_at)
      select 'stripe', 'dispute_differs', 'dp_' || n, 'repaired'::finding_state, 'made up', ${id}, ${id}, now()
        from generate_series(1, ${MENDED}::int) n
      union all select 'stripe', 'status_differs', 'pi_1', 'open', 'made up', ${id}, ${id}, null
      union all select 'stripe', 'amount_differs', 'pi_1', 'open', 'made up', 'rec_0', 'rec_0', null
      union all select 'stripe', 'amount_differs', 'pi_2', 'gone', 'made up', 'rec_0', 'rec_0', now()`;
    return id;
  }

  test("counts all of them, and what is open is not among those that it leaves out", async () => {
    const report = await reportOf(harness.deps, await stageMany());
    expect(report?.isComplete).toBe(false);
    expect(report?.counts).toEqual({
      byState: new Map([
        ["open", 2],
        ["repaired", MENDED],
      ]),
      byKind: new Map([
        ["amount_differs", 1],
        ["dispute_differs", MENDED],
        ["status_differs", 1],
      ]),
    });
    expect(report?.findings).toHaveLength(10_000);
    const open = report?.findings.filter(({ state }) => state === "open").map(({ kind }) => kind);
    expect(open).toEqual(["amount_differs", "status_differs"]);
  });

  test("has each of them once where they are read one by one", async () => {
    const names = new Set<string>();
    let read = 0;
    for await (const { kind, objectId } of findingsOf(harness.deps, await stageMany())) {
      names.add(`${kind} ${objectId}`);
      read += 1;
    }
    expect([read, names.size]).toEqual([MENDED + 2, MENDED + 2]);
  });
});

test("neither a report nor a purge reads the closed differences of other runs", async () => {
  // One connection: what it has read is told as soon as it is asked for.
  const alone = await startHarness({ env: { DATABASE_POOL_MAX: "1" }, workers: [] });
  try {
    const { sql } = alone.deps.db;
    await sql`
      insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, phase)
      values ('stripe', 'rec_9', 'acct_1', 'command', now() - interval '1 hour', now(), 'charges')`;
    await sql`
      insert into reconciliation_findings (provider, kind, object_id, state, detail, first_run, last_run, closed_at)
      select 'stripe', 'dispute_differs', 'dp_' || n, 'repaired'::finding_state, 'made up', 'rec_' || n % 10, 'rec_' || n % 200,
             now()
        from generate_series(1, 20000) n
      union all select 'stripe', 'amount_differs', 'pi_1', 'open', 'made up', 'rec_0', 'rec_0', null`;
    await sql`analyze reconciliation_findings`;
    const before = (await rowsRead(sql)).get("reconciliation_findings") ?? 0;
    const report = await reportOf(alone.deps, "rec_9");
    expect(report?.findings).toHaveLength(101);
    expect(await purgeReconciliation(sql, 3_600_000, 1_000)).toBe(0);
    const after = (await rowsRead(sql)).get("reconciliation_findings") ?? 0;
    expect(after - before).toBeLessThan(1_000);
  } finally {
    await alone.stop();
  }
});
