import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/embedded-postgres.js";
import { EmbeddedPostgresError } from "../../src/embedded-postgres/errors.js";
import { layoutOf, readLockFile } from "../../src/embedded-postgres/layout.js";
import { createLogger } from "../../src/lib/log.js";
import { openFolder } from "./checkout.js";

export interface StartOptions {
  readonly folder?: string;
  readonly port?: number;
  readonly settings?: Record<string, string>;
}

export interface SharedFolder {
  readonly folder: () => string;
  readonly start: (options?: StartOptions) => Promise<EmbeddedPostgres>;
  /** The pid of the server that runs on the folder. */
  readonly serverPid: () => number;
}

/** One data folder for the tests of a file, made by the first start; what a test started is stopped after it. */
export function useSharedFolder(): SharedFolder {
  const log = createLogger({ level: "silent" });
  let scratch = "";
  let started: EmbeddedPostgres[] = [];
  // A path as a person may have it: PostgreSQL's own tools go through a shell.
  const folder = () => join(scratch, "a checkout's folder", ".pawl", "postgres");

  beforeAll(() => {
    scratch = openFolder();
  });
  afterEach(async () => {
    await Promise.all(started.map((one) => one.stop()));
    started = [];
  });
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true });
  });
  return {
    folder,
    start: async (options = {}) => {
      const one = await startEmbeddedPostgres({ folder: folder(), log, ...options });
      started.push(one);
      return one;
    },
    serverPid: () => {
      const lock = readLockFile(layoutOf(folder()));
      if (lock === null) throw new Error("no server runs");
      return lock.pid;
    },
  };
}

/** The refusal of a start: it must be ours, and fit on a line. */
export async function refusal(work: Promise<unknown>): Promise<EmbeddedPostgresError> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof EmbeddedPostgresError)) {
    throw new Error("not refused as it should be", { cause: error });
  }
  expect(error.message).not.toContain("\n");
  return error;
}
