import { Command } from "commander";
import { type ReconciliationReport, reportOf } from "../operations/list-findings.js";
import { beginRecoverySince, endRecoveryNow } from "../operations/recover.js";
import { withStore } from "./environment.js";
import { CommandFailed, print } from "./output.js";
import { readTime, withPawl } from "./reconcile-command.js";
import { reportDocument, reportLines } from "./reconcile-report.js";

const DIFFERENCES_REMAIN = 3;
/** Also where a list could not be read. */
const NOT_ENDED = 1;

interface Options {
  readonly since?: Date;
  readonly done?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

export function recoverCommand(): Command {
  return new Command("recover")
    .description("after a restore or a failover: take in what the provider knows, and only then send again")
    .option("--since <time>", "RFC 3339; the latest time that the data surely tells of", readTime)
    .option("--done", "end it now: you know that nothing was lost")
    .option("--reason <text>", "with --done: why, for the log")
    .option("--json", "print one JSON document")
    .action((options: Options, command: Command) =>
      options.done === true ? endNow(options, command) : recover(options, command),
    );
}

async function endNow({ since, reason, json }: Options, command: Command): Promise<void> {
  if (since !== undefined) command.error("error: --done and --since do not go together");
  if (reason === undefined || reason.trim() === "") command.error("error: --done needs --reason: say why");
  const ended = await withStore((store) => endRecoveryNow(store, reason));
  if (!ended) throw new CommandFailed("no recovery is under way");
  print(json === true, { recovering: false, reason }, ["Recovery ended; attempts are sent again."]);
}

async function recover({ since, json }: Options, command: Command): Promise<void> {
  if (since === undefined)
    command.error("error: --since is needed: from when on rows may be lost; or --done");
  // Nothing would be compared, and everything sent.
  if (since.getTime() > Date.now()) command.error("error: --since lies in the future");
  await withPawl(async ({ deps, comparison }) => {
    // Before the provider is asked who we are: where it is away, nothing is sent when it is back.
    await deps.recovery.begin("asked_for", null);
    const id = await beginRecoverySince(deps, await comparison.accountOrThrow(), since);
    let phase = "";
    const run = await comparison.drive(id, (now) => {
      if (json !== true && now.phase !== phase) process.stderr.write(`${said(now)}\n`);
      phase = now.phase;
    });
    const report = await reportOf(deps, id);
    if (report === null) throw new CommandFailed(`the run ${id} is gone`);
    await deps.recovery.check();
    const recovering = deps.recovery.current();
    const document = { ...reportDocument(report), recovering: recovering !== null };
    print(json === true, document, [
      ...reportLines(report),
      recovering === null ? "Recovered; attempts are sent again." : "Still recovering; nothing is sent.",
    ]);
    if (run.error !== null) process.stderr.write(`pawl: ${run.error}\n`);
    if (run.state === "failed" || recovering !== null) process.exitCode = NOT_ENDED;
    else if (report.findings.some(({ state }) => state === "open")) process.exitCode = DIFFERENCES_REMAIN;
    else if (run.error !== null) process.exitCode = NOT_ENDED;
  });
}

function said({ phase, objects }: ReconciliationReport["run"]): string {
  return phase === "attempts"
    ? "attempts: until each open one has had an answer; a running `attempts` worker asks"
    : `${phase}: ${objects} objects`;
}
