import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import type postgres from "postgres";
import { readConfig } from "../src/config.js";
import { SUBJECT_KINDS, type SubjectKind } from "../src/domain/doctor.js";
import { createLogger } from "../src/lib/log.js";
import { Doctor, type DoctorReport, examine, explain, ROUND, timeBefore } from "../src/operations/doctor.js";
import { Examination, newSweep } from "../src/operations/doctor-examination.js";
import { type Explained, readSample } from "../src/store/doctor.js";
import { openStore, type Store } from "../src/wire.js";
import { CROWD_WAITS } from "../test/support/doctor-crowd.js";
import { type PlanFigures, planFigures } from "../test/support/plan-figures.js";
import { type BenchServer, makeLately, makeYear, startBenchServer } from "./doctor-database.js";
import { type Cost, type Measured, report } from "./doctor-report.js";
import { cpuSeconds } from "./processes.js";

/**
 * What a minute's round of the doctor costs beside so many payments, beside a tenth and a hundredth of them, on the same
 * server: `npm run bench -- doctor --payments 10000000`. `--folder` is where the database is made, and deleted.
 */
const OF_LAST_HOUR = 10_000;
/** Of the two minutes that a round looks at, made in the one before it: its overlap is not waited for. */
const OF_TWO_MINUTES = 2_000;
const BETWEEN_ROUNDS = 100;
const BETWEEN_ROUNDS_MS = 3_000;
const ROUNDS = 9;
const SMALLEST = 20_000;
/** Places of each table that the walk is timed at, and pages from each on. */
const PLACES = 12;
const PAGES_A_PLACE = 4;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const WINDOW_MS = 15 * MINUTE_MS;

export async function benchDoctor(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { payments: { type: "string", default: "10000000" }, folder: { type: "string" } },
  });
  const payments = Number(values.payments);
  if (!Number.isInteger(payments) || payments < SMALLEST)
    throw new Error(`--payments: a number from ${SMALLEST} on`);
  const sizes = [payments / 100, payments / 10, payments].map(Math.round).filter((size) => size >= SMALLEST);
  const server = await startBenchServer(values.folder ?? tmpdir());
  const stop = () => void server.remove().finally(() => process.exit(130));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    const measured: Measured[] = [];
    for (const size of sizes) measured.push(await measure(server, size, size === sizes[0]));
    report(measured, ROUNDS);
  } finally {
    await server.remove();
  }
}

/** `whole`: all there is is looked through to its end, too. */
async function measure(server: BenchServer, payments: number, whole: boolean): Promise<Measured> {
  await server.begin();
  const startedMs = performance.now();
  await makeYear(server, payments, (made) => progress(`${made} of ${payments} payments made`, startedMs));
  progress("vacuumed and analyzed", startedMs);
  const making = server.admin();
  await makeLately(making, 0, OF_LAST_HOUR, HOUR_MS);
  await making.end();
  const { isCold } = await server.forget();
  const admin = server.admin();
  const store = await openStore(readConfig(CROWD_WAITS), server.url, createLogger({ level: "silent" }));
  try {
    const rounds = await measureRounds(store, admin);
    const plans = await explain(store, await timeBefore(store, WINDOW_MS));
    const walk = await measureWalk(store, admin);
    const wholeWalk = whole ? await measureWhole(store, admin) : null;
    const found = await breakAndFind(store, admin);
    const [size] = await admin<{ bytes: string }[]>`select pg_database_size(current_database()) as bytes`;
    progress("measured", startedMs);
    return {
      payments,
      gigabytes: Number(size?.bytes) / 1e9,
      isCold,
      ...rounds,
      plans: await figuresOf(plans, admin),
      walk,
      whole: wholeWalk,
      found,
    };
  } finally {
    await Promise.all([store.close(), admin.end()]);
  }
}

async function figuresOf(
  plans: readonly Explained[],
  admin: postgres.Sql,
): Promise<Map<string, PlanFigures>> {
  const rows = await admin<{ relname: string }[]>`
    select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and reltuples > 5000`;
  const big = new Set(rows.map(({ relname }) => relname));
  return new Map(plans.map(({ name, plan }) => [name, planFigures(plan, big)]));
}

/** Rounds as the worker makes them, with nothing of the walk, which takes a part of the time whatever there is. */
function doctorOf(store: Store): () => Promise<DoctorReport> {
  const settings = { ...store.settings, doctorIntervalMs: 0 };
  const doctor = new Doctor({ ...store, settings }, { limits: { ...ROUND, patrol: { pages: 0, share: 0 } } });
  return async () => {
    const report = await doctor.round();
    if (report === null) throw new Error("the round was not made");
    return report;
  };
}

/** By the clock, and CPU of this process and of the server's for it: what a busy machine does not change. */
async function timed<T>(admin: postgres.Sql, work: () => Promise<T>): Promise<Cost & { readonly result: T }> {
  const cpuBeforeMs = await cpuMs(admin);
  const startedMs = performance.now();
  const result = await work();
  const ms = performance.now() - startedMs;
  return { ms, cpuMs: (await cpuMs(admin)) - cpuBeforeMs, result };
}

async function cpuMs(admin: postgres.Sql): Promise<number> {
  const backends = await admin<{ pid: number }[]>`
    select pid from pg_stat_activity where application_name = 'pawl'`;
  const { user, system } = process.cpuUsage();
  return backends.reduce((sum, { pid }) => sum + cpuSeconds(pid) * 1_000, (user + system) / 1_000);
}

function expectNothingBroken({ broken }: Pick<DoctorReport, "broken">): void {
  if (broken.length > 0)
    throw new Error(`the crowd is broken: ${JSON.stringify(broken.slice(0, 3), null, 2)}`);
}

async function measureRounds(store: Store, admin: postgres.Sql): Promise<Pick<Measured, "first" | "rounds">> {
  const round = doctorOf(store);
  const first = await timed(admin, round);
  expectNothingBroken(first.result);
  const costs: Cost[] = [];
  let looked = 0;
  for (let number = 1; number <= ROUNDS; number += 1) {
    if (number === 1) await makeLately(admin, number, OF_TWO_MINUTES, MINUTE_MS);
    else await makeLately(admin, number, BETWEEN_ROUNDS, BETWEEN_ROUNDS_MS);
    const { result, ...cost } = await timed(admin, round);
    expectNothingBroken(result);
    costs.push(cost);
    looked = result.looked.payment;
  }
  return {
    first: { ms: first.ms, cpuMs: first.cpuMs, payments: first.result.looked.payment },
    rounds: { costs, payments: looked },
  };
}

async function measureWalk(store: Store, admin: postgres.Sql): Promise<Measured["walk"]> {
  const walk = {} as Record<SubjectKind, { rows: number; pageMs: number; pageCpuMs: number }>;
  for (const [at, kind] of SUBJECT_KINDS.entries()) {
    const examination = new Examination(store);
    const page = { ms: 0, cpuMs: 0 };
    for (let place = 0; place < PLACES; place += 1) {
      const [after = null] = await readSample(store.db.sql, kind);
      const sweep = { ...newSweep(null), at, after };
      const pages = async () => {
        for (let taken = 0; taken < PAGES_A_PLACE; taken += 1) await examination.takePage(sweep);
      };
      const cost = await timed(admin, pages);
      page.ms += cost.ms / (PLACES * PAGES_A_PLACE);
      page.cpuMs += cost.cpuMs / (PLACES * PAGES_A_PLACE);
    }
    expectNothingBroken({ broken: [...examination.broken.values()] });
    walk[kind] = { rows: await rowsOf(admin, kind), pageMs: page.ms, pageCpuMs: page.cpuMs };
  }
  return walk;
}

async function rowsOf(admin: postgres.Sql, kind: SubjectKind): Promise<number> {
  const tables = {
    payment: "payments",
    attempt: "attempts",
    event: "outbox",
    key: "idempotency_keys",
    order_id: "order_ids",
  };
  const [row] = await admin<{ rows: number }[]>`
    select reltuples::float8 as rows from pg_class where oid = ${tables[kind]}::text::regclass`;
  return row?.rows ?? Number.NaN;
}

async function measureWhole(store: Store, admin: postgres.Sql): Promise<NonNullable<Measured["whole"]>> {
  const { result, ...cost } = await timed(admin, () => examine(store, { since: null }));
  expectNothingBroken(result);
  return { ...cost, rows: Object.values(result.looked).reduce((sum, count) => sum + count, 0) };
}

/** Two rows of the last minute are put wrong, and the next round must name them, and nothing else. */
async function breakAndFind(store: Store, admin: postgres.Sql): Promise<string[]> {
  const round = doctorOf(store);
  expectNothingBroken(await round());
  await makeLately(admin, ROUNDS + 1, BETWEEN_ROUNDS, BETWEEN_ROUNDS_MS);
  await admin`
    update ledger_entries e set amount = amount - 1 from (
      select tenant_id, id from payments where status = 'succeeded' and tenant_id = 'ten_a0' order by id desc limit 1) p
     where e.tenant_id = p.tenant_id and e.payment_id = p.id and e.fact = 'captured'`;
  await admin`
    with last as (select tenant_id, id, attempt_id, row_number() over (order by id desc) as n from payments
                   where tenant_id = 'ten_a1' order by id desc limit 2)
    update attempts a set provider_payment_id = (
      select b.provider_payment_id from attempts b join last o on o.n = 2 and b.tenant_id = o.tenant_id and b.id = o.attempt_id)
      from last where last.n = 1 and a.tenant_id = last.tenant_id and a.id = last.attempt_id`;
  const { counts } = await round();
  const found = [...counts].filter(([, count]) => count > 0).map(([name, count]) => `${name}: ${count}`);
  const expected = ["object_of_two_attempts: 2", "books_differ: 1"];
  if (found.toSorted().join() !== expected.toSorted().join())
    throw new Error(`expected ${expected.join(", ")}; the round found ${found.join(", ")}`);
  return found;
}

function progress(text: string, startedMs: number): void {
  process.stderr.write(`${text}, ${Math.round((performance.now() - startedMs) / 1_000)} s\n`);
}
