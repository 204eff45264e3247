import type { StoredResponse } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";

/** An outcome as the worker of this process wrote it, or `elsewhere`: another process did, so it must be read. */
export type Settled =
  | {
      readonly type: "here";
      readonly payment: Payment;
      readonly response: StoredResponse | null;
      readonly keyExpiresAt: Date | null;
    }
  | { readonly type: "elsewhere" };

interface Waiter {
  readonly tenantId: string;
  resolve(settled: Settled | null): void;
}

/** Callers that wait for the outcome of a payment in this process. Holds no connection while they do. */
export class OutcomeHub {
  readonly #waiters = new Map<string, Set<Waiter>>();

  /** `tellOthers` hands a payment that nobody waits for here to the other processes. */
  constructor(private readonly tellOthers: (paymentId: string) => void) {}

  /** The outcome, or null when `waitMs` passes or `signal` aborts first. Register before the work can end. */
  wait(tenantId: string, paymentId: string, waitMs: number, signal: AbortSignal): Promise<Settled | null> {
    if (waitMs <= 0 || signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(paymentId) ?? new Set();
      const done = (settled: Settled | null) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abandon);
        waiters.delete(waiter);
        if (waiters.size === 0) this.#waiters.delete(paymentId);
        resolve(settled);
      };
      const abandon = () => done(null);
      const waiter: Waiter = { tenantId, resolve: done };
      const timer = setTimeout(abandon, waitMs);
      signal.addEventListener("abort", abandon, { once: true });
      waiters.add(waiter);
      this.#waiters.set(paymentId, waiters);
    });
  }

  /** The worker of this process wrote an outcome. */
  settle(paymentId: string, settled: Settled): void {
    if (!this.wake(paymentId, settled)) this.tellOthers(paymentId);
  }

  /** Wakes who waits for this payment here; false: nobody does. */
  wake(paymentId: string, settled: Settled): boolean {
    const waiters = this.#waiters.get(paymentId);
    if (waiters === undefined) return false;
    for (const waiter of [...waiters]) waiter.resolve(settled);
    return true;
  }

  /** Ends all waiting here: the process stops, the work goes on elsewhere. */
  releaseAll(): void {
    for (const waiters of [...this.#waiters.values()])
      for (const waiter of [...waiters]) waiter.resolve(null);
  }

  /** What is waited for, so that polling can find what no notice told. */
  waitedFor(): { readonly tenantId: string; readonly paymentId: string }[] {
    return [...this.#waiters].flatMap(([paymentId, waiters]) => {
      const [first] = waiters;
      return first === undefined ? [] : [{ tenantId: first.tenantId, paymentId }];
    });
  }
}
