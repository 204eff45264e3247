import type { Config, WorkerName } from "../config.js";
import type { Logger } from "../lib/log.js";
import { type Listening, type Pawl, type Targets, wire } from "../wire.js";
import { migrateOrFail } from "./environment.js";

export interface ProcessParts {
  readonly api: boolean;
  readonly workers: readonly WorkerName[];
  /** From `signalled()`, called before anything was started: asked to stop while it starts, it starts and stops. */
  readonly stopAsked: Promise<NodeJS.Signals>;
  /** Called when everything runs. */
  ready(pawl: Pawl, listening: Listening): Promise<void> | void;
  /** Stops what this process started beside Pawl itself, in order, after it. */
  readonly afterwards: (() => Promise<void>)[];
}

/**
 * Runs until SIGTERM or SIGINT, then stops within the grace: the API takes no more, running requests and attempts
 * end, connections close. Exit 0 when all of it ended in time, else 1; what was cut off is taken over by its lease.
 */
export async function runProcess(
  config: Config,
  targets: Targets,
  log: Logger,
  parts: ProcessParts,
): Promise<void> {
  try {
    await migrateOrFail(targets.databaseUrl, log);
    const pawl = await wire(config, targets, log);
    // Before the API: a caller's first payment finds its worker running.
    await pawl.startWorkers(parts.workers);
    if (parts.api) await pawl.watchOutcomes();
    const listening = await pawl.listen(parts.api);
    await parts.ready(pawl, listening);
    log.info({ signal: await parts.stopAsked }, "stopping");
    await stop(config, pawl, log);
  } finally {
    await stopAll(parts.afterwards);
  }
}

async function stop(config: Config, pawl: Pawl, log: Logger): Promise<void> {
  const grace = new AbortController();
  const late = pawl.deps.clock.sleep(config.shutdownGraceMs, grace.signal).then(() => "late" as const);
  const ended = await Promise.race([pawl.drain(config.shutdownGraceMs).then(() => "ended" as const), late]);
  grace.abort();
  if (ended === "late") {
    log.warn("the grace is over; what is left is taken over when its lease ends");
    process.exitCode = 1;
    return;
  }
  await pawl.close();
  log.info("stopped");
}

/**
 * Resolves at the first SIGTERM or SIGINT. The listeners stay: Ctrl-C under npm delivers SIGINT twice, and the second
 * must not end a stop that is under way.
 */
export function signalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    process.on("SIGINT", resolve);
  });
}

/** Stops each in order and once. What fails to stop is no reason to leave the others, nor to hide why we stop. */
export async function stopAll(afterwards: (() => Promise<void>)[]): Promise<void> {
  for (let end = afterwards.shift(); end !== undefined; end = afterwards.shift()) {
    await end().catch((error: unknown) => {
      process.stderr.write(`pawl: could not be stopped cleanly: ${(error as Error).name}\n`);
    });
  }
}
