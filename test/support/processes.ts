import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { packageRoot } from "../../src/lib/package-root.js";
import { findProgram } from "./needs-program.js";
import { until } from "./until.js";

/** The compiled program, as an installed package runs it. */
const MAIN = join(packageRoot(), "dist/src/cli/main.js");

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ProcessOptions {
  readonly env?: Environment;
  readonly cwd?: string;
  /** Another program than the compiled `pawl`: its path, with everything before the arguments. */
  readonly program?: readonly string[];
  /** What it is sent on stdin, which is then closed. */
  readonly input?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** How long a program may take to say where it listens, on a busy machine. */
const START_MS = 30_000;

/** Where Linux has it: a test run that is killed takes what it started with it. */
const SETPRIV = process.platform === "linux" ? findProgram("setpriv") : undefined;
const DIE_WITH_PARENT = SETPRIV === undefined ? [] : [SETPRIV, "--pdeathsig", "KILL", "--"];

const alive = new Set<RealProcess>();

/** A process of the operating system's, its output kept whole. Killed after the test file at the latest. */
export class RealProcess {
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  #stdout = "";
  #stderr = "";
  #exit: Exit | null = null;

  constructor(args: readonly string[], options: ProcessOptions = {}) {
    const [file = "", ...before] = [...DIE_WITH_PARENT, ...(options.program ?? [process.execPath, MAIN])];
    this.#child = spawn(file, [...before, ...args], {
      // Outside the checkout, so that nothing is found there by accident.
      cwd: options.cwd ?? tmpdir(),
      env: { ...inherited(), ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      this.#stdout += part;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (part: string) => {
      this.#stderr += part;
    });
    // A process that is gone before it has read its input says why by its exit.
    this.#child.stdin?.on("error", () => undefined).end(options.input ?? "");
    this.exited = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#stderr += error.message;
        resolve({ code: null, signal: null });
      });
      this.#child.once("close", (code, signal) => resolve({ code, signal }));
    });
    alive.add(this);
    void this.exited.then((exit) => {
      this.#exit = exit;
      alive.delete(this);
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`not started: ${this.#stderr}`);
    return this.#child.pid;
  }

  /** Null while it runs (or is stopped). */
  get exit(): Exit | null {
    return this.#exit;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Asks it to stop and waits for its end. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Exit> {
    this.kill(signal);
    return this.exited;
  }

  /** Ends it as a crash does. */
  async crash(): Promise<void> {
    this.kill("SIGKILL");
    await this.exited;
  }

  /** The first line on stdout, which with `--json` is one document. */
  async firstLine<T>(): Promise<T> {
    const line = await until(
      "the first line of a process",
      () => (this.#exit === null ? (/^(.*)\n/.exec(this.#stdout)?.[1] ?? null) : this.#stdout),
      (found) => found !== null,
      START_MS,
    );
    try {
      return JSON.parse(line ?? "") as T;
    } catch {
      throw new Error(
        `no JSON on stdout; exit ${JSON.stringify(this.#exit)}: ${this.#stdout}${this.#stderr}`,
      );
    }
  }

  /** Resolves when stderr has this text, from `from` characters on. */
  async says(text: string, from = 0): Promise<void> {
    await until(
      `"${text}" on stderr`,
      () => this.#stderr.slice(from).includes(text) || this.#exit !== null,
      (said) => said,
    );
    if (!this.#stderr.slice(from).includes(text))
      throw new Error(`it ended before it said "${text}": ${this.#stderr}`);
  }

  /** Resolves when the kernel has stopped it (SIGSTOP). */
  async stopped(): Promise<void> {
    await until(
      "a stopped process",
      () => (this.#exit === null ? kernelState(this.pid) : "gone"),
      (state) => state.startsWith("T"),
    );
  }
}

/** One letter, T for stopped: from procfs where there is one, since small images have no ps. */
function kernelState(pid: number): string {
  if (!existsSync("/proc/self/stat")) {
    return execFileSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" });
  }
  // "pid (name) state …": the name may hold anything, a parenthesis too.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
}

/** Runs a command to its end. */
export async function run(
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<RealProcess & { exit: Exit }> {
  const command = new RealProcess(args, options);
  await command.exited;
  return command as RealProcess & { exit: Exit };
}

/** Runs a `--json` command that must succeed; its one document. */
export async function runJson<T>(args: readonly string[], options: ProcessOptions = {}): Promise<T> {
  const command = await run([...args, "--json"], options);
  if (command.exit.code !== 0) throw new Error(`pawl ${args.join(" ")}: ${command.stderr}`);
  return JSON.parse(command.stdout) as T;
}

/** What any program needs; no setting of the machine that runs the tests reaches them. */
function inherited(): Environment {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not there: npm run build first`);
  const kept = ["PATH", "HOME", "TMPDIR", "LANG"].map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined));
}

async function endAll(): Promise<void> {
  const left = [...alive];
  // SIGKILL ends a stopped process too.
  for (const one of left) one.kill("SIGKILL");
  await Promise.all(left.map((one) => one.exited));
}

afterAll(endAll);
process.once("exit", () => {
  for (const one of alive) one.kill("SIGKILL");
});
