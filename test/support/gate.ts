import type { Probe } from "../../src/operations/deps.js";

/** Stops a process at a named point, every time it comes there, until the test opens it. */
export class Gate {
  readonly #point: string;
  #arrivals = 0;
  #skip: number;
  #open = false;
  readonly #stopped: (() => void)[] = [];
  readonly #watchers = new Set<() => void>();

  /** `skip`: so many arrivals go by first. */
  constructor(point: string, skip = 0) {
    this.#point = point;
    this.#skip = skip;
  }

  /** How often the point was reached, whether it stopped there or not. */
  get arrivals(): number {
    return this.#arrivals;
  }

  readonly probe: Probe = async (name) => {
    if (name !== this.#point) return;
    this.#arrivals += 1;
    const passes = this.#open || this.#skip > 0;
    this.#skip -= 1;
    if (passes) return;
    await new Promise<void>((resolve) => {
      this.#stopped.push(resolve);
      for (const watcher of this.#watchers) watcher();
    });
  };

  /** Resolves when somebody stands here. Bounded by the test's own time limit. */
  async reached(): Promise<void> {
    if (this.#stopped.length > 0) return;
    await new Promise<void>((resolve) => {
      const watcher = () => {
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
    });
  }

  /** Lets everybody go on, now and from now on. */
  open(): void {
    this.#open = true;
    for (const goOn of this.#stopped.splice(0)) goOn();
  }
}
