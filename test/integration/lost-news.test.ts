import { afterEach, describe, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince } from "../../src/operations/recover.js";
import { dumpRows, restoreRows } from "../support/dump.js";
import { paid, refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, startHarness, until } from "../support/harness.js";
import { COMPARING, compareNow, findingsOf, loseRows } from "../support/reconciliation.js";
import { faultsAfterSettling } from "../support/settle-checks.js";

let harness: Harness;
afterEach(() => harness.stop());

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** A person who says since when rows were lost, and the comparison that takes in what the provider knows. */
async function recover(since: Date, onStep: (phase: string) => void = () => undefined): Promise<void> {
  const comparison = new Comparison(harness.deps);
  const id = await beginRecoverySince(harness.deps, await comparison.accountOrThrow(), since);
  const run = await comparison.drive(id, ({ phase }) => onStep(phase));
  expect(run).toMatchObject({ state: "completed", error: null });
}

describe("a payout whose news came in the lost time", () => {
  const paidOut = () => harness.deps.db.sql<{ fact: string; debit_account: string; amount: string }[]>`
    select fact, debit_account, amount from ledger_entries where fact like 'paid_out:%' order by fact`;

  test("is posted by the recovery, once however often the data are recovered", async () => {
    harness = await startHarness({
      env: { ...COMPARING, PROVIDER_EVENT_INTERVAL_MS: "50" },
      workers: ["attempts", "reconciler", "ledger", "provider-events"],
    });
    const { control } = harness.sandbox;
    await control.changeSettings({ funds_available_after_ms: 0 });
    const id = await paid(harness);
    await refund(harness, id, 1_000);
    await control.bank.payOut();
    await recover(minutesAgo(60));
    const posted = await until("the payout's postings", paidOut, (rows) => rows.length === 2);
    expect(posted.map((row) => row.debit_account).toSorted()).toEqual(["bank", "provider_balance"]);
    await harness.deps.db.sql`delete from provider_events`;
    await recover(minutesAgo(60));
    const inbox = () => harness.deps.db.sql<{ state: string }[]>`select state from provider_events`;
    await until("its news, told again", inbox, (rows) => rows.length > 0 && rows.every(isApplied));
    expect(await paidOut()).toEqual(posted);
    expect(await faultsAfterSettling(harness)).toEqual([]);
  });
});

const isApplied = ({ state }: { readonly state: string }) => state === "applied";

describe("a refund that was made at the dashboard in the lost time", () => {
  test("of a charge that an earlier comparison has found missing is taken in by the same recovery", async () => {
    harness = await startHarness({ env: COMPARING });
    const { id, provider_payment_id: objectId } = documentOf(await pay(harness));
    const { control } = harness.sandbox;
    await loseRows(harness, [id]);
    const created = Math.floor(Date.now() / 1_000) - 1_200;
    await control.patchPaymentIntent(String(objectId), { created });
    await compareNow(harness.deps);
    expect(await findingsOf(harness)).toMatchObject([{ kind: "missing_here", state: "open" }]);
    await control.dashboard.refund(String(objectId), 700);
    await recover(minutesAgo(10));
    const { sql } = harness.deps.db;
    expect(await sql`select amount_refunded from payments`).toEqual([{ amount_refunded: "700" }]);
    expect((await findingsOf(harness)).filter(({ state }) => state === "open")).toEqual([]);
  });

  test("is taken in before the recovery ends where its payment is being written just then", async () => {
    harness = await startHarness({ env: COMPARING });
    const { provider_payment_id: objectId } = documentOf(await pay(harness));
    await harness.sandbox.control.dashboard.refund(String(objectId), 700);
    const { sql } = harness.deps.db;
    const writer = await sql.reserve();
    await writer`begin`;
    await writer`select from payments for update`;
    const ends: Promise<unknown>[] = [];
    let looks = 0;
    await recover(minutesAgo(60), (phase) => {
      looks += phase === "verify" ? 1 : 0;
      if (looks === 3) ends.push(Promise.resolve(writer`rollback`));
    });
    await Promise.all(ends);
    writer.release();
    expect(await findingsOf(harness)).toMatchObject([{ kind: "refund_outside", state: "repaired" }]);
    expect(await sql`select amount from refunds`).toEqual([{ amount: "700" }]);
  });
});

describe("a caller whose rows are lost while it waits", () => {
  test.each([false, true])("is told to send its key again, as a duplicate of it: %s", async (isDuplicate) => {
    harness = await startHarness({ env: COMPARING, workers: [] });
    const key = newKey();
    const before = await dumpRows(harness);
    const first = pay(harness, { key, waitMs: 1_500 });
    const { sql } = harness.deps.db;
    await until(
      "its acceptance",
      () => sql`select 1 from payments`,
      (rows) => rows.length === 1,
    );
    const asked = isDuplicate ? pay(harness, { key, waitMs: 1_500, explicit: true }) : first;
    const told = Promise.allSettled([first, asked]);
    await until(
      "who waits",
      () => Promise.resolve(harness.deps.outcomes.waitedFor()),
      (who) => who.length > 0,
    );
    await restoreRows(harness, before);
    const refused = { code: "service_unavailable", extra: { retryAfterSeconds: 1 } };
    for (const one of await told) expect(one).toMatchObject({ status: "rejected", reason: refused });
  });
});
