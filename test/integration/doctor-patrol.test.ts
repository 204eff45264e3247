import type postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.js";
import { SUBJECT_KINDS } from "../../src/domain/doctor.js";
import { systemClock } from "../../src/lib/clock.js";
import { createLogger } from "../../src/lib/log.js";
import { Examination } from "../../src/operations/doctor-examination.js";
import { Patrol, type PatrolLimits } from "../../src/operations/doctor-patrol.js";
import { openStore, type Store } from "../../src/wire.js";
import { connectAdmin, makeCrowd } from "../support/doctor-crowd.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const PAYMENTS = 1_100;
const HOUR_MS = 3_600_000;
/** Pages of each kind: payments, attempts, keys and order ids five each, events nine. */
const ALL_PAGES = 29;
const ALL_ROWS = 6 * PAYMENTS;

describe("the way through all there is", () => {
  let database: TestDatabase;
  let admin: postgres.Sql;
  let store: Store;

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = connectAdmin(database.adminUrl);
    await admin`insert into tenants (id, name) values ('ten_one', 'one')`;
    await makeCrowd(admin, {
      tenantId: "ten_one",
      count: PAYMENTS,
      stepMs: 1_000,
      agoMs: 60_000,
      lives: "paid",
    });
    store = await openStore(readConfig({}), database.url, createLogger({ level: "silent" }));
  });
  afterAll(async () => {
    await Promise.all([store.close(), admin.end()]);
    await database.drop();
  });

  /** A clock on which each page takes `pageMs`, and what is looked at in each round. */
  function patrolOf(limits: PatrolLimits, pageMs: number, random: (() => number) | null = null) {
    const at = { ms: 1_000 };
    const clock = { ...systemClock, monotonicMs: () => at.ms };
    const lines: string[] = [];
    const log = createLogger({ level: "info", destination: { write: (line) => lines.push(line) } });
    const deps = { ...store, clock, log, settings: { ...store.settings, doctorIntervalMs: 60_000 } };
    const patrol = new Patrol(deps, limits, random);
    const round = async () => {
      const examination = new Examination(deps);
      const takePage = examination.takePage.bind(examination);
      let pages = 0;
      examination.takePage = async (sweep) => {
        at.ms += pageMs;
        pages += 1;
        await takePage(sweep);
      };
      await patrol.goOn(examination);
      return { pages, looked: examination.looked };
    };
    return { round, lines, at };
  }

  test("goes on for its part of the interval", async () => {
    const { round } = patrolOf({ pages: 1, share: 1 / 20 }, 500);
    expect((await round()).pages).toBe(6);
    expect((await round()).pages).toBe(6);
  });

  test("takes some pages in any case, from a database that is slow", async () => {
    const { round } = patrolOf({ pages: 2, share: 1 / 20 }, 20_000);
    expect((await round()).pages).toBe(2);
  });

  test("takes none where none are allowed", async () => {
    const { round } = patrolOf({ pages: 0, share: 0 }, 1);
    expect((await round()).pages).toBe(0);
  });

  test("sees every row once, tells that it has, and begins again after an hour and no sooner", async () => {
    const { round, lines, at } = patrolOf({ pages: 1, share: 1 }, 1);
    const first = await round();
    expect(first.pages).toBe(ALL_PAGES);
    expect(Object.values(first.looked).reduce((sum, count) => sum + count, 0)).toBe(ALL_ROWS);
    expect(lines).toHaveLength(1);
    expect((await round()).pages).toBe(0);
    at.ms += HOUR_MS;
    expect((await round()).pages).toBe(ALL_PAGES);
    expect(lines).toHaveLength(2);
  });

  test.each(SUBJECT_KINDS.map((kind, at) => [kind, at] as const))(
    "begins among the %ss where that is drawn, goes on to the end and then through all",
    async (kind, at) => {
      const { round, lines } = patrolOf({ pages: 1, share: 1 }, 1, () => (at + 0.5) / SUBJECT_KINDS.length);
      const { looked } = await round();
      const all = kind === "event" ? 2 * PAYMENTS : PAYMENTS;
      expect(looked[kind]).toBeLessThan(all);
      for (const earlier of SUBJECT_KINDS.slice(0, at)) expect(looked[earlier]).toBe(0);
      for (const later of SUBJECT_KINDS.slice(at + 1)) expect(looked[later]).toBeGreaterThanOrEqual(PAYMENTS);
      expect(lines).toEqual([]);
      expect((await round()).pages).toBe(ALL_PAGES);
      expect(lines).toHaveLength(1);
    },
  );
});
