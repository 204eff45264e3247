/** A value that stands for all values equal to it: the same value always has the same id, and ids are small. */
export interface Ref<T> {
  readonly id: number;
  readonly value: T;
  /** A value that holds refs is written with their ids. */
  toJSON(): number;
}

/** Makes the refs of one kind of value. `textOf` tells values apart; without it they must be data, and JSON does. */
export class Refs<T> {
  readonly #byText = new Map<string, Ref<T>>();

  constructor(private readonly textOf: (value: T) => string = JSON.stringify) {}

  of(value: T): Ref<T> {
    const text = this.textOf(value);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const id = this.#byText.size;
    const ref: Ref<T> = { id, value, toJSON: () => id };
    this.#byText.set(text, ref);
    return ref;
  }
}

/** Asked for a result that an asynchronous function of the shipped code still has to give: wait, then ask again. */
export class NotYet extends Error {
  constructor(readonly ready: Promise<void>) {
    super("wait for `ready`, then ask again");
  }
}

/** Remembers what `compute` said for a key. `compute` is pure: the key holds all that it depends on. */
export class Memo<Result> {
  readonly #known = new Map<string | number, Result>();

  get(key: string | number, compute: () => Result): Result {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const result = compute();
    this.#known.set(key, result);
    return result;
  }

  /** As `get`, for a function that answers later. Throws NotYet until it has. */
  later(key: string | number, compute: () => Promise<Result>): Result {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    throw new NotYet(compute().then((result) => void this.#known.set(key, result)));
  }
}

/** Two ids as one key: exact, since no table comes near 2^26 values. */
export function pair(one: number, other: number): number {
  return one * 0x4000000 + other;
}
