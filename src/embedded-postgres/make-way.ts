import { rmSync } from "node:fs";
import { createServer } from "node:net";
import type { Logger } from "../lib/log.js";
import { EmbeddedPostgresError, errorCode, WAY_OUT } from "./errors.js";
import { ADDRESS, type Layout, type LockFile, readLockFile } from "./layout.js";
import {
  describeProcess,
  hasLivingSupervisor,
  hasSupervisorMark,
  type ProcessState,
  waitUntil,
} from "./processes.js";

const ORPHAN_STOP_TIMEOUT_MS = 30_000;
/**
 * Looks at what an earlier run left on the data directory. A server whose supervisor lives is in use: refused. One
 * without is stopped, so that the new one is ours to watch. Says whether there was anything: then a first try at
 * starting may still fail, on shared memory that the dead server's sessions have not let go of.
 */
export async function makeWay(layout: Layout, log: Logger): Promise<boolean> {
  const lock = readLockFile(layout);
  if (lock === null) return false;
  const found = await describeProcess(lock.pid);
  if (found !== null && isServerOf(lock, found)) {
    if (hasLivingSupervisor(found)) throw alreadyRunning(layout, found.parentPid);
    await stopOrphan(lock.pid, log);
  } else if (found !== null) {
    // PostgreSQL refuses while the pid is in use by its user: by another program now, or by the dead server until init
    // collects it. Should a session still live, the new server finds the shared memory that it holds, and refuses.
    log.warn({ pid: lock.pid }, "removing the lock file of a database server that is gone");
    rmSync(layout.lockFile, { force: true });
  }
  return true;
}

export function isServerOf(lock: LockFile, state: ProcessState): boolean {
  return !state.isZombie && hasSupervisorMark(state) && state.commandLine.includes(`-D ${lock.data} `);
}

function alreadyRunning(layout: Layout, pid: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "already_running",
    `Pawl is already running on ${layout.folder} (pid ${pid}): use that one, stop it first, ${WAY_OUT}`,
  );
}

async function stopOrphan(pid: number, log: Logger): Promise<void> {
  log.warn({ pid }, "stopping a database server that an earlier run left behind");
  const isGone = async () => {
    const state = await describeProcess(pid);
    return state === null || state.isZombie;
  };
  signal(pid, "SIGINT");
  if (await waitUntil(ORPHAN_STOP_TIMEOUT_MS, isGone)) return;
  signal(pid, "SIGQUIT");
  if (await waitUntil(ORPHAN_STOP_TIMEOUT_MS, isGone)) return;
  throw new EmbeddedPostgresError(
    "start_failed",
    `the database server of an earlier run (pid ${pid}) does not stop`,
  );
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return;
    throw error;
  }
}

/** A port that was free a moment ago. `wanted` null: any. Null: the wanted one is taken. */
export function findFreePort(wanted: number | null): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) => {
      if (errorCode(error) === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    probe.listen(wanted ?? 0, ADDRESS, () => {
      const address = probe.address();
      const port = typeof address === "object" ? (address?.port ?? null) : null;
      probe.close(() => resolve(port));
    });
  });
}
