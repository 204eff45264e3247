import { withDatabase } from "../store/db.js";
import { claimDeliveries } from "../store/deliveries.js";
import { type DeliveryDeps, deliverEvent } from "./deliver-event.js";

/** From the end of a try's deadline to the end of its lease: time for its outcome to be written. */
const LEASE_MARGIN_MS = 5_000;

/** Ends within this time share the claim that follows them: one for each would cost more than the tries themselves. */
const ENDS_GATHERED_MS = 10;

/**
 * How many more an endpoint may take that has `underWay`, of `free` places: so many that it then has a third of what is
 * still free. One alone gets a quarter of all, and however many come, there is room left for the next; who has none may
 * take one.
 */
export function roomFor(free: number, underWay: number): number {
  const room = Math.floor((free - 3 * underWay) / 4);
  return underWay === 0 ? Math.max(1, room) : Math.max(0, room);
}

/** The deliveries that this process has under way. Its places are shared so that slow receivers never take the last one. */
export class DeliveryPool {
  readonly #running = new Set<Promise<void>>();
  readonly #underWay = new Map<string, number>();
  #waking: NodeJS.Timeout | null = null;

  constructor(
    private readonly deps: DeliveryDeps,
    /** Called when there is something to claim, or a place for it. */
    readonly wake: () => void,
  ) {}

  /** Claims due deliveries and starts them; does not wait for their ends. True: there may be more. */
  async claim(): Promise<boolean> {
    const { deps } = this;
    const free = deps.settings.webhookConcurrency - this.#running.size;
    if (free <= 0) return false;
    // No round takes all places, since what it takes is not counted before the next one.
    const limit = Math.ceil(free / 2);
    const claimed = await withDatabase(() =>
      claimDeliveries(deps.db.sql, {
        limit,
        room: roomFor(free, 0),
        roomAt: new Map([...this.#underWay].map(([id, count]) => [id, roomFor(free, count)])),
        leaseMs: deps.settings.webhookTimeoutMs + LEASE_MARGIN_MS,
        toBroker: deps.broker !== null,
      }),
    );
    for (const delivery of claimed) this.#start(delivery.endpointId, deliverEvent(deps, delivery));
    return claimed.length === limit;
  }

  #start(endpointId: string, delivering: Promise<void>): void {
    this.#underWay.set(endpointId, (this.#underWay.get(endpointId) ?? 0) + 1);
    const run = delivering
      .catch((error: unknown) => {
        this.deps.log.error({ err: error, endpoint: endpointId }, "delivery left to its lease");
      })
      .finally(() => {
        this.#running.delete(run);
        const left = (this.#underWay.get(endpointId) ?? 1) - 1;
        if (left > 0) this.#underWay.set(endpointId, left);
        else this.#underWay.delete(endpointId);
        this.#wakeSoon();
      });
    this.#running.add(run);
  }

  #wakeSoon(): void {
    this.#waking ??= setTimeout(() => {
      this.#waking = null;
      this.wake();
    }, ENDS_GATHERED_MS);
  }

  /** Resolves when every delivery under way has come to an end. */
  async drain(): Promise<void> {
    await Promise.all(this.#running);
  }
}
