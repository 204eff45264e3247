import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { packageRoot } from "../src/lib/package-root.js";
import { Accounts } from "../src/sandbox/accounts.js";
import { SandboxControl } from "../src/sandbox/index.js";
import { startCluster } from "../test/support/postgres-cluster.js";
import { type Crowd, LEAST_PAYMENTS, makeRows, plantedWords } from "../test/support/reconcile-crowd.js";
import { writeJournal } from "../test/support/reconcile-journal.js";
import { run } from "./processes.js";

const STRIPE_KEY = "sk_test_bench";
/** Ten payments a second; the window is as long as they need. */
const STEP_MS = 100;
const TENANTS = 100;
/** The newest of them is older than the lag, however slowly the crowd is made. */
const AGE_MS = 3_600_000;
/** How often a run is looked at. */
const LOOK_MS = 200;
const DIFFERENCES_REMAIN = 3;

interface Report {
  readonly run: { readonly state: string; readonly objects: number; readonly error: string | null };
  readonly findings: readonly { readonly kind: string; readonly object_id: string; readonly state: string }[];
}

interface Figures {
  readonly objects: number;
  /** Without the last look at what was found. */
  readonly comparedMs: number;
  readonly verifiedMs: number;
  readonly requests: number;
  readonly statements: number;
  readonly peakMegabytes: number;
}

/**
 * `npm run bench -- reconcile --payments N --tenants T`: one comparison of N payments, and before it one of a tenth of
 * them, each with a database and a provider of its own. Throws where anything but what was planted is found.
 */
export async function reconcileBench(args: readonly string[]): Promise<void> {
  const option = (name: string, otherwise: number) =>
    Number(new RegExp(`--${name}[= ](\\d+)`).exec(args.join(" "))?.[1] ?? otherwise);
  const payments = option("payments", 100_000);
  const tenants = option("tenants", TENANTS);
  const tenth = Math.floor(payments / 10);
  if (tenth < LEAST_PAYMENTS) throw new Error(`--payments must be at least ${LEAST_PAYMENTS * 10}`);
  const small = await measure(tenth, tenants);
  show(tenth, small);
  const large = await measure(payments, tenants);
  show(payments, large);
  const each = (figures: Figures, what: "comparedMs" | "requests" | "statements") =>
    figures[what] / figures.objects;
  say("RATIO time an object", (each(large, "comparedMs") / each(small, "comparedMs")).toFixed(2));
  say("RATIO requests an object", (each(large, "requests") / each(small, "requests")).toFixed(2));
  say("RATIO statements an object", (each(large, "statements") / each(small, "statements")).toFixed(2));
  say("RATIO peak memory of the process", (large.peakMegabytes / small.peakMegabytes).toFixed(2));
}

function show(payments: number, figures: Figures): void {
  const { objects, comparedMs, verifiedMs, requests, statements, peakMegabytes } = figures;
  const rate = Math.round(objects / (comparedMs / 1_000));
  say(`${payments} payments: ${objects} objects compared`, `${rate}/s  ${seconds(comparedMs)}`);
  say("  the last look at what was found", seconds(verifiedMs));
  say("  requests to the provider", `${requests}  ${(requests / (objects / 100)).toFixed(2)} a page`);
  say("  SQL statements", `${statements}  ${(statements / (objects / 100)).toFixed(2)} a page`);
  say("  peak memory of the process", `${Math.round(peakMegabytes)} MB`);
}

function say(label: string, text: string): void {
  process.stdout.write(`${label.padEnd(58)} ${text}\n`);
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

async function measure(count: number, tenants: number): Promise<Figures> {
  const { account } = new Accounts().callerOf(STRIPE_KEY);
  const startMs = Math.floor((Date.now() - AGE_MS - count * STEP_MS) / 1_000) * 1_000;
  const crowd: Crowd = { count, tenants, stepMs: STEP_MS, startMs, account };
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-reconcile-"));
  const cluster = await startCluster({ durable: true });
  try {
    const sql = postgres(cluster.url, { max: 1, onnotice: () => undefined });
    try {
      await makeRows(sql, crowd);
      writeJournal(folder, crowd);
      return await compare(sql, cluster.url, crowd, folder);
    } finally {
      await sql.end();
    }
  } finally {
    await cluster.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(
  sql: postgres.Sql,
  databaseUrl: string,
  crowd: Crowd,
  folder: string,
): Promise<Figures> {
  const sandbox = await run(["sandbox", "--port", "0", "--control-port", "0", "--state-dir", folder], {
    NODE_OPTIONS: "--max-old-space-size=12000",
  });
  try {
    const control = new SandboxControl(sandbox.document["control_url"] ?? "");
    const before = await committed(sql);
    const watched = await watch(sql, crowd, {
      DATABASE_URL: databaseUrl,
      STRIPE_API_BASE: sandbox.document["url"] ?? "",
      STRIPE_SECRET_KEY: STRIPE_KEY,
    });
    const statements = (await committed(sql)) - before - watched.looks;
    const requests = (await control.listRequests()).at(-1)?.sequence ?? 0;
    const { objects } = watched.report.run;
    checkFindings(watched.report, crowd);
    const { comparedMs, verifiedMs, peakMegabytes } = watched;
    return { objects, comparedMs, verifiedMs, requests, statements, peakMegabytes };
  } finally {
    await sandbox.stop();
  }
}

/** Exactly what was planted: the comparison must neither miss one nor tell of what is the same on both sides. */
function checkFindings({ run: compared, findings }: Report, crowd: Crowd): void {
  const found = findings.map(({ kind, object_id: id, state }) => `${kind} ${id} ${state}`).toSorted();
  const planted = plantedWords(crowd);
  const missed = planted.filter((word) => !found.includes(word));
  const others = found.filter((word) => !planted.includes(word));
  if (compared.state !== "completed" || compared.error !== null || missed.length + others.length > 0) {
    throw new Error(`the comparison is wrong: ${JSON.stringify({ compared, missed, others })}`);
  }
  say(`${crowd.count} payments: differences planted and found`, String(found.length));
}

interface Watched extends Pick<Figures, "comparedMs" | "verifiedMs" | "peakMegabytes"> {
  readonly report: Report;
  /** Statements of the watching itself. */
  readonly looks: number;
}

/** Runs `pawl reconcile` over the crowd's window and looks at the run and at the process's memory until it ends. */
async function watch(
  sql: postgres.Sql,
  { startMs, count, stepMs }: Crowd,
  env: Readonly<Record<string, string>>,
): Promise<Watched> {
  const window = [startMs, startMs + (count + 1) * stepMs + AGE_MS / 2].map((ms) =>
    new Date(ms).toISOString(),
  );
  const main = join(packageRoot(), "dist/src/cli/main.js");
  const args = [main, "reconcile", "--from", window[0] ?? "", "--to", window[1] ?? "", "--json"];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  let hasEnded = false;
  const closed = once(child, "close").then(() => {
    hasEnded = true;
  });
  let [looks, peakMegabytes, beganMs, verifyMs] = [0, 0, 0, 0];
  while (!hasEnded) {
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LOOK_MS))]);
    peakMegabytes = Math.max(peakMegabytes, peakOf(child.pid ?? 0));
    const [seen] = await sql<{ phase: string }[]>`select phase from reconciliation_runs`;
    looks += 1;
    if (seen !== undefined && beganMs === 0) beganMs = performance.now();
    if (seen?.phase === "verify" && verifyMs === 0) verifyMs = performance.now();
  }
  if (child.exitCode !== DIFFERENCES_REMAIN) throw new Error(`pawl reconcile: exit ${child.exitCode}`);
  const report = JSON.parse(printed) as Report;
  const verifiedMs = performance.now() - verifyMs;
  return { report, looks, peakMegabytes, comparedMs: verifyMs - beganMs, verifiedMs };
}

/** The most that the process ever had in memory, in megabytes (Linux); 0: it has ended. */
function peakOf(pid: number): number {
  try {
    const peak = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(peak ?? 0) / 1_024;
  } catch {
    return 0;
  }
}

/** Of PostgreSQL: a statement of a running process is one transaction. */
async function committed(sql: postgres.Sql): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] =
    await sql`select xact_commit::float8 as commits from pg_stat_database where datname = current_database()`;
  return Number(row?.["commits"]);
}
