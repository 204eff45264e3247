import { statfsSync } from "node:fs";

export type EmbeddedPostgresFault =
  | "unsupported_platform"
  | "not_runnable"
  | "already_running"
  | "port_taken"
  | "permission"
  | "disk_full"
  | "start_failed";

/** What every refusal ends with: the embedded server is a convenience, and any PostgreSQL serves instead. */
export const WAY_OUT = "or set DATABASE_URL to a PostgreSQL 15 or later";

/** A start that cannot go on. The message is one line, written for the person who typed the command. */
export class EmbeddedPostgresError extends Error {
  constructor(
    readonly fault: EmbeddedPostgresFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "EmbeddedPostgresError";
  }
}

const PERMISSION_CODES = new Set(["EACCES", "EPERM", "EROFS"]);
const FULL_CODES = new Set(["ENOSPC", "EDQUOT"]);

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** A complaint stands at the end; further up there may be those of clients that were turned away long ago. */
const LAST_LINES = 5;

/** Why a program of PostgreSQL ended, from what it printed: its last complaint, else its last line. */
export function reasonIn(output: string): string {
  const lines = output.trimEnd().split("\n").slice(-LAST_LINES);
  const complaints = lines.flatMap((line) => /\b(?:FATAL|PANIC|ERROR|error): .*$/.exec(line)?.[0] ?? []);
  return complaints.at(-1) ?? lines.at(-1)?.trim() ?? "";
}

/** A server without room for one more segment of its log cannot go on, nor even say so in its log file. */
const SEGMENT_BYTES = 16 * 1024 * 1024;

/** The error of a program that ended with this reason, or of the full disk that kept it from giving one. */
export function programFailed(folder: string, what: string, reason: string): EmbeddedPostgresError {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < SEGMENT_BYTES) return diskFull(folder, reason);
  return new EmbeddedPostgresError("start_failed", `${what}: ${reason}: mend that, ${WAY_OUT}`);
}

function diskFull(folder: string, reason: string, cause?: unknown): EmbeddedPostgresError {
  const message = `no space left for the database folder ${folder} (${reason}): free some, ${WAY_OUT}`;
  return new EmbeddedPostgresError("disk_full", message, { cause });
}

/** Runs file work on the database's folder, and turns what the file system refuses into one line. */
export async function explainFileErrors<T>(folder: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (PERMISSION_CODES.has(code)) {
      throw new EmbeddedPostgresError(
        "permission",
        `no permission for the database folder ${folder} (${code}): start as its owner, remove it, ${WAY_OUT}`,
        { cause: error },
      );
    }
    if (FULL_CODES.has(code)) throw diskFull(folder, code, error);
    throw error;
  }
}
