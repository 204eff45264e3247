import type { AccountBalance, LedgerAccount, LedgerEntry } from "../domain/ledger.js";
import type { Queryable } from "./db.js";
import { type Row, requiredDate } from "./rows.js";

/** An entry as it stands in the books. */
export interface PostedEntry extends LedgerEntry {
  readonly createdAt: Date;
}

/** Names an entry among its payment's. */
export type EntryName = Pick<LedgerEntry, "fact" | "leg">;

/**
 * For a statement with a CTE `posted_input (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account,
 * amount)`: the CTEs that post those entries, and what was really posted as `posted_new` with the same columns.
 * The first leg claims its fact: of two writers of one fact, the second posts no leg of it, whatever it calls them.
 */
export function postEntries(db: Queryable) {
  const columns = db`tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount`;
  return db`posted_facts as (
      insert into ledger_entries (${columns})
      select ${columns} from posted_input where leg = 1 order by tenant_id, payment_id, fact
      on conflict do nothing
      returning ${columns}
    ), posted_legs as (
      insert into ledger_entries (${columns})
      select i.* from (select ${columns} from posted_input where leg > 1) i
       where exists (select from posted_facts f where f.tenant_id = i.tenant_id and f.payment_id = i.payment_id
                       and f.fact = i.fact)
      on conflict do nothing
      returning ${columns}
    ), posted_new as (
      select ${columns} from posted_facts union all select ${columns} from posted_legs
    ), posted_uncounted as (
      insert into ledger_uncounted (${columns}) select ${columns} from posted_new
    )`;
}

/** Posts entries of one payment and yields how many were new. A fact that was posted before is not posted again. */
export async function insertEntries(
  db: Queryable,
  tenantId: string,
  paymentId: string,
  entries: readonly LedgerEntry[],
): Promise<number> {
  if (entries.length === 0) return 0;
  const rows = entries.map((entry) => ({
    fact: entry.fact,
    leg: entry.leg,
    currency: entry.currency,
    debit_account: entry.debitAccount,
    credit_account: entry.creditAccount,
    amount: entry.amount,
  }));
  const [posted] = await db<Row[]>`
    with posted_input as materialized (
      select ${tenantId}::text as tenant_id, ${paymentId}::text as payment_id, x.*
        from json_to_recordset(${JSON.stringify(rows)}::text::json) as x(
          fact text, leg int, currency text, debit_account text, credit_account text, amount bigint)
    ), ${postEntries(db)}
    select count(*)::int as entries from posted_new`;
  return posted?.["entries"] as number;
}

/**
 * Moves at most `limit` entries from the uncounted into the balances, in one statement, and yields how many. Entries
 * that another worker is counting are skipped. Balances are written in the order of their key, so that two workers
 * wait for each other and never deadlock. The only writer of `ledger_balances`. Rows are never updated, so that one that
 * is locked stays in its place: by keys, a plan made while nothing waits would read all that waits for each batch.
 */
export async function countEntries(db: Queryable, limit: number): Promise<number> {
  const [counted] = await db<Row[]>`
    with next as materialized (
      select ctid as place from ledger_uncounted
       order by tenant_id, payment_id, fact, leg limit ${limit} for update skip locked
    ), taken as (
      delete from ledger_uncounted u where u.ctid = any(array(select place from next))
      returning u.*
    ), counted as (
      insert into ledger_balances (tenant_id, currency, account, debits, credits)
      select t.tenant_id, t.currency, side.account, sum(side.debits), sum(side.credits)
        from taken t ${bothSides(db, "t")}
       group by t.tenant_id, t.currency, side.account
       order by t.tenant_id, t.currency, side.account
      on conflict (tenant_id, currency, account) do update
        set debits = ledger_balances.debits + excluded.debits,
            credits = ledger_balances.credits + excluded.credits
    )
    select count(*)::int as entries from taken`;
  return counted?.["entries"] as number;
}

/** An entry's row twice: as its debit account has it and as its credit account has it. */
function bothSides(db: Queryable, alias: "t" | "u") {
  const entry = db(alias);
  return db`cross join lateral (values (${entry}.debit_account, ${entry}.amount, 0),
         (${entry}.credit_account, 0, ${entry}.amount)) as side(account, debits, credits)`;
}

/**
 * Every account of the tenant that anything was ever posted to, by currency and name. Counted and uncounted are read in
 * one statement: its one snapshot has each entry in exactly one of them, whatever a worker is counting meanwhile.
 */
export async function readBalances(db: Queryable, tenantId: string): Promise<AccountBalance[]> {
  const rows = await db<Row[]>`
    select currency, account, sum(debits)::text as debits, sum(credits)::text as credits
      from (select currency, account, debits, credits from ledger_balances where tenant_id = ${tenantId}
            union all
            select u.currency, side.account, side.debits, side.credits
              from ledger_uncounted u ${bothSides(db, "u")} where u.tenant_id = ${tenantId}) as movement
     group by currency, account order by currency, account`;
  return rows.map((row) => ({
    currency: row["currency"] as string,
    account: row["account"] as LedgerAccount,
    debits: BigInt(row["debits"] as string),
    credits: BigInt(row["credits"] as string),
  }));
}

/** Oldest first; `after` is the entry that the last page ended with. */
export async function readEntries(
  db: Queryable,
  tenantId: string,
  paymentId: string,
  page: { readonly limit: number; readonly after: EntryName | null },
): Promise<PostedEntry[]> {
  const rows = await db<Row[]>`
    select * from ledger_entries
     where tenant_id = ${tenantId} and payment_id = ${paymentId}
       ${
         page.after === null
           ? db``
           : db`and (created_at, fact, leg) > (select created_at, fact, leg from ledger_entries
                 where tenant_id = ${tenantId} and payment_id = ${paymentId} and fact = ${page.after.fact}
                   and leg = ${page.after.leg})`
       }
     order by created_at, fact, leg limit ${page.limit}`;
  return rows.map((row) => ({
    fact: row["fact"] as string,
    leg: Number(row["leg"]),
    currency: row["currency"] as string,
    debitAccount: row["debit_account"] as LedgerAccount,
    creditAccount: row["credit_account"] as LedgerAccount,
    amount: Number(row["amount"]),
    createdAt: requiredDate(row["created_at"]),
  }));
}
