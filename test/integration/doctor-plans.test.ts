import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.js";
import { systemClock } from "../../src/lib/clock.js";
import { createLogger } from "../../src/lib/log.js";
import { examine, explain, timeBefore } from "../../src/operations/doctor.js";
import type { DoctorDeps } from "../../src/operations/doctor-examination.js";
import { makeCrowd, rowsRead } from "../support/doctor-crowd.js";
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
  return { sql, db, clock: systemClock, log, settings: readConfig({}).settings };
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

describe("an examination of the last minutes", () => {
  let database: TestDatabase;
  let admin: postgres.Sql;
  const few = new Map<string, ReadonlyMap<string, number>>();

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
    await admin`insert into tenants (id, name) values ('ten_big', 'big'), ('ten_idle', 'idle')`;
    await admin`insert into installation (secret) values ('s') on conflict do nothing`;
    await makeCrowd(admin, { tenantId: "ten_big", count: FEW, stepMs: 60_000, agoMs: DAY_MS, waits: false });
    await makeCrowd(admin, {
      tenantId: "ten_big",
      count: IN_WINDOW,
      stepMs: 3_000,
      agoMs: MINUTE_MS,
      waits: true,
    });
    for (const [name, connection] of Object.entries(SESSIONS)) {
      few.set(name, (await readByExamination(database.url, connection)).read);
    }
    await makeCrowd(admin, {
      tenantId: "ten_big",
      count: MANY,
      stepMs: 60_000,
      agoMs: 20 * DAY_MS,
      waits: false,
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

  test.each(Object.entries(SESSIONS))("scans no big table in any statement, %s", async (_, connection) => {
    const deps = depsOf(database.url, connection);
    try {
      const explained = await explain(deps, await timeBefore(deps, WINDOW_MS));
      expect(explained.length).toBeGreaterThan(15);
      const scans = explained.flatMap(({ name, plan }) =>
        plan.filter((line) => /Seq Scan on (\w+)/.test(line)).map((line) => `${name}: ${line.trim()}`),
      );
      expect(scans.filter((line) => BIG.some((table) => line.includes(`Seq Scan on ${table}`)))).toEqual([]);
      expect(explained.every(({ plan }) => plan.some((line) => line.startsWith("Execution Time")))).toBe(
        true,
      );
    } finally {
      await deps.sql.end();
    }
  });
});
