import { Command } from "commander";
import { reportOf } from "../operations/list-findings.js";
import { beginRecoverySince, endRecoveryNow } from "../operations/recover.js";
import { withStore } from "./environment.js";
import { CommandFailed, print } from "./output.js";
import { readTime, withPawl } from "./reconcile-command.js";
import { reportDocument, reportLines } from "./reconcile-report.js";

const DIFFERENCES_REMAIN = 3;

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
  await withPawl(async ({ deps, comparison }) => {
    const account = await comparison.accountOrThrow();
    const id = await beginRecoverySince(deps, account, since);
    let phase = "";
    const run = await comparison.drive(id, (now) => {
      if (json !== true && now.phase !== phase)
        process.stderr.write(`${now.phase}: ${now.objects} objects\n`);
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
    if (run.state === "failed" || recovering !== null) process.exitCode = 1;
    else if (report.findings.some(({ state }) => state === "open")) process.exitCode = DIFFERENCES_REMAIN;
  });
}
