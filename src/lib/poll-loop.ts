import { once } from "node:events";
import type { Clock } from "./clock.js";

export interface PollLoopOptions {
  /** Null: no round comes by itself, only when woken. */
  readonly intervalMs: number | null;
  readonly clock: Clock;
  /** One round; `true`: there may be more work at once. */
  run(): Promise<boolean>;
  onError(error: unknown): void;
}

export interface PollLoop {
  /** Run now, or once more if a round is under way. */
  wake(): void;
  /** Run once more after `ms`, if no round comes before. */
  wakeIn(ms: number): void;
  /** No further round begins; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/**
 * Rounds one after another: at once when woken or when the last one said so, else after `intervalMs`. A round that
 * fails is reported and followed by the interval, so a failing loop cannot spin. The first round comes at the start.
 */
export function startPollLoop(options: PollLoopOptions): PollLoop {
  const stopping = new AbortController();
  const timers = new Set<NodeJS.Timeout>();
  let woken = false;
  let nap: AbortController | null = null;

  const wake = () => {
    woken = true;
    nap?.abort();
  };
  const round = async (): Promise<boolean> => {
    try {
      return await options.run();
    } catch (error) {
      options.onError(error);
      return false;
    }
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      woken = false;
      const again = await round();
      if (again || woken || stopping.signal.aborted) continue;
      nap = new AbortController();
      if (options.intervalMs === null) await once(nap.signal, "abort");
      else await options.clock.sleep(options.intervalMs, nap.signal);
      nap = null;
    }
  };
  const ended = loop();

  return {
    wake,
    wakeIn: (ms) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        wake();
      }, ms);
      timer.unref();
      timers.add(timer);
    },
    stop: async () => {
      stopping.abort();
      for (const timer of timers) clearTimeout(timer);
      nap?.abort();
      await ended;
    },
  };
}
