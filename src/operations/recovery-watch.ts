import { PawlError } from "../domain/errors.js";
import type { Clock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import { type PollLoop, startPollLoop } from "../lib/poll-loop.js";
import { type Database, withDatabase } from "../store/db.js";
import { TELLS_NO_MORE, type Tells } from "../store/in-place.js";
import {
  beginRecovery,
  type DataIdentity,
  MARK_PARTS,
  markOpenAttempts,
  readClusterIdentifier,
  readRecovery,
  readTimeline,
  recordIdentity,
} from "../store/recovery.js";

export interface RecoveryView {
  readonly since: Date;
  readonly reason: string;
}

const RETRY_AFTER_SECONDS = 30;

/** Why data stands in another place than it was recorded in; the first two are the work of a person. */
const CLUSTER_CHANGED = "cluster_changed";
const DATABASE_RESTORED = "database_restored";
/** A standby was promoted, or a backup was recovered in place. */
export const TIMELINE_CHANGED = "timeline_changed";

/**
 * Notices that the database is another one than it was (a restored backup, a promoted standby), where rows may be older
 * than what was sent, and tells every process of it by the installation's row. What it says is as old as the last check.
 */
export class RecoveryWatch {
  #view: RecoveryView | null = null;
  #warned = false;
  #tells: Tells = TELLS_NO_MORE;

  constructor(
    private readonly db: Database,
    private readonly log: Logger,
  ) {}

  /** With a first look, which must come before anything is claimed or accepted. */
  static async open(db: Database, log: Logger): Promise<RecoveryWatch> {
    const watch = new RecoveryWatch(db, log);
    await watch.check();
    return watch;
  }

  /** Goes on looking until it is stopped. */
  watch(clock: Clock, intervalMs: number): PollLoop {
    return startPollLoop({
      intervalMs,
      clock,
      run: async () => {
        await this.check();
        return false;
      },
      onError: (error) => this.log.warn({ err: error }, "the database's identity could not be looked up"),
    });
  }

  /** Null: everything as usual. */
  current(): RecoveryView | null {
    return this.#view;
  }

  /** What a statement may ask of where the data is. */
  get tells(): Tells {
    return this.#tells;
  }

  isRecovering(): boolean {
    return this.#view !== null;
  }

  /** Throws service_unavailable while the database recovers: nothing new is accepted. */
  refuseWhileRecovering(): void {
    if (this.#view === null) return;
    throw new PawlError(
      "service_unavailable",
      "The database was restored, and what the provider knows is being taken in; the same key is safe to send again.",
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }

  /** Looks at the database's identity and at what the installation's row says. Throws where the database is away. */
  async check(): Promise<void> {
    const { sql } = this.db;
    const control = {
      cluster: await this.#told(() => readClusterIdentifier(sql)),
      timeline: await this.#told(() => readTimeline(sql)),
    };
    this.#tells = { cluster: control.cluster !== null, timeline: control.timeline !== null };
    const reading = await withDatabase(() => readRecovery(sql, control));
    const { recorded, present } = reading;
    const change = recorded === null ? null : changeOf(recorded, present);
    if (change !== null) {
      this.log.error({ change, recorded, present }, "the database is another one: only asking from now on");
      await this.begin(change, present);
      return;
    }
    if (recorded === null || hasMore(recorded, present)) {
      await withDatabase(() => recordIdentity(sql, present));
    }
    this.#see(reading.recoveringSince, reading.reason);
  }

  /**
   * Every open attempt is unknown until it has been asked about, and nothing is sent until then. Marked first: a process
   * that dies in between finds the change again, since the identity is recorded last.
   */
  async begin(reason: string, identity: DataIdentity | null): Promise<void> {
    const { sql } = this.db;
    for (let part = 0; part < MARK_PARTS; part += 1) {
      await withDatabase(() => markOpenAttempts(sql, part));
    }
    // Data that was put elsewhere brings an older recovery with it; a standby that is promoted goes on with its own.
    const anew = reason === CLUSTER_CHANGED || reason === DATABASE_RESTORED;
    await withDatabase(() => beginRecovery(sql, reason, identity, anew));
    const { recoveringSince, reason: kept } = await withDatabase(() =>
      readRecovery(sql, { cluster: null, timeline: null }),
    );
    this.#see(recoveringSince, kept);
  }

  #see(since: Date | null, reason: string | null): void {
    const before = this.#view;
    this.#view = since === null ? null : { since, reason: reason ?? "unknown" };
    if (before === null && this.#view !== null) this.log.warn(this.#view, "recovering: nothing is sent");
    if (before !== null && this.#view === null) this.log.info("recovered: attempts are sent again");
  }

  /** Null where the server does not say; that is told once, since a change is then found by what is left. */
  async #told<T>(question: () => Promise<T>): Promise<T | null> {
    try {
      return await withDatabase(question);
    } catch (error) {
      if (error instanceof PawlError) throw error;
      if (!this.#warned) this.log.warn({ err: error }, "the cluster does not tell its identity or timeline");
      this.#warned = true;
      return null;
    }
  }
}

/** What is not told on either side says nothing. */
function changeOf(recorded: DataIdentity, present: DataIdentity): string | null {
  if (differs(recorded.cluster, present.cluster)) return CLUSTER_CHANGED;
  if (recorded.database !== present.database) return DATABASE_RESTORED;
  return differs(recorded.timeline, present.timeline) ? TIMELINE_CHANGED : null;
}

function differs<T>(recorded: T | null, present: T | null): boolean {
  return recorded !== null && present !== null && recorded !== present;
}

function hasMore(recorded: DataIdentity, present: DataIdentity): boolean {
  return (
    (recorded.cluster === null && present.cluster !== null) ||
    (recorded.timeline === null && present.timeline !== null)
  );
}
