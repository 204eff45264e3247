import { Command } from "commander";
import { findingsOf, reportOf } from "../operations/list-findings.js";
import { withPawl } from "./environment.js";
import { CommandFailed, print } from "./output.js";
import { readTime } from "./read-time.js";
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
