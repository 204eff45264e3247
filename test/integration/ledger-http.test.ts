import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type MoneyFact, postingsOf } from "../../src/domain/ledger.js";
import type { Scope } from "../../src/domain/scopes.js";
import { createApp } from "../../src/http/app.js";
import { balanceSchema, ledgerEntrySchema } from "../../src/http/ledger-schemas.js";
import { listOf, problemSchema } from "../../src/http/response-schemas.js";
import { type Server, serve } from "../../src/http/serve.js";
import { newId } from "../../src/lib/ids.js";
import { countLedger } from "../../src/operations/count-ledger.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { insertEntries } from "../../src/store/ledger.js";
import { type Harness, startHarness } from "../support/harness.js";

const MOST = 999_999_999_999;

let harness: Harness;
let server: Server;
let url: string;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
  server = await serve(createApp(harness.deps), { host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${server.port}`;
});
afterAll(async () => {
  await server.close(1_000);
  await harness.stop();
});

/** A tenant of its own a test: its key, and a way to post entries of a payment of its. */
interface Books {
  readonly secret: string;
  readonly payment: string;
  post(payment: string, ...facts: readonly MoneyFact[]): Promise<number>;
}

async function openBooks(scopes: readonly Scope[] | null = null): Promise<Books> {
  const tenant = await createTenant(harness.deps, "test");
  const key = await createApiKey(harness.deps, {
    tenantId: tenant.id,
    scopes,
    livemode: false,
  });
  if (key === null) throw new Error("the tenant vanished");
  const payment = newId("pay");
  await harness.deps.db.sql`
    insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id, holds_order_id,
                          metadata, provider, livemode)
    values (${tenant.id}, ${payment}, 10000, 'usd', 'manual', 'pm_card_visa', 'att_none', false, '{}', 'none', false)`;
  return {
    secret: key.secret,
    payment,
    post: (payment, ...facts) =>
      insertEntries(harness.deps.db.sql, tenant.id, payment, facts.flatMap(postingsOf)),
  };
}

let books: Books;
beforeEach(async () => {
  books = await openBooks();
});

async function get(
  path: string,
  secret = books.secret,
): Promise<{ status: number; text: string; json: unknown }> {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${secret}` } });
  const text = await response.text();
  return { status: response.status, text, json: JSON.parse(text) };
}

const entriesPath = (payment: string, rest = "") => `/v1/ledger/entries?payment=${payment}${rest}`;

const HOLD = { type: "authorized", occurrence: 2, amount: 10_000, currency: "usd" } as const;
const SALE = { type: "captured", amount: 6000, authorized: 10_000, currency: "usd" } as const;

describe("GET /v1/balances", () => {
  test("shows every account with movement, by currency, as the OpenAPI document says", async () => {
    await books.post(books.payment, HOLD, SALE);
    await countLedger(harness.deps);
    await books.post(books.payment, { type: "fee", transactionId: "txn_1", amount: 33, currency: "jpy" });
    const answer = await get("/v1/balances");
    expect(answer.status).toBe(200);
    const { data, has_more, next_cursor } = listOf(balanceSchema).parse(answer.json);
    expect([has_more, next_cursor]).toEqual([false, null]);
    expect(data.map((row) => [row.currency, row.account, row.debits, row.credits, row.balance])).toEqual([
      ["jpy", "provider_balance", 0, 33, -33],
      ["jpy", "provider_fees", 33, 0, 33],
      ["usd", "authorized", 10_000, 10_000, 0],
      ["usd", "authorized_contra", 10_000, 10_000, 0],
      ["usd", "provider_balance", 6000, 0, 6000],
      ["usd", "sales", 0, 6000, -6000],
    ]);
  });

  test("writes sums beyond 2^53 digit for digit, as integers", async () => {
    // 9008 payments of the largest amount: the least number of them that passes 2^53.
    await harness.deps.db.sql`
      insert into ledger_balances (tenant_id, currency, account, debits, credits)
      select p.tenant_id, 'usd', 'sales', 0, ${MOST}::numeric * 9008 + 1 from payments p where p.id = ${books.payment}`;
    const { text } = await get("/v1/balances");
    expect(text).toContain('"debits":0,"credits":9007999999990993,"balance":-9007999999990993}');
    expect(Number.isSafeInteger(9007999999990993)).toBe(false);
  });

  test("is empty for a tenant to whom nothing has happened, and no other tenant's", async () => {
    await books.post(books.payment, HOLD);
    const other = await openBooks();
    expect((await get("/v1/balances", other.secret)).json).toEqual({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });

  test.each(["limit=1", "currency=usd", "payment=pay_1"])("refuses ?%s by name", async (query) => {
    const answer = await get(`/v1/balances?${query}`);
    const problem = problemSchema.parse(answer.json);
    expect([answer.status, problem.code]).toEqual([400, "validation_failed"]);
    expect(problem.errors?.map((fault) => fault.pointer)).toEqual([`?${query.split("=")[0]}`]);
  });
});

describe("GET /v1/ledger/entries", () => {
  test("shows a payment's entries, the oldest first, as the OpenAPI document says", async () => {
    await books.post(books.payment, HOLD);
    await books.post(books.payment, SALE);
    const answer = await get(entriesPath(books.payment));
    expect(answer.status).toBe(200);
    const { data, has_more } = listOf(ledgerEntrySchema).parse(answer.json);
    expect(has_more).toBe(false);
    expect(data.map(({ created_at: _at, ...entry }) => entry)).toEqual([
      {
        object: "ledger_entry",
        payment: books.payment,
        fact: "authorized:2",
        leg: 1,
        debit_account: "authorized",
        credit_account: "authorized_contra",
        amount: 10_000,
        currency: "usd",
      },
      ...[
        ["provider_balance", "sales", 6000],
        ["authorized_contra", "authorized", 6000],
        ["authorized_contra", "authorized", 4000],
      ].map(([debit_account, credit_account, amount], at) => ({
        object: "ledger_entry",
        payment: books.payment,
        fact: "captured",
        leg: at + 1,
        debit_account,
        credit_account,
        amount,
        currency: "usd",
      })),
    ]);
  });

  test("pages through them, each once and in the same order, whatever is posted meanwhile", async () => {
    await books.post(books.payment, HOLD, SALE);
    await books.post(books.payment, { type: "fee", transactionId: "txn_1", amount: 33, currency: "usd" });
    const page = listOf(ledgerEntrySchema);
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const query: string = `&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const { data, has_more, next_cursor } = page.parse((await get(entriesPath(books.payment, query))).json);
      seen.push(...data.map(({ fact, leg }) => `${fact}/${leg}`));
      expect(has_more).toBe(next_cursor !== null);
      if (cursor === "") {
        await books.post(books.payment, { type: "fee", transactionId: "a", amount: 1, currency: "usd" });
      }
      cursor = next_cursor;
    }
    expect(seen).toEqual([
      "authorized:2/1",
      "captured/1",
      "captured/2",
      "captured/3",
      "fee:txn_1/1",
      "fee:a/1",
    ]);
  });

  test("of another tenant's payment, or of none, are 404", async () => {
    await books.post(books.payment, HOLD);
    const other = await openBooks();
    for (const answer of [
      await get(entriesPath(books.payment), other.secret),
      await get(entriesPath("pay_0198d5f2a3c47b1e9d20f6c1a8e45b77")),
      await get(entriesPath("no-such-thing")),
    ]) {
      expect([answer.status, problemSchema.parse(answer.json).code]).toEqual([404, "not_found"]);
    }
    expect((await get(entriesPath(other.payment), other.secret)).json).toMatchObject({ data: [] });
  });

  test.each([
    ["", "?payment"],
    ["payment=", "?payment"],
    ["payment=%00", "?payment"],
    ["payment=pay_1&payment=pay_2", "?payment"],
    ["payment=pay_1&limit=0", "?limit"],
    ["payment=pay_1&limit=101", "?limit"],
    ["payment=pay_1&fact=captured", "?fact"],
    ["payment=pay_1&cursor=", "?cursor"],
    ["payment=pay_1&cursor=bm90aGluZw", "?cursor"],
    // `0:captured`, and a leg without its fact.
    ["payment=pay_1&cursor=MDpjYXB0dXJlZA", "?cursor"],
    ["payment=pay_1&cursor=MTo", "?cursor"],
  ])("refuses ?%s by name", async (query, pointer) => {
    const answer = await get(`/v1/ledger/entries?${query}`);
    const problem = problemSchema.parse(answer.json);
    expect([answer.status, problem.code]).toEqual([400, "validation_failed"]);
    expect(problem.errors?.map((fault) => fault.pointer)).toEqual([pointer]);
  });
});

test("both need the scope payments:read", async () => {
  const { secret, payment } = await openBooks(["payments:write"]);
  for (const path of ["/v1/balances", entriesPath(payment)]) {
    const answer = await get(path, secret);
    expect([answer.status, problemSchema.parse(answer.json).code]).toEqual([403, "permission_denied"]);
  }
});
