import type { StoredResponse } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";
import type { Refund } from "../domain/refund.js";

/** An outcome as the worker of this process wrote it, or `elsewhere`: another process did, so it must be read. */
export type Settled =
  | {
      readonly type: "here";
      readonly payment: Payment;
      readonly refund: Refund | null;
      readonly response: StoredResponse | null;
      readonly keyExpiresAt: Date | null;
    }
  | { readonly type: "elsewhere" };

interface Waiter {
  readonly tenantId: string;
  resolve(settled: Settled | null): void;
}

/** Callers that wait for the outcome of an attempt in this process. Holds no connection while they do. */
export class OutcomeHub {
  readonly #waiters = new Map<string, Set<Waiter>>();

  /** `tellOthers` hands an attempt that nobody waits for here to the other processes. */
  constructor(private readonly tellOthers: (attemptId: string) => void) {}

  /** The outcome, or null when `waitMs` passes or `signal` aborts first. Register before the work can end. */
  wait(tenantId: string, attemptId: string, waitMs: number, signal: AbortSignal): Promise<Settled | null> {
    if (waitMs <= 0 || signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(attemptId) ?? new Set();
      const done = (settled: Settled | null) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abandon);
        waiters.delete(waiter);
        if (waiters.size === 0) this.#waiters.delete(attemptId);
        resolve(settled);
      };
      const abandon = () => done(null);
      const waiter: Waiter = { tenantId, resolve: done };
      const timer = setTimeout(abandon, waitMs);
      signal.addEventListener("abort", abandon, { once: true });
      waiters.add(waiter);
      this.#waiters.set(attemptId, waiters);
    });
  }

  /** The worker of this process wrote an outcome. */
  settle(attemptId: string, settled: Settled): void {
    if (!this.wake(attemptId, settled)) this.tellOthers(attemptId);
  }

  /** Wakes who waits for this attempt here; false: nobody does. */
  wake(attemptId: string, settled: Settled): boolean {
    const waiters = this.#waiters.get(attemptId);
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
  waitedFor(): { readonly tenantId: string; readonly attemptId: string }[] {
    return [...this.#waiters].flatMap(([attemptId, waiters]) => {
      const [first] = waiters;
      return first === undefined ? [] : [{ tenantId: first.tenantId, attemptId }];
    });
  }
}
