interface Dated {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

/** Objects of one kind in one realm, by id and in the order of `created`; within one second by arrival. */
export class ObjectTable<T extends Dated> {
  readonly #objects = new Map<string, T>();
  readonly #order: string[] = [];

  get(id: string): T | undefined {
    return this.#objects.get(id);
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

  #createdAt(at: number): number {
    const id = this.#order[at];
    return (id === undefined ? undefined : this.#objects.get(id))?.created ?? 0;
  }
}
