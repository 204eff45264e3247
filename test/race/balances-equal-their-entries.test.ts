import { afterAll, beforeAll, expect, test } from "vitest";
import { type MoneyFact, postingsOf } from "../../src/domain/ledger.js";
import { type Database, openDatabase } from "../../src/store/db.js";
import { countEntries, insertEntries, readBalances } from "../../src/store/ledger.js";
import { balanceFaults } from "../support/ledger-faults.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const TENANTS = ["ten_1", "ten_2"];
const CURRENCIES = ["usd", "eur", "jpy"];
const WRITERS = 4;
const PAYMENTS_A_WRITER = 60;
/** Small, so that the two workers are at it all the time. */
const BATCH_SIZE = 7;

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = await openDatabase({ url: database.url, poolMax: 9, prepare: true });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** A payment's life, told twice over by two of the writers, in opposite orders. */
function factsOf(at: number): readonly MoneyFact[] {
  const currency = CURRENCIES[at % CURRENCIES.length] ?? "usd";
  const amount = 1000 + at;
  return [
    { type: "authorized", occurrence: 2, amount, currency },
    { type: "captured", amount: amount - 1, authorized: amount, currency },
    { type: "fee", transactionId: "txn_1", amount: at - 20, currency },
    { type: "refunded", refundId: "re_1", occurrence: 2, amount: 10, currency },
  ];
}

async function write(writer: number): Promise<void> {
  for (let at = 0; at < PAYMENTS_A_WRITER; at += 1) {
    const tenant = TENANTS[at % TENANTS.length] ?? "";
    const facts = factsOf(at);
    const told = writer % 2 === 0 ? facts : facts.toReversed();
    await insertEntries(db.sql, tenant, `pay_${writer >> 1}_${at}`, told.flatMap(postingsOf));
    if (at % WRITERS === writer) await look();
  }
}

/** One worker; counts until nobody writes any more and nothing is left. */
async function count(writing: { readonly over: boolean }): Promise<number> {
  for (let counted = 0; ; ) {
    const over = writing.over;
    const batch = await countEntries(db.sql, BATCH_SIZE);
    counted += batch;
    if (over && batch === 0) return counted;
  }
}

/** All that was ever posted: each entry debits once and credits once. */
async function posted(tenant: string): Promise<bigint> {
  const [row] = await db.sql<{ sum: string }[]>`
    select coalesce(sum(amount), 0) as sum from ledger_entries where tenant_id = ${tenant}`;
  return BigInt(row?.sum ?? 0);
}

/** Entries are only ever added, so what is read between two sums of them lies between them. */
async function look(): Promise<void> {
  expect(await balanceFaults(db.sql)).toEqual([]);
  for (const tenant of TENANTS) {
    const least = await posted(tenant);
    const balances = await readBalances(db.sql, tenant);
    const most = await posted(tenant);
    for (const side of ["debits", "credits"] as const) {
      const sum = balances.reduce((total, balance) => total + balance[side], 0n);
      expect(sum >= least && sum <= most, `${least} <= ${sum} <= ${most}`).toBe(true);
    }
  }
}

test("at every moment, while two workers count what four writers post, each fact twice", async () => {
  const writing = { over: false };
  const workers = [count(writing), count(writing)];
  try {
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  } finally {
    writing.over = true;
  }
  const counted = await Promise.all(workers);
  await look();
  const [row] = await db.sql<{ entries: number; left: number }[]>`
    select (select count(*) from ledger_entries)::int as entries,
           (select count(*) from ledger_uncounted)::int as left`;
  expect(row).toEqual({ entries: (counted[0] ?? 0) + (counted[1] ?? 0), left: 0 });
});
