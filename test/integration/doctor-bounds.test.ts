import type postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.js";
import { doctorBounds, SUBJECT_KINDS, violationName } from "../../src/domain/doctor.js";
import { createLogger } from "../../src/lib/log.js";
import { examine } from "../../src/operations/doctor.js";
import {
  openChecks,
  readOpenSubjects,
  readSample,
  readSubjects,
  subjectChecks,
} from "../../src/store/doctor.js";
import { openStore, type Store } from "../../src/wire.js";
import { connectAdmin, makeCrowd } from "../support/doctor-crowd.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

/** More than are named of a kind. */
const MANY = 150;
const MOST_NAMED = 100;
const BOUNDS = doctorBounds(readConfig({}).settings);

/** Everything of which there may be many is there `MANY` times, and broken: what nobody has done for a long time. */
async function neglect(sql: postgres.Sql): Promise<void> {
  await sql`update attempts set due_at = now() - interval '1 hour', state = 'following'`;
  await sql`
    update attempts a set due_at = now() + interval '1 year' + n * interval '1 second'
      from (select id, row_number() over (order by id) as n from attempts where tenant_id = 'ten_other') o
     where a.tenant_id = 'ten_other' and a.id = o.id`;
  await sql`update outbox set relayed_at = null, created_at = now() - interval '1 hour'`;
  await sql`
    insert into deliveries (tenant_id, endpoint_id, event_id, sequence, ordinal, due_at)
    select 'ten_one', 'we_' || endpoint, 'evt_' || n, 1, 0, now() - interval '2 hours' - n * interval '1 minute'
      from generate_series(1, ${MANY}::int) endpoint, generate_series(1, 2) n`;
  await sql`
    insert into deliveries (tenant_id, endpoint_id, event_id, sequence, ordinal, due_at)
    select 'ten_one', 'we_' || endpoint, 'evt_' || n, 1, 0, now() + n * interval '1 year'
      from generate_series(1, ${MANY}::int) endpoint, generate_series(3, 4) n`;
  await sql`
    insert into provider_events (provider, event_id, type, livemode, object_id, payload, due_at)
    select 'stripe', 'evt_' || n, 'charge.succeeded', false, 'pi_1', '{}',
           now() + case when n <= ${MANY}::int then interval '-1 hour' else interval '1 year' end
      from generate_series(1, 2 * ${MANY}::int) n`;
  await sql`
    insert into tenants (id, name) select 'ten_' || n, 'one of many' from generate_series(1, ${MANY}::int) n`;
  await sql`
    insert into ledger_balances (tenant_id, currency, account, debits, credits)
    select 'ten_' || n, 'usd', 'sales', 1, 0 from generate_series(1, ${MANY}::int) n`;
  await sql`
    insert into ledger_entries (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount, created_at)
    select 'ten_' || n, 'pay_' || i, 'captured', 1, 'usd', 'provider_balance', 'sales', 1, now() - interval '1 hour'
      from generate_series(1, 12) n, generate_series(1, 20) i`;
  await sql`
    insert into ledger_uncounted
    select tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount from ledger_entries
     where tenant_id <> 'ten_one'`;
  await sql`
    insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
    select tenant_id, 'rev_' || id, id, attempt_id, 'unresolved' from payments`;
  await sql`update payments set refund_reserved = 7`;
}

describe("with more broken than anybody can read", () => {
  let database: TestDatabase;
  let admin: postgres.Sql;
  let store: Store;

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = connectAdmin(database.adminUrl);
    await admin`insert into tenants (id, name) values ('ten_one', 'one'), ('ten_other', 'other')`;
    await admin`insert into installation (secret, created_at) values ('s', now() - interval '10 days')`;
    const crowd = { count: MANY, stepMs: 1_000, agoMs: 60_000, lives: "paid" as const };
    await makeCrowd(admin, { ...crowd, tenantId: "ten_one" });
    await makeCrowd(admin, { ...crowd, tenantId: "ten_other", firstNumber: 1_000 });
    await neglect(admin);
    store = await openStore(readConfig({}), database.url, createLogger({ level: "silent" }));
  });
  afterAll(async () => {
    await Promise.all([store.close(), admin.end()]);
    await database.drop();
  });

  test("each check of what is open names so many, and says that there may be more", async () => {
    const found = await Promise.all(openChecks(BOUNDS).map((check) => check(store.db.sql)));
    const named = found.map(({ violations, more }) => [violations[0]?.invariant, violations.length, more]);
    expect(named).toEqual([
      ["attempt_overdue", MOST_NAMED, true],
      ["attempt_due_too_late", MOST_NAMED, true],
      ["delivery_overdue", MOST_NAMED, true],
      ["delivery_due_too_late", MOST_NAMED, true],
      ["event_not_relayed", MOST_NAMED, true],
      ["provider_event_overdue", MOST_NAMED, true],
      ["provider_event_due_too_late", MOST_NAMED, true],
      ["ledger_unbalanced", MOST_NAMED, true],
      // Five of each tenant, those that the next count takes first.
      ["entry_not_counted", 60, false],
      ["comparison_overdue", 1, false],
    ]);
  });

  test("each is named once", async () => {
    for (const check of openChecks(BOUNDS)) {
      const { violations } = await check(store.db.sql);
      expect(new Set(violations.map(violationName)).size).toBe(violations.length);
    }
  });

  test("an endpoint is named by what waits longest", async () => {
    const found = await openChecks(BOUNDS)[2]?.(store.db.sql);
    const endpoints = found?.violations.map(({ ids }) => ids["endpoint_id"]) ?? [];
    expect(new Set(endpoints).size).toBe(MOST_NAMED);
    expect(new Set(found?.violations.map(({ ids }) => ids["event_id"]))).toEqual(new Set(["evt_2"]));
  });

  test("an endpoint is named by what waits furthest ahead, too, and what is furthest comes first", async () => {
    const { sql } = store.db;
    const latest = await openChecks(BOUNDS)[1]?.(sql);
    const deliveries = await openChecks(BOUNDS)[3]?.(sql);
    expect(new Set(deliveries?.violations.map(({ ids }) => ids["event_id"]))).toEqual(new Set(["evt_4"]));
    const [furthest] = await sql<{ id: string }[]>`
      select id from attempts where due_at is not null order by due_at desc limit 1`;
    expect(latest?.violations[0]?.ids).toEqual({ attempt_id: furthest?.id });
  });

  test("what is due too late and is not among so many is named where its attempt is looked at", async () => {
    const { sql } = store.db;
    const subjects = await sql<{ tenant_id: string; id: string }[]>`
      select tenant_id, id from attempts where due_at > now() + interval '1 month' order by due_at limit 20`;
    const found = await subjectChecks("attempt", BOUNDS)[0]?.(sql, [...subjects]);
    const late = found?.violations.filter(({ violation }) => violation.invariant === "attempt_due_too_late");
    expect(late?.map(({ at }) => at).sort((one, other) => one - other)).toEqual([...subjects.keys()]);
    expect(subjects).toHaveLength(20);
  });

  test("entries of very many tenants are named so many times, too", async () => {
    await admin.begin(async (sql) => {
      await sql`
        insert into ledger_uncounted
        select 'ten_' || n, payment_id, fact, leg, currency, debit_account, credit_account, amount
          from ledger_uncounted, generate_series(13, 40) n where tenant_id = 'ten_1'`;
      await sql`
        insert into ledger_entries (tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount, created_at)
        select 'ten_' || n, payment_id, fact, leg, currency, debit_account, credit_account, amount, created_at
          from ledger_entries, generate_series(13, 40) n where tenant_id = 'ten_1'`;
      const found = await openChecks(BOUNDS)[8]?.(sql);
      expect([found?.violations.length, found?.more]).toEqual([MOST_NAMED, true]);
    });
  });

  test("each check of rows names so many of one page", async () => {
    const { sql } = store.db;
    const page = await readSubjects(sql, { kind: "payment", since: null, after: null, limit: 250 });
    const subjects = page.map(({ subject }) => subject);
    const found = await Promise.all(subjectChecks("payment", BOUNDS).map((check) => check(sql, subjects)));
    expect(Math.max(...found.map(({ violations }) => violations.length))).toBe(MOST_NAMED);
    expect(found.some(({ more }) => more)).toBe(true);
    expect((await examine(store, { since: null })).more).toBe(true);
  });

  test("so many of what is open are looked at, and no more", async () => {
    const { attempts, reviewed, keys } = await readOpenSubjects(store.db.sql, 7);
    expect([attempts.length, reviewed.length, keys.length]).toEqual([7, 7, 7]);
  });

  test.each(SUBJECT_KINDS)("a page of %ss ends within a tenant and goes on from there", async (kind) => {
    const { sql } = store.db;
    const seen: string[] = [];
    let after = null;
    for (;;) {
      const page = await readSubjects(sql, { kind, since: null, after, limit: 40 });
      expect(page.length).toBeLessThanOrEqual(40);
      seen.push(...page.map(({ subject }) => JSON.stringify(subject)));
      if (page.length < 40) break;
      after = page.at(-1)?.subject ?? null;
    }
    expect(seen).toHaveLength(kind === "event" ? 4 * MANY : 2 * MANY);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(seen.toSorted());
  });

  test.each(SUBJECT_KINDS)("the %ss that are drawn are some of them", async (kind) => {
    const { sql } = store.db;
    const page = await readSubjects(sql, { kind, since: null, after: null, limit: 10_000 });
    const all = new Set(page.map(({ subject }) => JSON.stringify(subject)));
    const drawn = await readSample(sql, kind);
    expect(drawn.length).toBeGreaterThan(0);
    expect(drawn.filter((one) => !all.has(JSON.stringify(one)))).toEqual([]);
  });
});
