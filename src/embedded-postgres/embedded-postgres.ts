import { mkdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { systemClock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import { findBinaries, linkLibraries } from "./binaries.js";
import { createCluster, isCreated } from "./create-cluster.js";
import { EmbeddedPostgresError, explainFileErrors, programFailed } from "./errors.js";
import { chooseLauncher } from "./launcher.js";
import { APPLICATION, layoutOf, SUPERUSER, urlOf } from "./layout.js";
import { findFreePort, makeWay } from "./make-way.js";
import { keepPreviousLog, type Server, type ServerPlan, type StopMode, startServer } from "./server.js";
import { supervise } from "./supervise.js";

/** Within this, a start fails again and again on what a killed server leaves for a moment: lock file, shared memory. */
const REMNANTS_TIMEOUT_MS = 10_000;
const RETRY_MS = 200;

export interface EmbeddedPostgresOptions {
  /** Kept between runs; made where it is not there. */
  readonly folder: string;
  readonly log: Logger;
  /** PostgreSQL's own settings, over ours. */
  readonly settings?: Readonly<Record<string, string>>;
  /** On 127.0.0.1; without it a free one is taken. */
  readonly port?: number;
}

export interface EmbeddedPostgres {
  /** The application's database, as its owner, who is no superuser. Holds the password: never log it. */
  readonly url: string;
  /** The `postgres` database as superuser, for what only an operator or a test does. */
  readonly adminUrl: string;
  readonly port: number;
  /** Ends the server and the watch over it. `fast` (default) ends sessions and writes everything; `immediate` crashes. */
  readonly stop: (mode?: StopMode) => Promise<void>;
}

/**
 * A real PostgreSQL server on 127.0.0.1 that belongs to this process: started, watched, restarted when it dies, and
 * gone when this process is. Installs no signal handler; the caller stops it. Throws EmbeddedPostgresError.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return explainFileErrors(options.folder, async () => {
    const plan = await prepare(options);
    const server = await startAtOnce(plan, options.port ?? null, options.log);
    const password = readFileSync(plan.layout.password, "utf8");
    const stop = supervise(server, () => startServer(plan, server.port), options.log);
    options.log.info(
      { port: server.port, pid: server.pid, folder: plan.layout.folder },
      "embedded PostgreSQL started",
    );
    return {
      url: urlOf(APPLICATION, password, server.port, APPLICATION),
      adminUrl: urlOf(SUPERUSER, password, server.port, SUPERUSER),
      port: server.port,
      stop: (mode = "fast") => stop(mode),
    };
  });
}

async function prepare(options: EmbeddedPostgresOptions): Promise<ServerPlan> {
  const binaries = await findBinaries();
  const settings = options.settings ?? {};
  const layout = layoutOf(realFolder(options.folder));
  if (!isCreated(layout)) {
    await createCluster(binaries, layout.folder, settings["fsync"] !== "off");
  }
  const launcher = await chooseLauncher(binaries, layout.data, linkLibraries(binaries, layout.folder));
  return { binaries, launcher, layout, settings };
}

/** One name for one folder, since a running server is known by the path on its command line. */
function realFolder(folder: string): string {
  const parent = dirname(resolve(folder));
  mkdirSync(parent, { recursive: true });
  return join(realpathSync(parent), basename(folder));
}

async function startAtOnce(plan: ServerPlan, wanted: number | null, log: Logger): Promise<Server> {
  const endMs = systemClock.monotonicMs() + REMNANTS_TIMEOUT_MS;
  let hasRemnants = await makeWay(plan.layout, log);
  keepPreviousLog(plan.layout);
  for (;;) {
    const port = await findFreePort(wanted);
    if (port === null) {
      const message = `port ${String(wanted)} for the embedded PostgreSQL is taken: choose another one`;
      throw new EmbeddedPostgresError("port_taken", message);
    }
    const started = await startServer(plan, port);
    if (typeof started !== "string") return started;
    // Another start may have been faster: to the data directory, where it is now refused, or to the port.
    hasRemnants = (await makeWay(plan.layout, log)) || hasRemnants;
    const isInTheWay = hasRemnants || (await findFreePort(port)) === null;
    if (!isInTheWay || systemClock.monotonicMs() > endMs) {
      const what = `the embedded PostgreSQL did not start (its log: ${plan.layout.log})`;
      throw programFailed(plan.layout.folder, what, started);
    }
    await systemClock.sleep(RETRY_MS);
  }
}
