import { Command, InvalidArgumentError } from "commander";
import { readConfig } from "../config.js";
import { createLogger } from "../lib/log.js";
import { findingsOf, reportOf } from "../operations/list-findings.js";
import { type Pawl, wire } from "../wire.js";
import { findDatabase, findProvider } from "./environment.js";
import { CommandFailed, print } from "./output.js";
import { CSV_HEADER, csvRow, exitCodeOf, reportDocument, reportLines } from "./reconcile-report.js";

interface Options {
  readonly from?: Date;
  readonly to?: Date;
  readonly json?: boolean;
  readonly csv?: boolean;
}

export function reconcileCommand(): Command {
  return new Command("reconcile")
    .description("compare what the provider has with what we have; exit 3 while differences remain")
    .option("--from <time>", "RFC 3339; what was made since (default: RECONCILE_WINDOW_HOURS ago)", readTime)
    .option("--to <time>", "RFC 3339; no later than RECONCILE_LAG_MS ago, which is the default", readTime)
    .option("--json", "print one JSON document")
    .option("--csv", "print one row a difference")
    .action(reconcile);
}

async function reconcile({ from, to, json, csv }: Options, command: Command): Promise<void> {
  if (json === true && csv === true) command.error("error: --csv and --json do not go together");
  await withPawl(async (pawl) => {
    const { deps } = pawl;
    const { reconcileLagMs, reconcileWindowMs } = deps.settings;
    const latest = new Date(deps.clock.now().getTime() - reconcileLagMs);
    const isTooLate = to !== undefined && to > latest;
    const until = to === undefined || isTooLate ? latest : to;
    const since = from ?? new Date(until.getTime() - reconcileWindowMs);
    if (since >= until) command.error("error: --from must be before --to, and before the lag");
    if (isTooLate) {
      process.stderr.write(
        `pawl: nothing later than RECONCILE_LAG_MS ago is compared: ${until.toISOString()} is used for --to\n`,
      );
    }
    const id = await pawl.comparison.begin({ from: since, to: until });
    await pawl.comparison.drive(id);
    const report = await reportOf(deps, id);
    if (report === null) throw new CommandFailed(`the run ${id} is gone`);
    if (csv === true) await printCsv(findingsOf(deps, id));
    else print(json === true, reportDocument(report), reportLines(report));
    const { run, findings, isComplete } = report;
    if (!isComplete && csv !== true) {
      process.stderr.write(`pawl: there are more than these ${findings.length} differences; --csv has all\n`);
    }
    if (run.error !== null) process.stderr.write(`pawl: ${run.error}\n`);
    process.exitCode = exitCodeOf(report);
  });
}

async function printCsv(findings: AsyncIterable<Parameters<typeof csvRow>[0]>): Promise<void> {
  process.stdout.write(`${CSV_HEADER}\r\n`);
  for await (const finding of findings) process.stdout.write(`${csvRow(finding)}\r\n`);
}

/** A wired process without listeners and workers; its attempts are driven by those that run elsewhere. */
export async function withPawl(work: (pawl: Pawl) => Promise<void>): Promise<void> {
  const config = readConfig();
  const databaseUrl = await findDatabase(config);
  const provider = findProvider(config);
  const log = createLogger({ level: "fatal" });
  const pawl = await wire(config, { databaseUrl, ...provider }, log).catch((error: unknown) => {
    const code = (error as { code?: string }).code ?? (error as Error).name;
    throw new CommandFailed(`DATABASE_URL: the database cannot be used (${code})`);
  });
  try {
    await work(pawl);
  } finally {
    await pawl.drain(0);
    await pawl.close();
  }
}

/** RFC 3339, or a day in UTC: without an offset a time would be read by this machine's own clock. */
const TIME = /^\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2}))?$/;

export function readTime(value: string): Date {
  const at = new Date(value);
  // A day that no month has would be read as one of the next.
  const day = new Date(`${value.slice(0, 10)}T00:00:00Z`);
  const isDay = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value.slice(0, 10));
  const isTime = TIME.test(value) && isDay && !Number.isNaN(at.getTime());
  if (!isTime) throw new InvalidArgumentError("must be a time with its offset, such as 2026-11-29T00:00:00Z");
  return at;
}
