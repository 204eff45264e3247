import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { packageRoot } from "../src/lib/package-root.js";

export interface Running {
  readonly child: ChildProcess;
  /** The document that `--json` printed. */
  readonly document: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Runs a command of the compiled program with `--json` and waits for its first line. */
export async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Running> {
  const main = join(packageRoot(), "dist/src/cli/main.js");
  const child = spawn(process.execPath, [main, ...args, "--json"], {
    env: { PATH: process.env["PATH"], LOG_LEVEL: "error", PORT: "0", ADMIN_PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), exited.then(() => null)]);
  if (first === null) throw new Error(`pawl ${args.join(" ")} ended before it was ready`);
  return {
    child,
    document: JSON.parse(String(first[0])) as Record<string, string>,
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Runs a command that ends, and reads its document. */
export async function document(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const { child, document: printed } = await run(args, env);
  if (child.exitCode === null) await once(child, "exit");
  return { ...printed };
}

const TICKS_PER_SECOND = 100;

/** CPU seconds that a process has used (Linux). */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Megabytes of a process, shared pages divided among those that share them (Linux). */
export function proportionalMegabytes(pid: number): number {
  const pss = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1];
  return Number(pss) / 1024;
}

/** The process and all below it. */
export function family(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => family(Number(child))))];
}
