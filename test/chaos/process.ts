import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, openSync, readFileSync, type WriteStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.js";
import { findProgram } from "../support/needs-program.js";

/** The compiled program, as an installed package runs it. */
export const MAIN = join(packageRoot(), "dist/src/cli/main.js");

const SETPRIV = process.platform === "linux" ? findProgram("setpriv") : undefined;
/** Where Linux has it: a run that is killed takes what it started with it. */
const DIE_WITH_PARENT = SETPRIV === undefined ? [] : [SETPRIV, "--pdeathsig", "KILL", "--"];

/** A port that was given up a moment ago may still be another socket's for a while. */
const MOST_STARTS = 20;
const START_AGAIN_MS = 250;

export type Environment = Readonly<Record<string, string>>;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Where the processes of a run write, and what became of them. */
export class Morgue {
  /** Ends that no blow explains. */
  readonly unexpected: string[] = [];
  readonly logs: string[] = [];
  readonly #alive = new Set<ChildProcess>();

  constructor(readonly folder: string) {
    // Where the kernel does not see to it (macOS).
    process.once("exit", () => this.endAll());
  }

  watch(child: ChildProcess): void {
    this.#alive.add(child);
    child.once("exit", () => this.#alive.delete(child));
  }

  endAll(): void {
    for (const child of this.#alive) child.kill("SIGKILL");
  }

  newLog(name: string): string {
    const path = join(this.folder, `${String(this.logs.length + 1).padStart(3, "0")}-${name}.log`);
    this.logs.push(path);
    return path;
  }
}

/** One process of the system under test, everything it says kept in a file of its own. */
export class ChaosProcess<Addresses> {
  readonly exited: Promise<Exit>;
  #exit: Exit | null = null;
  #isDoomed = false;

  private constructor(
    readonly name: string,
    readonly log: string,
    private readonly child: ChildProcess,
    morgue: Morgue,
  ) {
    morgue.watch(child);
    this.exited = new Promise((resolve) => {
      child.once("error", () => resolve({ code: null, signal: null }));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    void this.exited.then((exit) => {
      this.#exit = exit;
      if (!this.#isDoomed) morgue.unexpected.push(`${name} ended by itself (${wordOf(exit)}): ${log}`);
    });
  }

  #addresses: Addresses | null = null;

  /** Resolves when it has printed its addresses. */
  static async start<Addresses>(
    name: string,
    args: readonly string[],
    env: Environment,
    morgue: Morgue,
  ): Promise<ChaosProcess<Addresses>> {
    for (let starts = 1; ; starts += 1) {
      const log = morgue.newLog(name);
      const { child, output } = spawnInto(log, [...args, "--json"], env);
      const started = new ChaosProcess<Addresses>(name, log, child, morgue);
      started.#isDoomed = true;
      const line = await Promise.race([firstLineOf(child, output), started.exited.then(() => null)]);
      if (line !== null && started.#exit === null) {
        started.#isDoomed = false;
        started.#addresses = JSON.parse(line) as Addresses;
        return started;
      }
      const said = readFileSync(log, "utf8");
      if (!said.includes("EADDRINUSE") || starts === MOST_STARTS)
        throw new Error(`${name} did not start: ${said.slice(-2_000)} (${log})`);
      await new Promise((resolve) => setTimeout(resolve, START_AGAIN_MS));
    }
  }

  get addresses(): Addresses {
    if (this.#addresses === null) throw new Error(`${this.name} has not started`);
    return this.#addresses;
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  /** SIGSTOP and SIGCONT: it does not end. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.child.kill(signal);
  }

  /** `kill -9`. */
  async crash(): Promise<void> {
    this.#isDoomed = true;
    this.child.kill("SIGKILL");
    await this.exited;
  }

  /** Asks it to stop; resolves with how it ended. */
  async stop(): Promise<Exit> {
    this.#isDoomed = true;
    this.child.kill("SIGTERM");
    return this.exited;
  }
}

/** What any program needs; no setting of the machine that runs the tests reaches them. */
export function inherited(): Environment {
  const kept = ["PATH", "HOME", "TMPDIR", "LANG"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

function wordOf({ code, signal }: Exit): string {
  return signal ?? `exit ${String(code)}`;
}

function spawnInto(log: string, args: readonly string[], env: Environment) {
  const file = openSync(log, "a", 0o600);
  const output = createWriteStream(log, { fd: file });
  const command = [...DIE_WITH_PARENT, process.execPath, MAIN, ...args];
  const child = spawn(command[0] ?? "", command.slice(1), {
    // Outside the checkout, so that nothing is found there by accident.
    cwd: tmpdir(),
    env: { ...inherited(), ...env },
    stdio: ["ignore", "pipe", file],
  });
  return { child, output };
}

/** The first line on stdout, which is one document; everything goes into the log as well. */
function firstLineOf(child: ChildProcess, output: WriteStream): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      output.write(part);
      text += part;
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
    child.stdout?.once("end", () => output.end());
  });
}
