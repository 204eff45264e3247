import { type Clock, systemClock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import type { Server, StopMode } from "./server.js";

/** A server that cannot live is not started for ever: after these tries in a row the log says so and it stays down. */
const MAX_RESTARTS = 8;
const FIRST_DELAY_MS = 100;
/** A server that lived this long has earned a fresh count. */
const STEADY_MS = 60_000;

/** A file that cannot be opened, for one: the disk may be full, or somebody has deleted the folder. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Restarts the server, on its port, whenever it ends unasked. Returns how to end both, which may be called again. */
export function supervise(
  first: Server,
  restart: () => Promise<Server | string>,
  log: Logger,
  clock: Clock = systemClock,
): (mode: StopMode) => Promise<void> {
  const stopping = new AbortController();
  let current: Server | null = first;

  /** Whether the stop was asked for while this server was starting, which nobody else would then stop. */
  async function isStopped(started: Server): Promise<boolean> {
    if (!stopping.signal.aborted) return false;
    await started.stop("fast");
    return true;
  }

  /** Tries until one lives, the tries are used up, or the stop is wanted: then null. */
  async function replace(triesUsed: number): Promise<{ server: Server; tries: number } | null> {
    for (let tries = triesUsed + 1; tries <= MAX_RESTARTS; tries += 1) {
      await clock.sleep(FIRST_DELAY_MS * 2 ** (tries - 1), stopping.signal);
      if (stopping.signal.aborted) return null;
      const started = await restart().catch(reasonOf);
      if (typeof started !== "string") {
        if (await isStopped(started)) return null;
        log.warn({ pid: started.pid, tries }, "embedded PostgreSQL restarted");
        return { server: started, tries };
      }
      log.error({ reason: started, tries }, "embedded PostgreSQL did not restart");
    }
    log.error(
      { tries: MAX_RESTARTS },
      "embedded PostgreSQL stays down; restart Pawl when its cause is mended",
    );
    return null;
  }

  async function watch(): Promise<void> {
    let tries = 0;
    while (current !== null) {
      const sinceMs = clock.monotonicMs();
      const reason = await current.exited;
      current = null;
      if (stopping.signal.aborted) return;
      log.error({ reason }, "embedded PostgreSQL ended by itself");
      if (clock.monotonicMs() - sinceMs > STEADY_MS) tries = 0;
      const next = await replace(tries);
      tries = next?.tries ?? tries;
      current = next?.server ?? null;
    }
  }

  const watching = watch();
  return async (mode) => {
    stopping.abort();
    await current?.stop(mode);
    await watching;
  };
}
