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
    if (FULL_CODES.has(code)) {
      const message = `no space left for the database folder ${folder} (${code}): free some, ${WAY_OUT}`;
      throw new EmbeddedPostgresError("disk_full", message, { cause: error });
    }
    throw error;
  }
}
