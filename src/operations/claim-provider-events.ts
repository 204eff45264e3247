import { withDatabase } from "../store/db.js";
import { claimProviderEvents } from "../store/provider-events.js";
import { applyProviderEvent } from "./apply-provider-event.js";
import type { Deps } from "./deps.js";

/** Under way at once in a process: enough that some slow answers of the provider hold up no other event. */
const MOST_AT_ONCE = 32;

/** The stored events that this process is applying right now. */
export class ProviderEventPool {
  readonly #running = new Set<Promise<void>>();
  /** The last claim was cut short by the room there was: what it left is looked for as soon as there is room again. */
  #cutShort = false;

  constructor(
    private readonly deps: Deps,
    private readonly onFree: () => void,
  ) {}

  /** Claims as many due events as there is room for and starts on them; does not wait. True: there may be more. */
  async claim(): Promise<boolean> {
    const { deps } = this;
    const room = MOST_AT_ONCE - this.#running.size;
    this.#cutShort = room <= 0;
    if (room <= 0) return false;
    const claimed = await withDatabase(() =>
      claimProviderEvents(deps.db.sql, {
        provider: deps.provider.name,
        limit: room,
        leaseMs: deps.settings.attemptLeaseMs,
      }),
    );
    for (const event of claimed) {
      const run = applyProviderEvent(deps, event)
        .catch((error: unknown) => {
          // Nothing of it is committed, and its lease ends by itself.
          deps.log.error({ err: error, event: event.eventId }, "provider event left to its lease");
        })
        .finally(() => {
          this.#running.delete(run);
          if (this.#cutShort) this.onFree();
        });
      this.#running.add(run);
    }
    return claimed.length === room;
  }

  /** Resolves when every event under way has come to an end. */
  async drain(): Promise<void> {
    await Promise.all(this.#running);
  }
}
