/**
 * Gathers values and hands them on together: the first at once, those that follow within `intervalMs` as one more
 * call. `send` failing loses only a hint, so its errors go to `onError`.
 */
export class Coalescer<Value> {
  readonly #values = new Set<Value>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly intervalMs: number,
    private readonly send: (values: readonly Value[]) => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  add(value: Value): void {
    this.#values.add(value);
    if (this.#timer === null) this.#flush();
  }

  #flush(): void {
    const values = [...this.#values];
    this.#values.clear();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#values.size > 0) this.#flush();
    }, this.intervalMs);
    this.#timer.unref();
    this.send(values).catch(this.onError);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
