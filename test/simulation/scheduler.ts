import type { Story } from "./story.js";

/** Somebody whose steps end with it: a process. A frozen one goes on later, as after SIGSTOP or a pause of its machine. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  readonly frozenUntilMs: number;
}

interface Planned {
  atMs: number;
  readonly order: number;
  readonly label: string | null;
  readonly owner: Owner | null;
  readonly run: () => void | Promise<void>;
}

/** Turns of the event loop without anything new after which nobody can be on the move: batches wait for one of them. */
const QUIET_TURNS = 3;

/**
 * Simulated time and everything that happens in it, one step at a time: whoever waits (for the database, the network, a
 * timer) waits for a planned step, and the next step is taken only when all that the last one set in motion waits again.
 * So the order of events is the seed's alone.
 */
export class Scheduler {
  /** Milliseconds since the simulation began. */
  nowMs = 0;
  /** Whose step is being taken. A step that calls into a process says so. */
  actingFor: Owner | null = null;
  readonly #story: Story;
  readonly #heap: Planned[] = [];
  #order = 0;

  constructor(story: Story) {
    this.#story = story;
  }

  /** `label` null: not worth a line of the story. The step is left out where its owner has died by then. */
  plan(
    delayMs: number,
    label: string | null,
    run: () => void | Promise<void>,
    owner: Owner | null = null,
  ): void {
    this.#order += 1;
    this.#push({ atMs: this.nowMs + delayMs, order: this.#order, label, owner, run });
  }

  /** Resolves after the delay; never for an owner that dies before. */
  pause(delayMs: number, label: string | null, owner: Owner | null = null): Promise<void> {
    return new Promise((resolve) => {
      this.plan(delayMs, label, resolve, owner);
    });
  }

  tell(line: string): void {
    this.#story.tell(this.nowMs, line);
  }

  /** When the next step is; null: nothing is planned. */
  nextAtMs(): number | null {
    return this.#heap[0]?.atMs ?? null;
  }

  /** Takes the next step and waits until everything stands still. False: nothing is planned. */
  async step(): Promise<boolean> {
    const next = this.#pop();
    if (next === null) return false;
    this.nowMs = Math.max(this.nowMs, next.atMs);
    const { owner } = next;
    if (owner?.alive === false) return true;
    if (owner !== null && owner.frozenUntilMs > this.nowMs) {
      next.atMs = owner.frozenUntilMs;
      this.#push(next);
      return true;
    }
    if (next.label !== null) this.tell(owner === null ? next.label : `${owner.name} ${next.label}`);
    this.actingFor = owner;
    await next.run();
    await this.quiet();
    this.actingFor = null;
    return true;
  }

  async quiet(): Promise<void> {
    for (let turns = 0, seen = this.#order; turns < QUIET_TURNS; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen !== this.#order) turns = -1;
      seen = this.#order;
    }
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.push(planned) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at], heap[parent])) break;
      swap(heap, at, parent);
      at = parent;
    }
  }

  #pop(): Planned | null {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined) return null;
    if (heap.length === 0) return first;
    heap[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const child = isBefore(heap[left + 1], heap[left]) ? left + 1 : left;
      if (!isBefore(heap[child], heap[at])) return first;
      swap(heap, at, child);
      at = child;
    }
  }
}

function isBefore(one: Planned | undefined, other: Planned | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

function swap(heap: Planned[], one: number, other: number): void {
  const [a, b] = [heap[one], heap[other]];
  if (a === undefined || b === undefined) throw new Error("outside the heap");
  heap[one] = b;
  heap[other] = a;
}
