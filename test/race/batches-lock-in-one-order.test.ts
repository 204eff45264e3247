import postgres from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ChargeView } from "../../src/domain/charge-change.js";
import type { LedgerEntry } from "../../src/domain/ledger.js";
import { renewLease } from "../../src/operations/record-outcome.js";
import { readAttempt } from "../../src/store/attempts.js";
import { countEntries, insertEntries } from "../../src/store/ledger.js";
import { claimRun, commitStep, type FoundDifference, insertRun } from "../../src/store/reconciliation.js";
import { MARK_PARTS, markOpenAttempts } from "../../src/store/recovery.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";
import { untilWaiting } from "../support/lock-waits.js";

/**
 * Two statements of many rows each that have rows in common deadlock unless both take them in one order. Here one that
 * is given its rows the wrong way round stands at the last of that order, which somebody holds: it has the others.
 */

let harness: Harness;
let holder: postgres.Sql;
let prober: postgres.Sql;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
  const connect = () =>
    postgres(harness.database.url, { max: 1, fetch_types: false, onnotice: () => undefined });
  [holder, prober] = [connect(), connect()];
});
beforeEach(async () => {
  for (const one of [holder, prober]) await one`begin`;
});
afterEach(async () => {
  for (const one of [holder, prober]) await one`rollback`;
});
afterAll(async () => {
  for (const one of [holder, prober]) await one.end();
  await harness.stop();
});

/** What waited for them goes on. */
async function letGo(): Promise<void> {
  for (const one of [holder, prober]) await one`rollback`;
}

/** Whether the prober's insert stands at one that has not been committed, or goes through. */
async function meets(insert: Promise<unknown>): Promise<string> {
  const free = insert.then(
    () => "a row that is free",
    () => "a row that is held",
  );
  return Promise.race([free, untilWaiting(harness.deps.db, 2).then(() => "a row that is held")]);
}

interface Attempt {
  readonly id: string;
  readonly part: number;
}

async function acceptedViews(count: number): Promise<ChargeView[]> {
  const { deps, caller } = harness;
  await Promise.all(Array.from({ length: count }, () => pay(harness, { waitMs: 0 })));
  const ids = await deps.db.sql<{ id: string }[]>`select id from attempts order by payment_id`;
  const read = await Promise.all(ids.map(({ id }) => readAttempt(deps.db.sql, caller.tenantId, id)));
  return read.flatMap((one) => (one === null ? [] : [one as unknown as ChargeView]));
}

describe("a batch that is given its rows in another order locks them in one order all the same", () => {
  test("outcomes of attempts, by their payments", async () => {
    const [first, last] = await acceptedViews(2);
    if (first === undefined || last === undefined) throw new Error("two were accepted");
    await holder`select from attempts where id = ${last.attempt.id} for update`;
    const written = Promise.all([last, first].map((view) => renewLease(harness.deps, view, false)));
    await untilWaiting(harness.deps.db);
    expect(
      await prober`select id from attempts where id = ${first.attempt.id} for update skip locked`,
    ).toEqual([]);
    await letGo();
    expect(await written).toEqual([true, true]);
  });

  test("open attempts that a recovery marks, by their ids", async () => {
    const { sql } = harness.deps.db;
    await acceptedViews(64);
    const rows = await sql<Attempt[]>`
      select id, hashtext(id) & ${MARK_PARTS - 1} as part from attempts order by ctid`;
    // A higher id that lies before a lower one in the table, where a scan would meet it first.
    const isBehind = (last: Attempt, first: Attempt) => first.part === last.part && first.id < last.id;
    const last = rows.find((one, at) => rows.slice(at).some((other) => isBehind(one, other)));
    const first = rows.slice(rows.indexOf(last as Attempt)).find((one) => isBehind(last as Attempt, one));
    if (first === undefined || last === undefined) throw new Error("of so many some lie so");
    await holder`select from attempts where id = ${last.id} for update`;
    const marked = markOpenAttempts(sql, last.part);
    await untilWaiting(harness.deps.db);
    expect(await prober`select id from attempts where id = ${first.id} for update skip locked`).toEqual([]);
    await letGo();
    expect(await marked).toBeGreaterThan(1);
  });

  test("accepts, by their keys", async () => {
    const keys = [newKey(), newKey()].toSorted();
    const claim = (sql: postgres.Sql, key: string | undefined) => sql`
      insert into idempotency_keys (tenant_id, operation, key, fingerprint, run, resource_id, request_id)
      values (${harness.caller.tenantId}, 'payments.create', ${key ?? ""}, 'other', 1, 'pay_other', 'req_other')`;
    await claim(holder, keys[1]);
    const accepted = Promise.all(keys.toReversed().map((key) => pay(harness, { key, waitMs: 0 })));
    await untilWaiting(harness.deps.db);
    const met = meets(claim(prober, keys[0]));
    expect(await met).toBe("a row that is held");
    await holder`rollback`;
    expect((await accepted).map((answer) => documentOf(answer).status)).toEqual(["processing", "processing"]);
  });

  test("order ids of accepts, by themselves and not by the keys that they come with", async () => {
    const [first, last] = [newKey(), newKey()].toSorted();
    const keys = [newKey(), newKey()].toSorted();
    const holds = (sql: postgres.Sql, orderId: string | undefined) => sql`
      insert into order_ids (tenant_id, merchant_order_id, payment_id)
      values (${harness.caller.tenantId}, ${orderId ?? ""}, 'pay_other')`;
    await holds(holder, last);
    const accepted = Promise.all(
      [last, first].map((orderId, at) =>
        pay(harness, { key: keys[at] ?? "", input: { merchant_order_id: orderId ?? null }, waitMs: 0 }),
      ),
    );
    await untilWaiting(harness.deps.db);
    expect(await meets(holds(prober, first))).toBe("a row that is held");
    await holder`rollback`;
    expect((await accepted).map((answer) => documentOf(answer).status)).toEqual(["processing", "processing"]);
  });

  test("entries of the books, by their facts", async () => {
    const { sql } = harness.deps.db;
    const entry = (fact: string): LedgerEntry => ({
      fact,
      leg: 1,
      currency: "usd",
      debitAccount: "provider_balance",
      creditAccount: "sales",
      amount: 1,
    });
    await insertEntries(holder, "ten_1", "pay_1", [entry("captured:2")]);
    const posted = insertEntries(sql, "ten_1", "pay_1", [entry("captured:2"), entry("captured:1")]);
    await untilWaiting(harness.deps.db);
    const met = meets(insertEntries(prober, "ten_1", "pay_1", [entry("captured:1")]));
    expect(await met).toBe("a row that is held");
    await holder`rollback`;
    expect(await posted).toBe(2);
  });

  test("balances, by their accounts", async () => {
    const { sql } = harness.deps.db;
    const ACCOUNTS = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (const account of ACCOUNTS) {
      await sql`insert into ledger_balances (tenant_id, currency, account, debits, credits)
                values ('ten_1', 'usd', ${account}, 0, 0)`;
      await sql`insert into ledger_uncounted (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount)
                values ('ten_1', ${`pay_${account}`}, 'captured', 1, 'usd', ${account}, ${account}, 1)`;
    }
    await holder`select from ledger_balances where tenant_id = 'ten_1' and account = 'h' for update`;
    const counted = countEntries(sql, 100);
    await untilWaiting(harness.deps.db);
    expect(
      await prober`select account from ledger_balances where tenant_id = 'ten_1' for update skip locked`,
    ).toEqual([]);
    await letGo();
    expect(await counted).toBeGreaterThanOrEqual(ACCOUNTS.length);
  });

  test("differences from the provider, by their kinds and objects", async () => {
    const { sql } = harness.deps.db;
    const at = new Date();
    const rest = {
      provider: "stripe",
      account: "acct_1",
      trigger: "command",
      windowFrom: at,
      windowTo: at,
    } as const;
    await insertRun(sql, { ...rest, id: "rec_1", phase: "charges" });
    const run = await claimRun(sql, { ...rest, owner: "one", leaseMs: 60_000, id: "rec_1" });
    if (run === null) throw new Error("nobody else claims it");
    const found = (objectId: string): FoundDifference => ({
      kind: "amount_differs",
      objectId,
      tenantId: null,
      paymentId: null,
      ours: null,
      theirs: null,
      detail: "",
      state: "open",
    });
    const step = {
      phase: "charges",
      cursor: null,
      state: "running",
      objects: 0,
      error: null,
      leaseMs: 1,
    } as const;
    expect(await commitStep(sql, run, { ...step, findings: [found("pi_1"), found("pi_2")] })).toBe(true);
    await holder`select from reconciliation_findings where object_id = 'pi_2' for update`;
    const next = { ...run, pages: run.pages + 1 };
    const committed = commitStep(sql, next, { ...step, findings: [found("pi_2"), found("pi_1")] });
    await untilWaiting(harness.deps.db);
    expect(await prober`select object_id from reconciliation_findings for update skip locked`).toEqual([]);
    await letGo();
    expect(await committed).toBe(true);
  });
});
