export interface MicroBatchOptions<Item, Result> {
  /** One round trip for many items; results in the order of the items. */
  run(items: readonly Item[]): Promise<readonly Result[]>;
  readonly mostItems: number;
  readonly mostInFlight: number;
  /** More than this waiting: an item is refused at once with `refusal`. */
  readonly mostWaiting: number;
  refusal(): Error;
  /** Items that share a name never stand in one batch. */
  namesOf(item: Item): readonly string[];
  /** Whether a batch that failed so may be run again item by item: only where the failure left no effect. */
  runsAlone(error: unknown): boolean;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly names: readonly string[];
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Items that wait while a round trip is under way share the next one. An item alone goes out at once: nothing is ever
 * delayed to fill a batch. One bad item fails alone.
 */
export class MicroBatch<Item, Result> {
  readonly #options: MicroBatchOptions<Item, Result>;
  #queue: Waiting<Item, Result>[] = [];
  #inFlight = 0;
  #scheduled = false;

  constructor(options: MicroBatchOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    if (this.#queue.length >= this.#options.mostWaiting) return Promise.reject(this.#options.refusal());
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, names: this.#options.namesOf(item), resolve, reject });
      this.#schedule();
    });
  }

  /** Items that arrive in one turn of the event loop share a batch. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= this.#options.mostInFlight) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#queue.length > 0 && this.#inFlight < this.#options.mostInFlight)
        void this.#send(this.#take());
    });
  }

  #take(): Waiting<Item, Result>[] {
    const names = new Set<string>();
    const batch: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    for (const waiting of this.#queue) {
      const fits = batch.length < this.#options.mostItems && !waiting.names.some((name) => names.has(name));
      if (fits) for (const name of waiting.names) names.add(name);
      (fits ? batch : left).push(waiting);
    }
    this.#queue = left;
    return batch;
  }

  async #send(batch: Waiting<Item, Result>[]): Promise<void> {
    this.#inFlight += 1;
    try {
      await this.#run(batch);
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }

  async #run(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.run(batch.map((waiting) => waiting.item));
      if (results.length !== batch.length) {
        throw new Error(`${batch.length} items came back as ${results.length} results`);
      }
      batch.forEach((waiting, at) => waiting.resolve(results[at] as Result));
    } catch (error) {
      if (batch.length > 1 && this.#options.runsAlone(error)) {
        for (const waiting of batch) await this.#run([waiting]);
      } else {
        for (const waiting of batch) waiting.reject(error);
      }
    }
  }
}
