interface Dated {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

/** Seconds since 1970, both ends included; null is open. */
interface Window {
  readonly from: number | null;
  readonly to: number | null;
}

/** What a page is cut out of, oldest first. */
export interface Ordered<T> {
  readonly size: number;
  /** Counted from the oldest. */
  at(place: number): T | undefined;
  /** -1: there is no such object. */
  placeOf(id: string): number;
  /** Where the objects of the window stand, from the first place up to and without the second; others may be among them. */
  placesIn(window: Window): [number, number];
}

/** Objects of one kind in one realm, by id and in the order of `created`; within one second by arrival. */
export class ObjectTable<T extends Dated> implements Ordered<T> {
  readonly #objects = new Map<string, T>();
  readonly #order: string[] = [];

  get size(): number {
    return this.#order.length;
  }

  get(id: string): T | undefined {
    return this.#objects.get(id);
  }

  at(place: number): T | undefined {
    const id = this.#order[place];
    return id === undefined ? undefined : this.#objects.get(id);
  }

  /** Adds the object, or puts it in the place of the one with its id. */
  save(object: T): void {
    const isNew = !this.#objects.has(object.id);
    this.#objects.set(object.id, object);
    if (!isNew) return;
    let at = this.#order.length;
    // Only a clock that was set back makes this step at all.
    while (at > 0 && this.#createdAt(at - 1) > object.created) at -= 1;
    if (at === this.#order.length) this.#order.push(object.id);
    else this.#order.splice(at, 0, object.id);
  }

  oldestFirst(): T[] {
    return this.#order.map((id) => this.#objects.get(id)).filter((object) => object !== undefined);
  }

  /** The ids of one second lie together: at most those are looked through. */
  placeOf(id: string): number {
    const object = this.#objects.get(id);
    if (object === undefined) return -1;
    let place = this.#countUntil(object.created) - 1;
    while (place >= 0 && this.#order[place] !== id) place -= 1;
    return place;
  }

  placesIn({ from, to }: Window): [number, number] {
    return [from === null ? 0 : this.#countUntil(from - 1), to === null ? this.size : this.#countUntil(to)];
  }

  /** How many objects were created in that second or before. */
  #countUntil(second: number): number {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#createdAt(middle) <= second) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #createdAt(place: number): number {
    return this.at(place)?.created ?? 0;
  }
}
