/**
 * The sandbox's own time: the machine's clock plus an offset that can be moved. `created` of every object and the
 * age of idempotency keys follow it; delays on the wire (latency, hang, drip) are real time.
 */
export class SandboxClock {
  #offsetMs: number;

  constructor(offsetMs = 0) {
    this.#offsetMs = offsetMs;
  }

  get offsetMs(): number {
    return this.#offsetMs;
  }

  set offsetMs(value: number) {
    this.#offsetMs = value;
  }

  /** Milliseconds since 1970. */
  nowMs(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Whole seconds since 1970, the unit of Stripe's times. */
  nowSeconds(): number {
    return Math.floor(this.nowMs() / 1000);
  }

  advance(byMs: number): void {
    this.#offsetMs += byMs;
  }

  /** Sets the present moment; it goes on from there. */
  set(nowMs: number): void {
    this.#offsetMs = nowMs - Date.now();
  }
}
