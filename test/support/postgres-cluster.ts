import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/embedded-postgres.js";
import { isAlive } from "../../src/embedded-postgres/processes.js";
import { createLogger } from "../../src/lib/log.js";
import { migrate } from "../../src/store/migrate.js";

const PREFIX = "pawl-test-cluster-";
/** What a crash of the machine may lose, and a test run does not need: several times faster. */
const NOT_DURABLE = { fsync: "off", full_page_writes: "off", synchronous_commit: "off" };
/** Many pools share it: two test files at a time, and the processes that they start. */
const FOR_TESTS = { max_connections: "300", shared_buffers: "64MB" };

export interface ClusterOptions {
  /** True: as in production. False: a crash loses the last commits, and a stop that is `immediate` is one. */
  readonly durable: boolean;
}

/** A PostgreSQL server of its own, in a folder of its own, for a suite that stops and restarts the database. */
export interface Cluster {
  /** The database `pawl`, migrated, as the role that owns it. The same after every restart. */
  readonly url: string;
  /** The database `postgres`, as superuser. */
  readonly adminUrl: string;
  readonly port: number;
  /** `fast` ends sessions and writes everything; `immediate` is a crash of the server, with recovery at the start. */
  readonly stop: (mode?: "fast" | "immediate") => Promise<void>;
  readonly start: () => Promise<void>;
  readonly restart: (mode?: "fast" | "immediate") => Promise<void>;
  /** Stops it and deletes its folder. */
  readonly remove: () => Promise<void>;
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const cluster = await startEmptyCluster(options);
  await migrate(cluster.url);
  return cluster;
}

/** Without the migrations: for what starts a process that applies them itself. */
export async function startEmptyCluster(options: ClusterOptions): Promise<Cluster> {
  removeAbandoned();
  const root = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  // The server may run as another user than root.
  chmodSync(root, 0o711);
  const settings = { ...FOR_TESTS, ...(options.durable ? {} : NOT_DURABLE) };
  const log = createLogger({ level: "fatal" });
  const begin = (port?: number) =>
    startEmbeddedPostgres({
      folder: join(root, "postgres"),
      log,
      settings,
      ...(port === undefined ? {} : { port }),
    });
  let running: EmbeddedPostgres = await begin();
  const { url, adminUrl, port } = running;
  const start = async () => {
    running = await begin(port);
  };
  return {
    url,
    adminUrl,
    port,
    start,
    stop: (mode) => running.stop(mode),
    restart: async (mode) => {
      await running.stop(mode);
      await start();
    },
    remove: async () => {
      await running.stop("immediate");
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Folders of this user's test runs that were killed; their servers ended with them. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const folder = join(tmpdir(), name);
    const pid = Number(name.slice(PREFIX.length).split("-")[0]);
    // Another run that starts now may be removing it as well.
    const owner = statSync(folder, { throwIfNoEntry: false })?.uid;
    if (owner === process.getuid?.() && !isAlive(pid)) rmSync(folder, { recursive: true, force: true });
  }
}
