import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.js";
import { SUBJECT_KINDS } from "../../src/domain/doctor.js";
import { systemClock } from "../../src/lib/clock.js";
import { createLogger } from "../../src/lib/log.js";
import { examine, explain, timeBefore } from "../../src/operations/doctor.js";
import { type DoctorDeps, PAGE_SIZE } from "../../src/operations/doctor-examination.js";
import { CROWD_WAITS, makeCrowd, rowsRead } from "../support/doctor-crowd.js";
import { planFigures } from "../support/plan-figures.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const WINDOW_MS = 15 * MINUTE_MS;
const IN_WINDOW = 200;
const FEW = 2_000;
const MANY = 18_000;
const BIG = [
  "payments",
  "attempts",
  "idempotency_keys",
  "order_ids",
  "timeline",
  "outbox",
  "ledger_entries",
  "refunds",
  "reviews",
  "deliveries",
  "provider_events",
];

/** As src/store/db.ts opens a session; what a pooler that takes no settings gives; and plans made for any parameters. */
const SESSIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "with Pawl's settings": {
    enable_seqscan: "off",
    enable_hashjoin: "off",
    enable_mergejoin: "off",
    jit: "off",
  },
  "without any settings": {},
  "with plans for any parameters": { plan_cache_mode: "force_generic_plan" },
};
/** What makes a whole table the cheapest way wherever there is a choice: only a look-up that leaves none stays one. */
const AGAINST_LOOK_UPS = { enable_nestloop: "off", enable_indexonlyscan: "off" };
/** Rows of each table that a statement over one page may read: some of each subject, and never a table. */
const MOST_READ = 20 * PAGE_SIZE;
const REVIEWS = 3_000;
const TRAFFIC = 12_000;

function depsOf(
  url: string,
  connection: Readonly<Record<string, string>>,
): DoctorDeps & { readonly sql: postgres.Sql } {
  const sql = postgres(url, {
    max: 1,
    fetch_types: false,
    connection: { TimeZone: "UTC", ...connection },
    onnotice: () => undefined,
  });
  const db = { sql, read: drizzle(sql), close: () => sql.end() };
  const log = createLogger({ level: "silent" });
  return { sql, db, clock: systemClock, log, settings: readConfig(CROWD_WAITS).settings };
}

/** Rows read of each big table by an examination of the window, beside what it looked at. */
async function readByExamination(url: string, connection: Readonly<Record<string, string>>) {
  const deps = depsOf(url, connection);
  try {
    const before = await rowsRead(deps.sql);
    const report = await examine(deps, { since: await timeBefore(deps, WINDOW_MS) });
    const after = await rowsRead(deps.sql);
    const read = BIG.map((table) => [table, (after.get(table) ?? 0) - (before.get(table) ?? 0)] as const);
    return { report, read: new Map(read) };
  } finally {
    await deps.sql.end();
  }
}

/** Of deliveries and the provider's events very many have ended, and as many are due later than they may be. */
async function neglectTraffic(admin: postgres.Sql): Promise<void> {
  await admin`
    insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, state, due_at)
    select tenant_id, 'we_' || right(id, 1), id, payment_id, 1, 0,
           case when n % 2 = 0 then 'pending' else 'delivered' end::delivery_state,
           case when n % 2 = 0 then now() + interval '1 year' end
      from (select *, row_number() over () as n from outbox order by id limit ${TRAFFIC}) o`;
  await admin`
    insert into provider_events (provider, event_id, type, livemode, object_id, payload, state, due_at)
    select 'stripe', 'evt_' || n, 'charge.succeeded', false, 'pi_1', '{}',
           case when n % 2 = 0 then 'pending' else 'applied' end::provider_event_state,
           case when n % 2 = 0 then now() + interval '1 year' end
      from generate_series(1, ${TRAFFIC}::int) n`;
  await admin`
    update attempts set due_at = now() + interval '1 year', state = 'following'
     where id in (select id from attempts order by id limit ${TRAFFIC})`;
  await admin`analyze reviews, deliveries, provider_events, attempts`;
}

describe("an examination of the last minutes", () => {
  let database: TestDatabase;
  let admin: postgres.Sql;
  const few = new Map<string, ReadonlyMap<string, number>>();

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
    await admin`insert into tenants (id, name) values ('ten_big', 'big'), ('ten_idle', 'idle')`;
    await admin`insert into installation (secret) values ('s') on conflict do nothing`;
    await makeCrowd(admin, { tenantId: "ten_big", count: FEW, stepMs: 60_000, agoMs: DAY_MS, lives: "paid" });
    await makeCrowd(admin, {
      tenantId: "ten_big",
      count: IN_WINDOW,
      stepMs: 3_000,
      agoMs: MINUTE_MS,
      lives: "mixed",
    });
    for (const [name, connection] of Object.entries(SESSIONS)) {
      few.set(name, (await readByExamination(database.url, connection)).read);
    }
    await makeCrowd(admin, {
      tenantId: "ten_big",
      count: MANY,
      stepMs: 60_000,
      agoMs: 20 * DAY_MS,
      lives: "paid",
    });
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  test.each(Object.entries(SESSIONS))(
    "reads no more of a table that has grown ninefold, %s",
    async (name, connection) => {
      const { report, read } = await readByExamination(database.url, connection);
      expect(report.broken).toEqual([]);
      expect(report.looked.payment).toBeGreaterThanOrEqual(IN_WINDOW);
      const grown = BIG.map(
        (table) => [table, read.get(table) ?? 0, few.get(name)?.get(table) ?? 0] as const,
      );
      expect(grown.filter(([, now, before]) => now > before * 1.5 + IN_WINDOW)).toEqual([]);
      expect(grown.reduce((all, [, now]) => all + now, 0)).toBeGreaterThan(IN_WINDOW * BIG.length);
    },
  );

  describe("of rows that are broken, too,", () => {
    beforeAll(async () => {
      await admin`
        insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
        select tenant_id, 'rev_' || id, id, attempt_id, 'unresolved' from payments where status = 'succeeded'
         order by id limit ${REVIEWS}`;
      await neglectTraffic(admin);
      await admin`
      insert into ledger_uncounted
      select tenant_id, payment_id, fact, leg, currency, debit_account, credit_account, amount from ledger_entries`;
      // Of a few payments of the window one event is lost: only then is it asked for others of the tenant.
      await admin`
      delete from outbox where type = 'payment.succeeded' and created_at > now() - interval '5 minutes'
         and right(payment_id, 1) = '7'`;
    });

    test.each([...Object.entries(SESSIONS), ["with settings against look-ups", AGAINST_LOOK_UPS] as const])(
      "scans no big table in any statement, %s",
      async (_, connection) => {
        const deps = depsOf(database.url, connection);
        try {
          const explained = await explain(deps, await timeBefore(deps, WINDOW_MS));
          expect(explained.length).toBeGreaterThan(15);
          const figures = explained.map(({ name, plan }) => ({ name, ...planFigures(plan, new Set(BIG)) }));
          expect(figures.filter(({ scans }) => scans.length > 0)).toEqual([]);
          expect(figures.filter(({ rows }) => rows > MOST_READ)).toEqual([]);
          expect(figures.reduce((all, { rows }) => all + rows, 0)).toBeGreaterThan(IN_WINDOW * BIG.length);
        } finally {
          await deps.sql.end();
        }
      },
    );

    test("reads a page of all there is without what lies behind it", async () => {
      const deps = depsOf(database.url, {});
      try {
        const pages = (await explain(deps, null)).filter(({ name }) => name.startsWith("page of "));
        expect(pages).toHaveLength(SUBJECT_KINDS.length);
        const rows = pages.map(({ plan }) => planFigures(plan, new Set(BIG)).rows);
        // Beside the page itself, the tenants.
        for (const read of rows) expect(read).toBeLessThanOrEqual(PAGE_SIZE + 10);
        for (const read of rows) expect(read).toBeGreaterThanOrEqual(PAGE_SIZE);
      } finally {
        await deps.sql.end();
      }
    });
  });
});
