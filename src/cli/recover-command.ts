import { Command } from "commander";
import { reportOf } from "../operations/list-findings.js";
import { positionOf } from "../operations/reconcile-run.js";
import { accountsAwaited, beginRecoverySince, endRecoveryNow, sinceToldOf } from "../operations/recover.js";
import { withPawl, withStore } from "./environment.js";
import { CommandFailed, print } from "./output.js";
import { readTime } from "./read-time.js";
import { exitCodeOf, reportDocument, reportLines } from "./reconcile-report.js";

const NOT_ENDED = 1;
const WAITING =
  "waiting until each open attempt has had an answer: a running `attempts` worker (`pawl worker`) asks\n";

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
    const account = await comparison.accountOrThrow();
    const from = await sinceToldOf(deps, since);
    if (from < since) {
      process.stderr.write(
        `pawl: --since is later than what the data surely tells of: ${from.toISOString()} is used\n`,
      );
    }
    const id = await beginRecoverySince(deps, account, from);
    let phase = "";
    let isTold = false;
    const run = await comparison.drive(id, (now) => {
      const isNew = now.phase !== phase;
      phase = now.phase;
      if (isNew && json !== true) process.stderr.write(`${phase}: ${now.objects} objects\n`);
      // Also beside a document for a program: without a worker it waits until a person starts one.
      if (isTold || phase !== "attempts" || positionOf(now).since === null) return;
      process.stderr.write(WAITING);
      isTold = true;
    });
    const report = await reportOf(deps, id);
    if (report === null) throw new CommandFailed(`the run ${id} is gone`);
    await deps.recovery.check();
    const recovering = deps.recovery.current();
    const awaited = recovering === null ? [] : await accountsAwaited(deps);
    const document = {
      ...reportDocument(report),
      since: from.toISOString(),
      recovering: recovering !== null,
      accounts_awaited: awaited,
    };
    print(json === true, document, [
      ...reportLines(report),
      recovering === null ? "Recovered; attempts are sent again." : "Still recovering; nothing is sent.",
      ...awaited.map((account) => `Also to be recovered, with its credential: ${account}`),
    ]);
    if (run.error !== null) process.stderr.write(`pawl: ${run.error}\n`);
    process.exitCode = recovering === null ? exitCodeOf(report) : NOT_ENDED;
  });
}
