import type { Queryable } from "../../src/store/db.js";

/**
 * What is wrong in the books, a sentence for each fault, by statements of the tests' own. Each statement has one
 * snapshot, so it holds at every moment, whatever is being posted or counted meanwhile.
 */
export async function ledgerFaults(sql: Queryable): Promise<string[]> {
  return [...(await balanceFaults(sql)), ...(await wrongPayments(sql))];
}

/** The same without the payments: for entries that a test has made up. */
export async function balanceFaults(sql: Queryable): Promise<string[]> {
  return [...(await malformedEntries(sql)), ...(await unevenCurrencies(sql)), ...(await wrongBalances(sql))];
}

async function malformedEntries(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ payment_id: string; fact: string; leg: number }[]>`
    select e.payment_id, e.fact, e.leg from ledger_entries e
     where e.amount <= 0 or e.debit_account = e.credit_account
        or not exists (select from ledger_entries first where first.tenant_id = e.tenant_id
                         and first.payment_id = e.payment_id and first.fact = e.fact and first.leg = 1)`;
  return rows.map((row) => `${row.payment_id} ${row.fact}/${row.leg} is no transfer of money`);
}

/** Both sides of entries (of the ledger, or those that are not counted), as debits and credits of accounts. */
function sidesOf(sql: Queryable, table: "ledger_entries" | "ledger_uncounted") {
  return sql`select tenant_id, currency, debit_account as account, amount as debits, 0 as credits from ${sql(table)}
    union all
    select tenant_id, currency, credit_account, 0, amount from ${sql(table)}`;
}

/** What is shown as balances, from what is counted and what is not. */
function shown(sql: Queryable) {
  return sql`select tenant_id, currency, account, sum(debits) as debits, sum(credits) as credits
    from (select * from ledger_balances union all ${sidesOf(sql, "ledger_uncounted")}) as parts
   group by tenant_id, currency, account`;
}

interface Sums {
  readonly tenant_id: string;
  readonly currency: string;
  readonly account: string;
  readonly debits: string;
  readonly credits: string;
}

async function unevenCurrencies(sql: Queryable): Promise<string[]> {
  const rows = await sql<Sums[]>`
    select tenant_id, currency, sum(debits) as debits, sum(credits) as credits from (${shown(sql)}) as shown
     group by tenant_id, currency having sum(debits) <> sum(credits)`;
  return rows.map(
    (row) => `${row.tenant_id} ${row.currency}: ${row.debits} debited, ${row.credits} credited`,
  );
}

async function wrongBalances(sql: Queryable): Promise<string[]> {
  const rows = await sql<(Sums & { booked: string })[]>`
    with booked as (
      select tenant_id, currency, account, sum(debits) as debits, sum(credits) as credits
        from (${sidesOf(sql, "ledger_entries")}) as sides group by tenant_id, currency, account
    )
    select tenant_id, currency, account, s.debits, s.credits, b.debits || ' and ' || b.credits as booked
      from booked b full join (${shown(sql)}) s using (tenant_id, currency, account)
     where (b.debits, b.credits) is distinct from (s.debits, s.credits)`;
  return rows.map(
    (row) =>
      `${row.tenant_id} ${row.currency} ${row.account} shows ${row.debits} and ${row.credits}, its entries say ${row.booked}`,
  );
}

interface PaymentSums {
  readonly id: string;
  readonly status: string | null;
  readonly amount_captured: string;
  readonly amount_refunded: string;
  readonly amount_capturable: string;
  readonly sold: string;
  readonly refunded: string;
  readonly held: string;
}

/** What a payment says of itself is what its entries in its currency say; entries without their payment are a fault. */
async function wrongPayments(sql: Queryable): Promise<string[]> {
  const net = (debited: string, credited: string) =>
    sql`sum(case when debit_account = ${debited} then amount else 0 end
          - case when credit_account = ${credited} then amount else 0 end)`;
  const rows = await sql<PaymentSums[]>`
    select coalesce(p.id, l.payment_id) as id, p.status, p.amount_captured, p.amount_refunded, p.amount_capturable,
           coalesce(l.sold, 0) as sold, coalesce(l.refunded, 0) as refunded, coalesce(l.held, 0) as held
      from payments p
      full join (select tenant_id, payment_id, currency, -${net("sales", "sales")} as sold,
                        ${net("refunds", "refunds")} as refunded, ${net("authorized", "authorized")} as held
                   from ledger_entries group by tenant_id, payment_id, currency) l
        on l.tenant_id = p.tenant_id and l.payment_id = p.id and l.currency = p.currency
     where p.id is not null or not exists (select from payments o where o.tenant_id = l.tenant_id
                                             and o.id = l.payment_id)`;
  return rows.flatMap(faultsOf);
}

function faultsOf(row: PaymentSums): string[] {
  if (row.status === null) return [`${row.id} has entries and is no payment`];
  const faults: string[] = [];
  if (row.sold !== row.amount_captured)
    faults.push(`${row.id} has captured ${row.amount_captured}, its entries say ${row.sold}`);
  if (row.refunded !== row.amount_refunded)
    faults.push(`${row.id} has refunded ${row.amount_refunded}, its entries say ${row.refunded}`);
  // While a person decides, what is held at the provider need not be what was adopted.
  const held = row.status === "authorized" ? row.amount_capturable : "0";
  if (row.status !== "needs_review" && row.held !== held)
    faults.push(`${row.id} is ${row.status} with ${held} held, its entries say ${row.held}`);
  return faults;
}
