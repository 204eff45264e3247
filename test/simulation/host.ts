import type { Random } from "./random.js";
import type { Owner, Scheduler } from "./scheduler.js";

/** When every simulation begins. */
export const EPOCH_MS = Date.UTC(2031, 0, 1);

/**
 * What the product takes from its host without asking for it: chance, the time that ids tell, and timers. While a simulation runs they are the
 * seed's and the simulation's, save inside `really`, where the database's client is at work.
 */
const real = {
  random: Math.random,
  now: Date.now,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
};

let simulated: typeof real | null = null;

/** Runs a whole simulation. One at a time. */
export async function simulatingHost<T>(
  scheduler: Scheduler,
  random: Random,
  work: () => Promise<T>,
): Promise<T> {
  simulated = {
    random: () => random.next(),
    now: () => EPOCH_MS + Math.floor(scheduler.nowMs),
    setTimeout: ((callback: () => void, ms = 0) => {
      const timer = new SimulatedTimer(scheduler.actingFor);
      scheduler.plan(
        ms,
        null,
        () => {
          if (!timer.isCleared) callback();
        },
        timer.owner,
      );
      return timer;
    }) as unknown as typeof setTimeout,
    clearTimeout: (timer: unknown) => {
      if (timer instanceof SimulatedTimer) timer.isCleared = true;
      else real.clearTimeout(timer as NodeJS.Timeout);
    },
  };
  try {
    use(simulated);
    return await work();
  } finally {
    simulated = null;
    use(real);
  }
}

/** Runs what is no part of the simulation, on the machine's own clock. */
export async function really<T>(work: () => Promise<T>): Promise<T> {
  use(real);
  try {
    return await work();
  } finally {
    if (simulated !== null) use(simulated);
  }
}

function use(host: typeof real): void {
  Math.random = host.random;
  Date.now = host.now;
  globalThis.setTimeout = host.setTimeout;
  globalThis.clearTimeout = host.clearTimeout;
}

class SimulatedTimer {
  isCleared = false;
  readonly owner: Owner | null;

  constructor(owner: Owner | null) {
    this.owner = owner;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
