import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "./errors.js";

/** The database and the role that owns it; the role is no superuser, as with a managed PostgreSQL. */
export const APPLICATION = "pawl";
export const SUPERUSER = "postgres";
export const ADDRESS = "127.0.0.1";

export interface Layout {
  readonly folder: string;
  /** PostgreSQL's own data directory: mode 0700, of the user that the server runs as. */
  readonly data: string;
  /** The password of both roles: mode 0600, of the user that Pawl runs as. */
  readonly password: string;
  readonly log: string;
  readonly lockFile: string;
}

export function layoutOf(folder: string): Layout {
  const data = join(folder, "data");
  return {
    folder,
    data,
    password: join(folder, "password"),
    log: join(folder, "server.log"),
    lockFile: join(data, "postmaster.pid"),
  };
}

export function urlOf(role: string, password: string, port: number, database: string): string {
  return `postgres://${role}:${password}@${ADDRESS}:${port}/${database}`;
}

/** The text of a file, or null where there is no such file. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

export interface LockFile {
  readonly pid: number;
  readonly data: string;
  readonly port: number;
  readonly isReady: boolean;
}

/**
 * `postmaster.pid` as a server writes it: line 1 its pid, 2 its data directory, 4 its port, 8 its state.
 * Source: src/include/utils/pidfile.h. Null: no file, or one of which the server has not yet written the pid.
 */
export function readLockFile(layout: Layout): LockFile | null {
  const lines = readIfThere(layout.lockFile)?.split("\n") ?? [];
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return null;
  return {
    pid,
    data: lines[1] ?? "",
    port: Number(lines[3] ?? 0),
    isReady: lines[7]?.trim() === "ready",
  };
}
