import { Random } from "../simulation/random.js";
import { until } from "../support/until.js";
import { Caller, faultOfReplay, Seen } from "./caller.js";
import { tellStory } from "./stories.js";

/** Between two stories of one caller: load that is steady and leaves the machine some breath. */
const LEAST_PAUSE_MS = 20;
const MOST_PAUSE_MS = 300;
const PROGRESS_MS = 90_000;
const REPLAYED_AT_ONCE = 12;

export interface LoadOptions {
  readonly seed: number;
  readonly callers: number;
  readonly secret: string;
  /** Where the APIs are. */
  readonly urls: () => readonly string[];
}

/** Callers that live one merchant's story after the other until they are told to end. */
export class Load {
  readonly seen = new Seen();
  readonly #callers: Caller[];
  readonly #living: Promise<unknown>;
  #isEnding = false;

  constructor({ seed, callers, secret, urls }: LoadOptions) {
    this.#callers = Array.from(
      { length: callers },
      (_, at) => new Caller(urls, secret, new Random(seed, `caller ${at}`), this.seen),
    );
    this.#living = Promise.all(this.#callers.map((caller) => this.#live(caller)));
  }

  /** Resolves when so many more requests have their final answer: the system works again. */
  async progress(count: number): Promise<void> {
    const goal = this.seen.answered + count;
    await until(
      `${count} more answers`,
      () => this.seen.answered,
      (answered) => answered >= goal,
      PROGRESS_MS,
    );
  }

  /** No new stories; resolves when those that were begun have ended, or after the time, when their callers give up. */
  async finish(patienceMs: number): Promise<void> {
    this.#isEnding = true;
    const late = setTimeout(() => {
      for (const caller of this.#callers) caller.giveUp();
    }, patienceMs);
    await this.#living;
    clearTimeout(late);
  }

  /** Each key once more: what is wrong with its answer. */
  async replayAll(): Promise<string[]> {
    const waiting = [...this.seen.asked];
    const faults: string[] = [];
    const [caller] = this.#callers;
    if (caller === undefined) throw new Error("no caller");
    const replay = async () => {
      for (let asked = waiting.pop(); asked !== undefined; asked = waiting.pop()) {
        const fault = await faultOfReplay(caller, asked);
        if (fault !== null) faults.push(fault);
      }
    };
    await Promise.all(Array.from({ length: REPLAYED_AT_ONCE }, replay));
    return faults;
  }

  async #live(caller: Caller): Promise<void> {
    while (!this.#isEnding) {
      await tellStory(caller);
      await caller.pause(LEAST_PAUSE_MS, MOST_PAUSE_MS);
    }
  }
}
