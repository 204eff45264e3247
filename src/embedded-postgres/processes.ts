import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { systemClock } from "../lib/clock.js";
import { errorCode } from "./errors.js";

const POLL_MS = 25;
const MARK = "pawl.supervisor_pid";

export interface ProcessState {
  readonly parentPid: number;
  readonly isZombie: boolean;
  readonly commandLine: string;
}

/** Whether a pid is in use, be it by a zombie or by another user's process. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== "ESRCH";
  }
}

/** What runs under a pid, or null. /proc where there is one (slim images have no `ps`), else `ps`. */
export async function describeProcess(pid: number): Promise<ProcessState | null> {
  try {
    return existsSync("/proc/self/stat") ? readProc(pid) : await askPs(pid);
  } catch {
    // The process went away between two reads; `ps` exits 1 for a pid that nobody has.
    return null;
  }
}

function readProc(pid: number): ProcessState {
  // proc(5): "pid (name) state parent ..."; the name may hold blanks and parentheses itself.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  return { parentPid: Number(parent), isZombie: state === "Z" || state === "X", commandLine };
}

async function askPs(pid: number): Promise<ProcessState | null> {
  const { stdout } = await promisify(execFile)("ps", [
    "-ww",
    "-o",
    "ppid=,stat=,command=",
    "-p",
    String(pid),
  ]);
  const found = /^\s*(\d+)\s+(\S+)\s+(.*)$/m.exec(stdout);
  if (found === null) return null;
  return {
    parentPid: Number(found[1]),
    isZombie: found[2]?.startsWith("Z") === true,
    commandLine: found[3] ?? "",
  };
}

/** The server's argument that says who watches it: a parameter of ours, which PostgreSQL keeps and ignores. */
export function supervisorMark(): string {
  return `${MARK}=${process.pid}`;
}

export function hasSupervisorMark(state: ProcessState): boolean {
  return state.commandLine.includes(MARK);
}

/** A server whose supervisor died has another parent (init, or what adopts orphans): a reused pid cannot fool this. */
export function hasLivingSupervisor(state: ProcessState): boolean {
  return state.commandLine.split(/\s/).includes(`${MARK}=${state.parentPid}`);
}

/** Asks until the answer is true or the time is over; says which. */
export async function waitUntil(timeoutMs: number, ask: () => boolean | Promise<boolean>): Promise<boolean> {
  const endMs = systemClock.monotonicMs() + timeoutMs;
  while (!(await ask())) {
    if (systemClock.monotonicMs() > endMs) return false;
    await systemClock.sleep(POLL_MS);
  }
  return true;
}
