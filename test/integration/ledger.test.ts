import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LedgerEntry, type MoneyFact, postingsOf } from "../../src/domain/ledger.js";
import { countLedger, LEDGER_BATCH_SIZE } from "../../src/operations/count-ledger.js";
import { readBacklog } from "../../src/operations/read-backlog.js";
import { type Database, openDatabase, type Queryable } from "../../src/store/db.js";
import { countEntries, insertEntries, readBalances, readEntries } from "../../src/store/ledger.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";
import { until } from "../support/until.js";

const TENANT = "ten_1";
const POOL_SIZE = 4;

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  db = await openDatabase({ url: database.url, poolMax: POOL_SIZE, prepare: true });
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

function captured(amount: number, authorized = 0, currency = "usd"): readonly LedgerEntry[] {
  return postingsOf({ type: "captured", amount, authorized, currency });
}

function post(paymentId: string, ...facts: readonly MoneyFact[]): Promise<number> {
  return insertEntries(db.sql, TENANT, paymentId, facts.flatMap(postingsOf));
}

/** `usd sales 0 4200`: debits, then credits. */
async function balances(tenantId = TENANT): Promise<string[]> {
  const rows = await readBalances(db.sql, tenantId);
  return rows.map(({ currency, account, debits, credits }) => `${currency} ${account} ${debits} ${credits}`);
}

async function uncounted(): Promise<number> {
  return (await readBacklog({ db })).uncountedEntries;
}

/** Facts of the payment that stand in the books, each as often as it has entries. */
async function factsOf(paymentId: string): Promise<string[]> {
  const entries = await readEntries(db.sql, TENANT, paymentId, { limit: 100, after: null });
  return entries.map(({ fact, leg }) => `${fact}/${leg}`);
}

/** Resolves when so many sessions of this database wait for somebody's lock. */
async function untilWaiting(sessions: number): Promise<void> {
  await until(
    "sessions that wait for a lock",
    async () => {
      const [row] = await db.sql<{ waiting: number }[]>`
        select count(*)::int as waiting from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`;
      return row?.waiting;
    },
    (waiting) => waiting === sessions,
  );
}

/** A transaction that has done its work and stands open until it is told to end. */
async function holdOpen<T>(work: (tx: Queryable) => Promise<T>) {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let done: (result: T) => void = () => undefined;
  const result = new Promise<T>((resolve) => {
    done = resolve;
  });
  const transaction = db.sql.begin(async (tx) => {
    done(await work(tx));
    await ended;
  });
  return {
    result: await Promise.race([result, transaction.then(() => result)]),
    commit: async () => {
      end();
      await transaction;
    },
  };
}

describe("a fact", () => {
  test("posts once, however often it is told", async () => {
    expect(await insertEntries(db.sql, TENANT, "pay_1", captured(6000, 10_000))).toBe(3);
    expect(await insertEntries(db.sql, TENANT, "pay_1", captured(6000, 10_000))).toBe(0);
    expect(await factsOf("pay_1")).toEqual(["captured/1", "captured/2", "captured/3"]);
    expect(await uncounted()).toBe(3);
    expect(await balances()).toEqual([
      "usd authorized 0 10000",
      "usd authorized_contra 10000 0",
      "usd provider_balance 6000 0",
      "usd sales 0 6000",
    ]);
  });

  test("posts no further leg when it is told again in other words", async () => {
    expect(await insertEntries(db.sql, TENANT, "pay_1", captured(6000))).toBe(1);
    expect(await insertEntries(db.sql, TENANT, "pay_1", captured(5000, 10_000))).toBe(0);
    expect(await balances()).toEqual(["usd provider_balance 6000 0", "usd sales 0 6000"]);
  });

  test("posts once when it is told twice in one statement", async () => {
    const entries = captured(6000, 10_000);
    expect(await insertEntries(db.sql, TENANT, "pay_1", [...entries, ...entries])).toBe(3);
    expect(await uncounted()).toBe(3);
  });

  test("posts once when two tell it at the same time, and the second waits for the first", async () => {
    const first = await holdOpen((tx) => insertEntries(tx, TENANT, "pay_1", captured(6000)));
    const second = insertEntries(db.sql, TENANT, "pay_1", captured(5000, 10_000));
    await untilWaiting(1);
    await first.commit();
    expect([first.result, await second]).toEqual([1, 0]);
    expect(await factsOf("pay_1")).toEqual(["captured/1"]);
    expect(await uncounted()).toBe(1);
  });

  test("posts for the second when the first is rolled back", async () => {
    const undone = new Error("undone");
    let second: Promise<number> | undefined;
    const first = db.sql.begin(async (tx) => {
      await insertEntries(tx, TENANT, "pay_1", captured(6000, 10_000));
      second = insertEntries(db.sql, TENANT, "pay_1", captured(6000, 10_000));
      await untilWaiting(1);
      throw undone;
    });
    await expect(first).rejects.toBe(undone);
    expect(await second).toBe(3);
    expect(await uncounted()).toBe(3);
  });

  test("of another payment or tenant is another fact", async () => {
    await insertEntries(db.sql, TENANT, "pay_1", captured(1));
    expect(await insertEntries(db.sql, TENANT, "pay_2", captured(2))).toBe(1);
    expect(await insertEntries(db.sql, "ten_2", "pay_1", captured(4))).toBe(1);
    expect(await balances()).toEqual(["usd provider_balance 3 0", "usd sales 0 3"]);
    expect(await balances("ten_2")).toEqual(["usd provider_balance 4 0", "usd sales 0 4"]);
  });

  test("that moved nothing posts nothing", async () => {
    expect(await post("pay_1", { type: "fee", transactionId: "txn_1", amount: 0, currency: "usd" })).toBe(0);
    expect(await balances()).toEqual([]);
  });
});

describe("a balance", () => {
  test("is exact from the first entry of a new account on, before and after it is counted", async () => {
    expect(await balances()).toEqual([]);
    await insertEntries(db.sql, TENANT, "pay_1", captured(4200));
    const first = ["usd provider_balance 4200 0", "usd sales 0 4200"];
    expect(await balances()).toEqual(first);
    expect(await countLedger({ db })).toBe(1);
    expect(await balances()).toEqual(first);
    await post("pay_1", { type: "fee", transactionId: "txn_1", amount: 152, currency: "usd" });
    const second = ["usd provider_balance 4200 152", "usd provider_fees 152 0", "usd sales 0 4200"];
    expect(await balances()).toEqual(second);
    expect(await countLedger({ db })).toBe(1);
    expect(await balances()).toEqual(second);
    expect([await uncounted(), await countLedger({ db })]).toEqual([0, 0]);
  });

  test("is the same while a worker that is counting has not committed", async () => {
    await insertEntries(db.sql, TENANT, "pay_1", captured(100));
    await countLedger({ db });
    await insertEntries(db.sql, TENANT, "pay_2", captured(20));
    await insertEntries(db.sql, TENANT, "pay_3", captured(3, 0, "eur"));
    const exact = [
      "eur provider_balance 3 0",
      "eur sales 0 3",
      "usd provider_balance 120 0",
      "usd sales 0 120",
    ];
    const counting = await holdOpen((tx) => countEntries(tx, 10));
    expect(counting.result).toBe(2);
    expect([await uncounted(), await balances()]).toEqual([2, exact]);
    await counting.commit();
    expect([await uncounted(), await balances()]).toEqual([0, exact]);
  });

  test.each(["ledger_uncounted", "ledger_balances"])(
    "is the same where a worker commits while it is read (as it comes to %s)",
    async (table) => {
      await insertEntries(db.sql, TENANT, "pay_1", captured(4200));
      const counting = await holdOpen(async (tx) => {
        await tx`lock table ${tx(table)} in access exclusive mode`;
        return countEntries(tx, 10);
      });
      const read = balances();
      await untilWaiting(1);
      await counting.commit();
      expect(await read).toEqual(["usd provider_balance 4200 0", "usd sales 0 4200"]);
    },
  );

  test("has an entry at its commit and no moment earlier", async () => {
    const posting = await holdOpen((tx) => insertEntries(tx, TENANT, "pay_1", captured(4200)));
    expect([await balances(), await countLedger({ db })]).toEqual([[], 0]);
    await posting.commit();
    expect(await balances()).toEqual(["usd provider_balance 4200 0", "usd sales 0 4200"]);
  });

  test("is exact beyond 2^53, counted or not", async () => {
    const most = Number.MAX_SAFE_INTEGER;
    await insertEntries(db.sql, TENANT, "pay_1", captured(most));
    await insertEntries(db.sql, TENANT, "pay_2", captured(most));
    await countLedger({ db });
    await insertEntries(db.sql, TENANT, "pay_3", captured(most));
    const sum = "27021597764222973";
    expect(BigInt(most) * 3n).toBe(BigInt(sum));
    expect(await balances()).toEqual([`usd provider_balance ${sum} 0`, `usd sales 0 ${sum}`]);
  });
});

describe("the roll-up", () => {
  test("takes a batch at a time and says how many", async () => {
    for (let at = 0; at < 5; at += 1) await insertEntries(db.sql, TENANT, `pay_${at}`, captured(1));
    expect([await countEntries(db.sql, 3), await countEntries(db.sql, 3)]).toEqual([3, 2]);
    expect(await countEntries(db.sql, 3)).toBe(0);
    expect(LEDGER_BATCH_SIZE).toBeGreaterThan(0);
    expect(await balances()).toEqual(["usd provider_balance 5 0", "usd sales 0 5"]);
  });

  test("counts every entry once beside another worker, which takes other entries and waits for its balances", async () => {
    for (let at = 0; at < 6; at += 1) await insertEntries(db.sql, TENANT, `pay_${at}`, captured(10 ** at));
    const first = await holdOpen((tx) => countEntries(tx, 3));
    const second = countEntries(db.sql, 10);
    await untilWaiting(1);
    const exact = ["usd provider_balance 111111 0", "usd sales 0 111111"];
    expect(await balances()).toEqual(exact);
    await first.commit();
    expect([first.result, await second]).toEqual([3, 3]);
    expect([await uncounted(), await balances()]).toEqual([0, exact]);
  });

  test("does not wait for entries that another worker is counting", async () => {
    await insertEntries(db.sql, "ten_1", "pay_1", captured(1));
    await insertEntries(db.sql, "ten_2", "pay_2", captured(2));
    const first = await holdOpen((tx) => countEntries(tx, 1));
    expect([first.result, await countEntries(db.sql, 10)]).toEqual([1, 1]);
    await first.commit();
    expect([await balances("ten_1"), await balances("ten_2")]).toEqual([
      ["usd provider_balance 1 0", "usd sales 0 1"],
      ["usd provider_balance 2 0", "usd sales 0 2"],
    ]);
  });

  test("takes balances in the order of their key, so that two workers cannot hold what the other needs", async () => {
    const currencies = ["usd", "eur", "jpy", "gbp", "chf"];
    const postAll = async (round: number) => {
      for (const currency of currencies)
        await insertEntries(db.sql, TENANT, `pay_${round}_${currency}`, captured(100, 100, currency));
    };
    await postAll(1);
    await countLedger({ db });
    await postAll(2);
    const lowest = await holdOpen(
      (tx) => tx`select from ledger_balances order by tenant_id, currency, account limit 1 for update`,
    );
    const counting = countLedger({ db });
    await untilWaiting(1);
    const free = await db.sql`select 1 from ledger_balances for update skip locked`;
    await lowest.commit();
    expect(free).toHaveLength(currencies.length * 4 - 1);
    expect(await counting).toBe(currencies.length * 2);
  });

  test("leaves its entries to the next when it dies before its commit", async () => {
    await insertEntries(db.sql, TENANT, "pay_1", captured(4200));
    const died = new Error("died");
    await expect(
      db.sql.begin(async (tx) => {
        expect(await countEntries(tx, 10)).toBe(1);
        throw died;
      }),
    ).rejects.toBe(died);
    expect(await countEntries(db.sql, 10)).toBe(1);
    expect(await balances()).toEqual(["usd provider_balance 4200 0", "usd sales 0 4200"]);
  });
});
