import type { AccountView } from "../domain/charge-steps.js";
import { claimAttempts } from "../store/attempts.js";
import { withDatabase } from "../store/db.js";
import type { Deps } from "./deps.js";
import { runAttempt } from "./run-attempt.js";

/** A claim takes no more than this, so that processes share what is due. */
const MOST_CLAIMED = 64;

const ACCOUNT_PATIENCE_MS = 500;

/** The attempts that this process is driving right now. */
export class AttemptPool {
  readonly #running = new Set<Promise<void>>();
  /** The last claim was cut short by the room there was: what it left is looked for as soon as there is room again. */
  #cutShort = false;

  constructor(
    private readonly deps: Deps,
    private readonly onFree: () => void,
  ) {}

  hasRoom(): boolean {
    return this.#running.size < this.deps.settings.workerConcurrency;
  }

  /**
   * Claims as many due attempts as there is room for and starts them; does not wait for their ends. True: there may
   * be more. `left`: only what a worker left behind with a lease that has ended.
   */
  async claim(which: "due" | "left"): Promise<boolean> {
    const { deps } = this;
    const room = Math.min(deps.settings.workerConcurrency - this.#running.size, MOST_CLAIMED);
    this.#cutShort = room <= 0;
    if (room <= 0) return false;
    const account = await this.#account();
    const claimedAtMs = deps.clock.monotonicMs();
    const claimed = await withDatabase(() =>
      claimAttempts(deps.db.sql, {
        owner: deps.workerName,
        limit: room,
        leaseMs: deps.settings.attemptLeaseMs,
        retryBudgetMs: deps.settings.retryBudgetMs,
        account: account.type === "known" ? account.accountId : null,
        livemode: deps.provider.livemode,
        tells: deps.recovery.tells,
        which,
      }),
    );
    for (const one of claimed) {
      const run = runAttempt(deps, one, claimedAtMs)
        .catch((error: unknown) => {
          // The row keeps what was about to happen; when the lease ends it is asked about.
          deps.log.error({ err: error, attempt: one.attempt.id }, "attempt left to its lease");
        })
        .finally(() => {
          this.#running.delete(run);
          if (this.#cutShort) this.onFree();
        });
      this.#running.add(run);
    }
    return claimed.length === room;
  }

  /** Without an account nothing is sent; a provider that hangs must not keep budgets from ending, so no long wait. */
  async #account(): Promise<AccountView> {
    const { account, clock } = this.deps;
    if (account.current().type === "known") return account.current();
    const patience = new AbortController();
    await Promise.race([account.resolve(), clock.sleep(ACCOUNT_PATIENCE_MS, patience.signal)]);
    patience.abort();
    return account.current();
  }

  /** Resolves when every attempt under way has ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#running);
  }
}
