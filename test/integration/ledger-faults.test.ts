import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type MoneyFact, postingsOf } from "../../src/domain/ledger.js";
import { type Database, openDatabase } from "../../src/store/db.js";
import { countEntries, insertEntries } from "../../src/store/ledger.js";
import { ledgerFaults } from "../support/ledger-faults.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  db = await openDatabase({ url: database.url, poolMax: 2, prepare: true });
  await addPayment("pay_held", "authorized", { capturable: 10_000 });
  await post("pay_held", HOLD);
  await addPayment("pay_sold", "succeeded", { captured: 6000, refunded: 1000 });
  await post("pay_sold", HOLD, SALE, REFUND);
  await countEntries(db.sql, 2);
  await post("pay_sold", { type: "fee", transactionId: "txn_1", amount: 12, currency: "eur" });
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

const HOLD = { type: "authorized", occurrence: 2, amount: 10_000, currency: "usd" } as const;
const SALE = { type: "captured", amount: 6000, authorized: 10_000, currency: "usd" } as const;
const REFUND = { type: "refunded", refundId: "re_1", occurrence: 2, amount: 1000, currency: "usd" } as const;

async function addPayment(
  id: string,
  status: string,
  amounts: { readonly capturable?: number; readonly captured?: number; readonly refunded?: number },
): Promise<void> {
  const { capturable = 0, captured = 0, refunded = 0 } = amounts;
  await db.sql`
    insert into payments (tenant_id, id, status, amount, currency, capture_method, payment_method, attempt_id,
                          holds_order_id, metadata, provider, livemode, amount_capturable, amount_captured,
                          amount_refunded)
    values ('ten_1', ${id}, ${status}, 10000, 'usd', 'manual', 'pm_card_visa', 'att_none', false, '{}', 'none', false,
            ${capturable}, ${captured}, ${refunded})`;
}

function post(paymentId: string, ...facts: readonly MoneyFact[]): Promise<number> {
  return insertEntries(db.sql, "ten_1", paymentId, facts.flatMap(postingsOf));
}

describe("the check of the books", () => {
  test("finds nothing in sound ones, counted or not", async () => {
    expect(await ledgerFaults(db.sql)).toEqual([]);
    await countEntries(db.sql, 100);
    expect(await ledgerFaults(db.sql)).toEqual([]);
  });

  test.each<readonly [string, string, readonly string[]]>([
    [
      "an entry that is in no balance",
      "delete from ledger_uncounted where fact = 'fee:txn_1'",
      [
        "ten_1 eur provider_balance shows null and null, its entries say 0 and 12",
        "ten_1 eur provider_fees shows null and null, its entries say 12 and 0",
      ],
    ],
    [
      "a balance that no entry made, and that nothing balances",
      "insert into ledger_balances values ('ten_1', 'jpy', 'sales', 0, 5)",
      ["ten_1 jpy sales shows 0 and 5, its entries say null", "ten_1 jpy: 0 debited, 5 credited"],
    ],
    [
      "a balance that is one off",
      "update ledger_balances set debits = debits + 1 where account = 'authorized'",
      [
        "ten_1 usd authorized shows 20001 and 10000, its entries say 20000 and 10000",
        "ten_1 usd: 37001 debited, 37000 credited",
      ],
    ],
    [
      "an entry without the leg that claims its fact",
      `insert into ledger_entries values ('ten_1', 'pay_sold', 'fee:txn_2', 2, 'usd', 'bank', 'sales', 1);
       delete from ledger_entries where fact = 'fee:txn_2' and leg = 1`,
      ["pay_sold fee:txn_2/2 is no transfer of money"],
    ],
    [
      "an entry of nothing",
      "update ledger_entries set amount = 0 where fact = 'fee:txn_1'",
      ["pay_sold fee:txn_1/1 is no transfer of money"],
    ],
    [
      "a payment that captured more than its entries say",
      "update payments set amount_captured = 6001 where id = 'pay_sold'",
      ["pay_sold has captured 6001, its entries say 6000"],
    ],
    [
      "a payment that refunded less than its entries say",
      "update payments set amount_refunded = 0 where id = 'pay_sold'",
      ["pay_sold has refunded 0, its entries say 1000"],
    ],
    [
      "a hold that outlives its payment",
      "update payments set status = 'canceled' where id = 'pay_held'",
      ["pay_held is canceled with 0 held, its entries say 10000"],
    ],
    [
      "a payment without any entry",
      "update payments set amount_captured = 5 where id = 'pay_held'",
      ["pay_held has captured 5, its entries say 0"],
    ],
    [
      "entries without their payment",
      "update payments set id = 'pay_other', status = 'failed', amount_capturable = 0 where id = 'pay_held'",
      ["pay_held has entries and is no payment"],
    ],
  ])("finds %s", async (_what, breakage, faults) => {
    await db.sql.unsafe(breakage);
    expect(await ledgerFaults(db.sql)).toEqual(expect.arrayContaining([...faults]));
  });
});
