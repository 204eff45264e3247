import type { ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync, renameSync, statSync } from "node:fs";
import type { Binaries } from "./binaries.js";
import { reasonIn } from "./errors.js";
import type { Launcher } from "./launcher.js";
import { ADDRESS, type Layout, readIfThere, readLockFile } from "./layout.js";
import { supervisorMark, waitUntil } from "./processes.js";

/** Crash recovery replays at most about max_wal_size, which slow disks take minutes for. */
const READY_TIMEOUT_MS = 300_000;
/** A fast shutdown writes all dirty pages; after this it is told to leave that to the next start's recovery. */
const FAST_STOP_TIMEOUT_MS = 30_000;

/** Sized for one Pawl beside its database on a small machine; durability is left at PostgreSQL's own defaults: on. */
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: ADDRESS,
  unix_socket_directories: "",
  max_connections: "100",
  // What is worked with at a time fits in; more would be the same pages twice, here and in the cache of the system.
  shared_buffers: "32MB",
  huge_pages: "off",
  jit: "off",
  io_method: "sync",
  max_parallel_workers_per_gather: "0",
  max_logical_replication_workers: "0",
  timezone: "UTC",
  log_timezone: "UTC",
  // What fails in a statement is the application's to log; here it would bring the statement's values with it.
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_error_verbosity: "terse",
  log_checkpoints: "off",
};

export type StopMode = "fast" | "immediate";

/** How to start a server; the same at every restart. */
export interface ServerPlan {
  readonly binaries: Binaries;
  readonly launcher: Launcher;
  readonly layout: Layout;
  readonly settings: Readonly<Record<string, string>>;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
  readonly hasExited: () => boolean;
  /** Resolves when the process has ended: with what it said last. */
  readonly exited: Promise<string>;
  readonly stop: (mode: StopMode) => Promise<void>;
}

/** Starts one server process and waits until it takes connections; a text is the reason why it ended before that. */
export async function startServer(plan: ServerPlan, port: number): Promise<Server | string> {
  const settings = { ...DEFAULT_SETTINGS, ...plan.settings, port: String(port) };
  const options = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const args = [
    "-D",
    plan.layout.data,
    ...[...options, supervisorMark()].flatMap((option) => ["-c", option]),
  ];
  const log = openSync(plan.layout.log, "a", 0o600);
  const logStart = statSync(plan.layout.log).size;
  const child = plan.launcher.start(plan.binaries.postgres, args, ["ignore", log, log]);
  closeSync(log);
  const server = watch(child, port, () => lastWords(plan.layout, logStart));
  const isReady = () => {
    const lock = readLockFile(plan.layout);
    return lock?.pid === server.pid && lock.isReady;
  };
  const isSettled = await waitUntil(READY_TIMEOUT_MS, () => server.hasExited() || isReady());
  if (!isSettled) await server.stop("immediate");
  if (!server.hasExited()) {
    // The database is a means: it keeps no process alive that has nothing else to do.
    child.unref();
    return server;
  }
  return isSettled ? server.exited : `not ready after ${READY_TIMEOUT_MS} ms`;
}

function watch(child: ChildProcess, port: number, lastWordsOf: () => string): Server {
  let hasExited = false;
  const exited = new Promise<string>((resolve) => {
    const end = (reason: string) => {
      hasExited = true;
      resolve(reason);
    };
    child.once("error", (error) => end(error.message));
    child.once("exit", (code, signal) =>
      end([lastWordsOf(), `exit ${signal ?? String(code)}`].filter(Boolean).join(", ")),
    );
  });
  return {
    pid: child.pid ?? 0,
    port,
    hasExited: () => hasExited,
    exited,
    stop: async (mode) => {
      child.ref();
      child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
      if (await waitUntil(FAST_STOP_TIMEOUT_MS, () => hasExited)) return;
      child.kill("SIGQUIT");
      if (!(await waitUntil(FAST_STOP_TIMEOUT_MS, () => hasExited))) child.kill("SIGKILL");
      await exited;
    },
  };
}

/** The server's own reason, from what it has written since it was started; a folder that was deleted says nothing. */
function lastWords(layout: Layout, from: number): string {
  return reasonIn((readIfThere(layout.log) ?? "").slice(from));
}

/** One log for a run of Pawl and one for the run before: bounded without anything that rotates. */
export function keepPreviousLog(layout: Layout): void {
  if (existsSync(layout.log)) renameSync(layout.log, `${layout.log}.1`);
}
