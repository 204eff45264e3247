/** What happens by itself after a time, in an account and mode, to the object with this id. */
export interface DueStep {
  readonly kind:
    | "authorization_expires"
    | "refund_succeeds"
    | "refund_fails"
    | "dispute_opens"
    | "charge_booked";
  readonly realm: string;
  readonly id: string;
}

interface Entry {
  readonly step: DueStep;
  readonly dueMs: number;
}

/** Steps in the order of their time on the sandbox's clock. To look whether one is due costs nothing. */
export class Agenda {
  readonly #entries: Entry[] = [];

  /** Milliseconds since 1970; null: nothing is to come. */
  get nextMs(): number | null {
    return this.#entries[0]?.dueMs ?? null;
  }

  add(step: DueStep, dueMs: number): void {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).dueMs <= dueMs) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, { step, dueMs });
  }

  /** Takes out what is due at this time, earliest first. */
  take(nowMs: number): DueStep[] {
    let due = 0;
    while (due < this.#entries.length && (this.#entries[due] as Entry).dueMs <= nowMs) due += 1;
    return this.#entries.splice(0, due).map((entry) => entry.step);
  }

  clear(): void {
    this.#entries.length = 0;
  }
}
