import { SUBJECT_KINDS } from "../domain/doctor.js";
import { withDatabase } from "../store/db.js";
import { readSample } from "../store/doctor.js";
import { type DoctorDeps, type Examination, hasEnded, newSweep, type Sweep } from "./doctor-examination.js";

const HOUR_MS = 3_600_000;
/** All there is is not looked through more often than this. */
const EVERY_MS = HOUR_MS;

/** How much of all there is one round looks at. */
export interface PatrolLimits {
  /** So many pages in any case, … */
  readonly pages: number;
  /** … and as many as there is time for within this part of the interval between two rounds, 0 to 1. */
  readonly share: number;
}

/**
 * The way of a process through all rows there are, from the first to the last and over again: what no window leads to is
 * met in time. It begins behind a row that is drawn, so that processes that live for less than a whole way, and
 * several that go theirs at once, meet every row all the same.
 */
export class Patrol {
  #sweep: Sweep | null = null;
  /** Of the way that it is on; null while it goes the part that the draw has left of the first. */
  #begunMs: number | null = null;
  /** The last way of which it was told that it has ended. */
  #told: Sweep | null = null;

  /** `random`: 0 <= n < 1; null: the first way begins at the first row. */
  constructor(
    private readonly deps: DoctorDeps,
    private readonly limits: PatrolLimits,
    private readonly random: (() => number) | null,
  ) {}

  async goOn(examination: Examination): Promise<void> {
    const { clock, settings } = this.deps;
    const { pages, share } = this.limits;
    if (pages === 0) return;
    const endMs = clock.monotonicMs() + settings.doctorIntervalMs * share;
    const sweep = await this.#currentSweep();
    for (let taken = 0; !hasEnded(sweep); taken += 1) {
      if (taken >= pages && clock.monotonicMs() >= endMs) return;
      await examination.takePage(sweep);
    }
    this.#end(sweep);
  }

  /** One that has ended rests until the next may begin. */
  async #currentSweep(): Promise<Sweep> {
    const last = this.#sweep;
    if (last === null && this.random !== null) {
      this.#sweep = await this.#drawn(this.random);
      return this.#sweep;
    }
    const nowMs = this.deps.clock.monotonicMs();
    const rests = this.#begunMs !== null && nowMs - this.#begunMs < EVERY_MS;
    if (last !== null && (!hasEnded(last) || rests)) return last;
    this.#begunMs = nowMs;
    this.#sweep = newSweep(null);
    return this.#sweep;
  }

  async #drawn(random: () => number): Promise<Sweep> {
    const at = Math.floor(random() * SUBJECT_KINDS.length);
    const kind = SUBJECT_KINDS[at];
    if (kind === undefined) return newSweep(null);
    const drawn = await withDatabase(() => readSample(this.deps.db.sql, kind));
    const after = drawn[Math.floor(random() * drawn.length)] ?? null;
    return { ...newSweep(null), at, after };
  }

  #end(sweep: Sweep): void {
    if (this.#begunMs === null || this.#told === sweep) return;
    this.#told = sweep;
    const hours = (this.deps.clock.monotonicMs() - this.#begunMs) / HOUR_MS;
    this.deps.log.info({ hours: Math.round(hours * 100) / 100 }, "doctor: all there is was looked through");
  }
}
