import type { Clock } from "./clock.js";

export interface LookoutOptions<Name extends string> {
  /** How long each may go without being asked about, in milliseconds. */
  readonly intervalsMs: ReadonlyMap<Name, number>;
  readonly clock: Clock;
  /** One question about all of `names`; yields those for which there is something. */
  look(names: readonly Name[]): Promise<readonly Name[]>;
  onFound(name: Name): void;
  onError(error: unknown): void;
}

export interface Lookout {
  /** No further look begins; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/**
 * Asks about several at once, each by its own interval: who would be asked about within half the shortest one is asked
 * about along with those whose time has come. A look that fails is reported and followed by the intervals.
 */
export function startLookout<Name extends string>(options: LookoutOptions<Name>): Lookout {
  const { intervalsMs, clock } = options;
  const stopping = new AbortController();
  const alongMs = Math.min(...intervalsMs.values()) / 2;
  const nextMs = new Map<Name, number>();
  const put = (names: Iterable<Name>) => {
    for (const name of names) nextMs.set(name, clock.monotonicMs() + (intervalsMs.get(name) ?? 0));
  };
  const look = async (names: readonly Name[]) => {
    try {
      for (const name of await options.look(names)) options.onFound(name);
    } catch (error) {
      options.onError(error);
    }
  };
  const loop = async () => {
    put(intervalsMs.keys());
    while (nextMs.size > 0) {
      await clock.sleep(Math.max(0, Math.min(...nextMs.values()) - clock.monotonicMs()), stopping.signal);
      if (stopping.signal.aborted) return;
      const untilMs = clock.monotonicMs() + alongMs;
      const names = [...nextMs].filter(([, atMs]) => atMs <= untilMs).map(([name]) => name);
      if (names.length === 0) continue;
      await look(names);
      put(names);
    }
  };
  const ended = loop();
  return {
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
}
