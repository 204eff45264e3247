import type { StoredResponse } from "../domain/documents.js";
import type { Payment } from "../domain/payment.js";
import type { Refund } from "../domain/refund.js";
import type { Clock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import { type PollLoop, startPollLoop } from "../lib/poll-loop.js";
import { type Database, withDatabase } from "../store/db.js";
import { listen } from "../store/notify.js";
import { readSettled } from "../store/payments.js";

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

/** How often waiting callers are looked after when no notice comes: behind a pooler none does. */
const OUTCOME_POLL_MS = 250;

interface Watching {
  readonly db: Database;
  readonly outcomes: OutcomeHub;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Wakes callers that wait here for what another process does, until the loop is stopped. */
export async function watchOutcomes({ db, outcomes, clock, log }: Watching): Promise<PollLoop> {
  await listen(db, "pawl_outcomes", (ids) => {
    for (const id of ids) outcomes.wake(id, { type: "elsewhere" });
  });
  return startPollLoop({
    intervalMs: OUTCOME_POLL_MS,
    clock,
    run: async () => {
      const waited = outcomes.waitedFor();
      if (waited.length === 0) return false;
      const settled = await withDatabase(() => readSettled(db.sql, waited));
      for (const id of settled) outcomes.wake(id, { type: "elsewhere" });
      return false;
    },
    onError: (error) => log.warn({ err: error }, "outcomes could not be looked up"),
  });
}
