import { Command } from "commander";
import { SandboxControl } from "../sandbox/index.js";
import { guarded } from "./sandbox-input.js";

const DEFAULT_CONTROL_URL = "http://127.0.0.1:12112";

export interface ControlOptions {
  readonly controlUrl: string;
  readonly json?: boolean;
}

/** A subcommand that talks to a running sandbox. */
export function remoteCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option("--control-url <url>", "of the sandbox's control API", DEFAULT_CONTROL_URL)
    .option("--json", "print one JSON document")
    .allowExcessArguments(false);
}

/** Asks, and prints the answer: as JSON, or as the lines for people. */
export async function answer<T>(
  options: ControlOptions,
  ask: (control: SandboxControl) => Promise<T>,
  shown: (answered: T) => string,
): Promise<void> {
  await guarded(async () => {
    const answered = await ask(new SandboxControl(options.controlUrl));
    const text = options.json === true ? JSON.stringify(answered) : shown(answered);
    process.stdout.write(text === "" ? "" : `${text}\n`);
  });
}
