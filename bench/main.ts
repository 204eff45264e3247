import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { migrate } from "../src/store/migrate.js";
import { type Cluster, startCluster } from "../test/support/postgres-cluster.js";
import { hasPgbench, measureFloor } from "./floor.js";
import { type LoadResult, load, paymentRequest } from "./load.js";
import { cpuSeconds, document, family, proportionalMegabytes, type Running, run } from "./processes.js";

/**
 * Figures of one run on one PostgreSQL with fsync on. Absolute numbers are this machine's; the ratios to the floor,
 * taken in turns with it, are what to compare. `npm run bench -- --seconds 5` shortens every round.
 */
const SECONDS = Number(/--seconds[= ](\d+)/.exec(process.argv.slice(2).join(" "))?.[1] ?? 10);
const CALLERS = 32;
const ROUNDS = 3;
const LATENCY_MS = 200;

const STRIPE_KEY = "sk_test_bench";

interface Api {
  readonly process: Running;
  readonly url: string;
  readonly secret: string;
}

async function startApi(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Api> {
  const running = await run(args, { STRIPE_SECRET_KEY: STRIPE_KEY, ...env });
  const tenant = await document(["tenants", "create", "--name", "bench"], env);
  const key = await document(["keys", "create", "--tenant", tenant["id"] ?? ""], env);
  return { process: running, url: running.document["api_url"] ?? "", secret: key["secret"] ?? "" };
}

function drive(api: Api, name: string, prefer: string | null, callers: number): Promise<LoadResult> {
  const host = new URL(api.url).host;
  const round = `${name}-${Date.now()}-${Math.random().toString(36).slice(2)}`;
  return load({
    url: api.url,
    callers,
    seconds: SECONDS,
    request: (count) => paymentRequest(host, api.secret, `${round}-${count}`, prefer),
  });
}

function say(label: string, text: string): void {
  process.stdout.write(`${label.padEnd(58)} ${text}\n`);
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const whole = (value: number) => String(Math.round(value));
const rate = (result: LoadResult) =>
  `${whole(result.perSecond)}/s  p50 ${result.p50Ms.toFixed(1)} ms  p99 ${result.p99Ms.toFixed(1)} ms  ${JSON.stringify(result.statuses)}`;

async function committed(databaseUrl: string): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    await sql`select pg_stat_force_next_flush()`;
    const [row] =
      await sql`select xact_commit::float8 as commits from pg_stat_database where datname = current_database()`;
    return Number(row?.["commits"]);
  } finally {
    await sql.end();
  }
}

/** Accepts alone: one API process, no worker; and the floor, in turns. */
async function accepts(env: Readonly<Record<string, string>>, databaseUrl: string): Promise<number | null> {
  const api = await startApi(["serve"], env);
  const floors: number[] = [];
  const rates: number[] = [];
  await drive(api, "warm", "respond-async", CALLERS);
  for (let round = 0; round < ROUNDS; round += 1) {
    if (hasPgbench()) {
      const floor = measureFloor(databaseUrl, CALLERS, SECONDS);
      floors.push(floor.tps);
      say(
        `floor: four inserts, one transaction, pgbench, ${CALLERS} clients`,
        `${whole(floor.tps)}/s  mean ${floor.meanMs.toFixed(1)} ms`,
      );
    }
    const result = await drive(api, "accept", "respond-async", CALLERS);
    rates.push(result.perSecond);
    say(`accepts: POST with respond-async, ${CALLERS} callers`, rate(result));
  }
  await api.process.stop();
  if (floors.length === 0) {
    say("left out: floor and ratios", "pgbench is not installed");
    return null;
  }
  const floor = median(floors);
  say("RATIO accepts / floor (medians)", (median(rates) / floor).toFixed(2));
  return floor;
}

async function toTheEnd(
  env: Readonly<Record<string, string>>,
  databaseUrl: string,
  floor: number | null,
): Promise<void> {
  const api = await startApi(["start"], env);
  await drive(api, "warm", null, CALLERS);
  const before = await committed(databaseUrl);
  const rates: number[] = [];
  let payments = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const result = await drive(api, "end", "wait=30", CALLERS);
    rates.push(result.perSecond);
    payments += result.statuses["201"] ?? 0;
    say(`to the end: POST to succeeded, ${CALLERS} callers, zero latency`, rate(result));
  }
  const after = await committed(databaseUrl);
  if (floor !== null) say("RATIO to the end / floor (medians)", (median(rates) / floor).toFixed(2));
  say(
    "PostgreSQL transactions per payment (shared commits count once)",
    ((after - before) / payments).toFixed(2),
  );
  await api.process.stop();
}

/** One payment at a time, so that no commit is shared: the data path's own number of transactions. */
async function transactionsAlone(env: Readonly<Record<string, string>>, databaseUrl: string): Promise<void> {
  const api = await startApi(["start"], {
    ...env,
    POLL_INTERVAL_MS: "600000",
    RECONCILE_INTERVAL_MS: "600000",
    PURGE_INTERVAL_MS: "600000",
  });
  await drive(api, "warm", "wait=30", 1);
  const before = await committed(databaseUrl);
  const result = await drive(api, "alone", "wait=30", 1);
  const after = await committed(databaseUrl);
  say("one caller: POST to succeeded", rate(result));
  const count = result.statuses["201"] ?? 0;
  say("PostgreSQL transactions per payment, one caller", ((after - before) / count).toFixed(2));
  await api.process.stop();
}

async function withLatency(env: Readonly<Record<string, string>>): Promise<void> {
  const api = await startApi(["start"], env);
  const callers = 64;
  await drive(api, "warm", null, callers);
  say(
    `to the end with ${LATENCY_MS} ms a provider call, ${callers} callers`,
    rate(await drive(api, "slow", "wait=30", callers)),
  );
  await api.process.stop();
}

/** `pawl start` with nothing set: database, sandbox, API and workers. */
async function atRest(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-start-"));
  const started = await run(["start"], { PAWL_DATA_DIR: folder });
  const key = started.document["api_key"] ?? "";
  const url = started.document["api_url"] ?? "";
  await drive({ process: started, url, secret: key }, "start", "wait=30", 8);
  const pids = family(started.child.pid ?? 0);
  say(
    "pawl start after load: memory with the database",
    `${whole(pids.reduce((sum, pid) => sum + proportionalMegabytes(pid), 0))} MB`,
  );
  const cpu = () => family(started.child.pid ?? 0).reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const before = cpu();
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000));
  say(
    "pawl start idle: CPU of one core, database included",
    `${(((cpu() - before) / SECONDS) * 100).toFixed(1)} %`,
  );
  await started.stop();
  rmSync(folder, { recursive: true, force: true });
}

/**
 * A migrated database of the same server for one figure, which is gone when the figure is there: what it leaves to the
 * server (rows to vacuum, pages to write) must not be done during the next.
 */
async function withDatabase(cluster: Cluster, figure: (url: string) => Promise<void>): Promise<void> {
  const admin = postgres(cluster.adminUrl, { max: 1 });
  const own = new URL(cluster.url);
  own.pathname = `/bench_${Date.now()}`;
  const name = own.pathname.slice(1);
  try {
    await admin`create database ${admin(name)} owner pawl`;
    await migrate(own.href);
    await figure(own.href);
    await admin`drop database ${admin(name)} with (force)`;
    await admin`checkpoint`;
  } finally {
    await admin.end();
  }
}

async function everyFigure(): Promise<void> {
  const cluster = await startCluster({ durable: true });
  const sandbox = await run(["sandbox", "--port", "0", "--control-port", "0"], {});
  const slow = await run(
    ["sandbox", "--port", "0", "--control-port", "0", "--latency-ms", String(LATENCY_MS)],
    {},
  );
  try {
    const env = (databaseUrl: string, provider: Running) => ({
      DATABASE_URL: databaseUrl,
      STRIPE_API_BASE: provider.document["url"] ?? "",
    });
    let floor: number | null = null;
    await withDatabase(cluster, async (url) => {
      floor = await accepts(env(url, sandbox), url);
    });
    await withDatabase(cluster, (url) => toTheEnd(env(url, sandbox), url, floor));
    await withDatabase(cluster, (url) => transactionsAlone(env(url, sandbox), url));
    await withDatabase(cluster, (url) => withLatency(env(url, slow)));
    await atRest();
  } finally {
    await sandbox.stop();
    await slow.stop();
    await cluster.remove();
  }
}

/** Figures that are asked for by name: `npm run bench -- doctor`. */
const STEPS: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  doctor: async (args) => (await import("./doctor.js")).benchDoctor(args),
  reconcile: async (args) => (await import("./reconcile.js")).reconcileBench(args),
};

const [name = "", ...args] = process.argv.slice(2);
await (STEPS[name] ?? everyFigure)(args);
