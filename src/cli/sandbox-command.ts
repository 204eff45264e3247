import { Command } from "commander";
import { type FaultRuleInput, type SandboxOptions, startSandbox } from "../sandbox/index.js";
import { guarded, ruleOf, wholeNumber } from "./sandbox-input.js";
import {
  disputesCommand,
  paymentCommands,
  payoutCommand,
  refundsCommand,
} from "./sandbox-payment-commands.js";
import { clockCommand, faultsCommand, logCommand, releaseCommand } from "./sandbox-remote-commands.js";

const DEFAULT_PORT = 12_111;
const DEFAULT_CONTROL_PORT = 12_112;

/** `pawl sandbox`: starts the sandbox; its subcommands talk to one that runs. */
export function sandboxCommand(): Command {
  const command = new Command("sandbox")
    .description("a server that speaks Stripe's protocol, keeps state, and injects faults on request")
    .option("--port <port>", "of the API; 0 takes a free one", wholeNumber, DEFAULT_PORT)
    .option("--host <host>", "address of both listeners", "127.0.0.1")
    .option(
      "--control-port <port>",
      "of the control API; 0 takes a free one",
      wholeNumber,
      DEFAULT_CONTROL_PORT,
    )
    .option("--state-dir <directory>", "keep state and idempotency keys there (default: in memory only)")
    .option("--webhook-url <url>", "send signed events there")
    .option(
      "--webhook-secret <secret>",
      "whsec_…, to sign them with; several, comma-separated, while one is rolled",
    )
    .option(
      "--fault <json>",
      "a fault rule (repeatable), as POST /_sandbox/faults takes it",
      collectRules,
      [],
    )
    .option("--latency-ms <ms>", "what every call takes", wholeNumber, 0)
    .option(
      "--authorization-lifetime-ms <ms>",
      "how long an authorisation holds (default: seven days)",
      wholeNumber,
    )
    .option("--search-lag-ms <ms>", "how long a new object stays out of search", wholeNumber)
    .option("--json", "print one line of JSON with the addresses, then keep running")
    .allowExcessArguments(false)
    // Without it, `sandbox log --json` would give the --json to `sandbox`.
    .enablePositionalOptions()
    .action(async (options: StartOptions) => {
      await guarded(() => start(command, options));
    });
  command.addCommand(faultsCommand());
  command.addCommand(clockCommand());
  command.addCommand(logCommand());
  command.addCommand(releaseCommand());
  for (const each of paymentCommands()) command.addCommand(each);
  command.addCommand(refundsCommand());
  command.addCommand(disputesCommand());
  command.addCommand(payoutCommand());
  return command;
}

interface StartOptions {
  readonly port: number;
  readonly host: string;
  readonly controlPort: number;
  readonly stateDir?: string;
  readonly webhookUrl?: string;
  readonly webhookSecret?: string;
  readonly fault: readonly FaultRuleInput[];
  readonly latencyMs: number;
  readonly searchLagMs?: number;
  readonly authorizationLifetimeMs?: number;
  readonly json?: boolean;
}

async function start(command: Command, options: StartOptions): Promise<void> {
  if ((options.webhookUrl === undefined) !== (options.webhookSecret === undefined)) {
    command.error("error: --webhook-url and --webhook-secret go together", { exitCode: 2 });
  }
  const sandbox = await startSandbox(sandboxOptions(options));
  const addresses = { url: sandbox.url, control_url: sandbox.controlUrl, pid: process.pid };
  process.stdout.write(
    options.json === true
      ? `${JSON.stringify(addresses)}\n`
      : `Sandbox: ${sandbox.url} (STRIPE_API_BASE; any sk_test_ key)\nControl: ${sandbox.controlUrl}/_sandbox\n`,
  );
  await new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
  await sandbox.stop();
}

function sandboxOptions(options: StartOptions): SandboxOptions {
  const { webhookUrl, webhookSecret, authorizationLifetimeMs: lifetimeMs } = options;
  return {
    port: options.port,
    host: options.host,
    controlPort: options.controlPort,
    latencyMs: options.latencyMs,
    faults: options.fault,
    ...(options.stateDir === undefined ? {} : { stateDir: options.stateDir }),
    ...(lifetimeMs === undefined ? {} : { settings: { authorization_lifetime_ms: lifetimeMs } }),
    ...(options.searchLagMs === undefined ? {} : { searchLagMs: options.searchLagMs }),
    ...(webhookUrl === undefined || webhookSecret === undefined
      ? {}
      : { webhookEndpoints: [{ url: webhookUrl, secrets: webhookSecret.split(",") }] }),
  };
}

function collectRules(text: string, rules: readonly FaultRuleInput[]): FaultRuleInput[] {
  return [...rules, ruleOf(text)];
}
