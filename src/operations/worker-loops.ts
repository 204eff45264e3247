import type { WorkerName } from "../config.js";
import type { Coalescer } from "../lib/coalesce.js";
import type { Logger } from "../lib/log.js";
import type { PollLoop } from "../lib/poll-loop.js";
import type { Database } from "../store/db.js";
import { listen } from "../store/notify.js";
import type { DueSignal } from "./deps.js";
import { hintsOn } from "./hints.js";

/** The workers that run in this process, and how what is due finds one here or elsewhere. */
export class WorkerLoops implements DueSignal {
  readonly #loops = new Map<WorkerName, PollLoop>();
  readonly #attemptHints: Coalescer<string>;
  readonly #eventHints: Coalescer<string>;
  #hasRoom: () => boolean = () => false;

  constructor(
    private readonly db: Database,
    log: Logger,
  ) {
    this.#attemptHints = hintsOn("pawl_attempts", db, log);
    this.#eventHints = hintsOn("pawl_provider_events", db, log);
  }

  /** `hasRoom`: whether this process can take one more attempt. */
  async start(
    names: readonly WorkerName[],
    startLoop: (name: WorkerName) => PollLoop,
    hasRoom: () => boolean,
  ): Promise<void> {
    this.#hasRoom = hasRoom;
    for (const name of names) this.#loops.set(name, startLoop(name));
    if (names.includes("attempts")) await listen(this.db, "pawl_attempts", () => this.wake("attempts"));
    if (names.includes("provider-events")) {
      await listen(this.db, "pawl_provider_events", () => this.wake("provider-events"));
    }
  }

  wake(name: WorkerName): void {
    this.#loops.get(name)?.wake();
  }

  dueNow(): void {
    if (this.#loops.has("attempts") && this.#hasRoom()) this.wake("attempts");
    else this.#attemptHints.add("");
  }

  eventStored(): void {
    if (this.#loops.has("provider-events")) this.wake("provider-events");
    else this.#eventHints.add("");
  }

  dueIn(ms: number): void {
    this.#loops.get("attempts")?.wakeIn(ms);
  }

  /** No further round begins; resolves when those under way have ended. */
  async stop(): Promise<void> {
    this.#attemptHints.stop();
    this.#eventHints.stop();
    await Promise.all([...this.#loops.values()].map((loop) => loop.stop()));
  }
}
