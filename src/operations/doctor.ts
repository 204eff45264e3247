import {
  doctorBounds,
  type Invariant,
  SUBJECT_KINDS,
  type Subject,
  type SubjectKind,
  type Violation,
  violationName,
} from "../domain/doctor.js";
import { PawlError } from "../domain/errors.js";
import { withDatabase } from "../store/db.js";
import { type Explained, explainChecks, readDatabaseTime, readSubjects } from "../store/doctor.js";
import {
  type Broken,
  countsOf,
  type DoctorDeps,
  Examination,
  hasEnded,
  newSweep,
  PAGE_SIZE,
  type Sweep,
} from "./doctor-examination.js";
import { Patrol, type PatrolLimits } from "./doctor-patrol.js";

const MINUTE_MS = 60_000;
/** How far back the first round of a process looks. */
const FIRST_WINDOW_MS = 15 * MINUTE_MS;
/** Ids are made by the clocks of many processes, and rows are committed after their ids were made. */
const OVERLAP_MS = MINUTE_MS;

/** So much work is one round. */
export interface RoundLimits {
  /** Pages of what is new. What is left over, the next round goes on with. */
  readonly windowPages: number;
  readonly patrol: PatrolLimits;
}

/**
 * What is new of 250 payments a second, looked at twice with their events; and a twentieth of the time for all there is.
 * A database that is slow or busy is asked for fewer pages, and for no greater part of what it can do.
 */
export const ROUND: RoundLimits = { windowPages: 400, patrol: { pages: 4, share: 1 / 20 } };
/** Standing violations that are looked at again one by one. */
const MOST_STANDING = 1_000;

/** What one examination came to. */
export interface DoctorReport {
  /** The database's time when it began. */
  readonly startedAt: Date;
  /** What was made or has moved since then was looked at; null: everything. */
  readonly since: Date | null;
  /** False: the work of the round was over before the window was. */
  readonly isComplete: boolean;
  readonly looked: Readonly<Record<SubjectKind, number>>;
  readonly broken: readonly Broken[];
  readonly counts: ReadonlyMap<Invariant, number>;
  /** There may be more violations of a kind than are named. */
  readonly more: boolean;
}

/** A page that the database does not answer for a while is asked for again, so that a long sweep is not lost. */
const MOST_TRIES = 5;
const TRY_AGAIN_MS = 1_000;

/**
 * Looks through everything, or all that was made or has moved since `since`, to the end; beside what is open, whatever
 * its age. Throws service_unavailable where the database does not answer.
 */
export async function examine(
  deps: DoctorDeps,
  asked: { readonly since: Date | null; readonly onPage?: (looked: DoctorReport["looked"]) => void },
): Promise<DoctorReport> {
  const examination = new Examination(deps);
  const startedAt = await withDatabase(() => readDatabaseTime(deps.db.sql));
  await patiently(deps, () => examination.lookAtOpen());
  const sweep = newSweep(asked.since);
  while (!hasEnded(sweep)) {
    await patiently(deps, () => examination.takePage(sweep));
    asked.onPage?.(examination.looked);
  }
  return reportOf(examination, startedAt, asked.since, true);
}

async function patiently(deps: DoctorDeps, work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await work();
      return;
    } catch (error) {
      const isPassing = error instanceof PawlError && error.code === "service_unavailable";
      if (!isPassing || tries >= MOST_TRIES) throw error;
      await deps.clock.sleep(TRY_AGAIN_MS);
    }
  }
}

/** `ago` before now, by the database's clock. */
export async function timeBefore(deps: DoctorDeps, agoMs: number): Promise<Date> {
  const now = await withDatabase(() => readDatabaseTime(deps.db.sql));
  return new Date(now.getTime() - agoMs);
}

/** How each statement of an examination runs here, each run once over a page of rows that are there. */
export async function explain(deps: DoctorDeps, since: Date | null): Promise<Explained[]> {
  const { sql } = deps.db;
  const subjects = {} as Record<SubjectKind, readonly Subject[]>;
  for (const kind of SUBJECT_KINDS) {
    const page = await withDatabase(() => readSubjects(sql, { kind, since, after: null, limit: PAGE_SIZE }));
    subjects[kind] = page.map(({ subject }) => subject);
  }
  const bounds = doctorBounds(deps.settings);
  return explainChecks(sql, bounds, { subjects, since, limit: PAGE_SIZE });
}

export interface DoctorOptions {
  readonly onRound?: (report: DoctorReport) => void;
  readonly limits?: RoundLimits;
  /** 0 <= n < 1: draws where the way through all there is begins; without it, at the first row. */
  readonly random?: () => number;
}

/**
 * The rounds of a process. A round looks at what is open, at what was made or has moved since the last one, and at a few
 * pages of all there is; what was broken is looked at again until it is whole, and told once.
 */
export class Doctor {
  #standing: ReadonlyMap<string, Broken> = new Map();
  #window: { readonly sweep: Sweep; readonly startedAt: Date } | null = null;
  readonly #patrol: Patrol;
  readonly #bornMs: number;
  readonly #limits: RoundLimits;

  constructor(
    private readonly deps: DoctorDeps,
    private readonly options: DoctorOptions = {},
  ) {
    this.#limits = options.limits ?? ROUND;
    this.#patrol = new Patrol(deps, this.#limits.patrol, options.random ?? null);
    this.#bornMs = deps.clock.monotonicMs();
  }

  /** Null: this process has just started, and what waited for its workers is not overdue yet. */
  async round(): Promise<DoctorReport | null> {
    const { deps } = this;
    if (deps.clock.monotonicMs() - this.#bornMs < deps.settings.doctorIntervalMs) return null;
    const startedAt = await withDatabase(() => readDatabaseTime(deps.db.sql));
    const examination = new Examination(deps);
    const { sweep } = this.#nextWindow(startedAt);
    try {
      await this.#look(examination, sweep);
    } catch (error) {
      // Pages that were looked through are not looked through again: what they showed must not be lost with the rest.
      this.#tell([...this.#standing.values(), ...examination.broken.values()]);
      throw error;
    }
    this.#tell([...examination.broken.values()]);
    const report = reportOf(examination, startedAt, sweep.since, hasEnded(sweep));
    if (!report.isComplete) {
      deps.log.warn(
        { since: sweep.since?.toISOString(), looked: report.looked },
        "doctor: more has moved than one round looks at; the next one goes on from there",
      );
    }
    this.options.onRound?.(report);
    return report;
  }

  async #look(examination: Examination, sweep: Sweep): Promise<void> {
    await examination.lookAtOpen();
    for (let pages = 0; pages < this.#limits.windowPages && !hasEnded(sweep); pages += 1) {
      await examination.takePage(sweep);
    }
    await this.#patrol.goOn(examination);
    await this.#lookAgain(examination);
  }

  /** The one that was not looked through to its end, or a new one that begins before the last one did. */
  #nextWindow(startedAt: Date): { readonly sweep: Sweep } {
    const last = this.#window;
    if (last !== null && !hasEnded(last.sweep)) return last;
    const since =
      last === null ? startedAt.getTime() - FIRST_WINDOW_MS : last.startedAt.getTime() - OVERLAP_MS;
    this.#window = { sweep: newSweep(new Date(since)), startedAt };
    return this.#window;
  }

  /** What was broken and has not been seen in this round. */
  async #lookAgain(examination: Examination): Promise<void> {
    const unseen = [...this.#standing]
      .filter(([name]) => !examination.broken.has(name))
      .slice(0, MOST_STANDING);
    for (const kind of SUBJECT_KINDS) {
      const subjects = unseen.flatMap(([, { found }]) => (found?.kind === kind ? [found.subject] : []));
      await examination.lookAt(kind, subjects);
    }
  }

  /** Each once: when it is first seen, and when it is no more. */
  #tell(seen: readonly Broken[]): void {
    const { log } = this.deps;
    const now = new Map(seen.map((broken) => [violationName(broken.violation), broken]));
    for (const [name, { violation }] of now) {
      if (this.#standing.has(name)) continue;
      log.error(aboutOf(violation), `invariant broken: ${violation.detail}`);
    }
    for (const [name, { violation }] of this.#standing) {
      if (!now.has(name)) log.warn(aboutOf(violation), "invariant holds again");
    }
    this.#standing = now;
  }
}

function aboutOf({ invariant, tenantId, paymentId, ids }: Violation) {
  return { invariant, tenant: tenantId, payment: paymentId, ...ids };
}

function reportOf(
  examination: Examination,
  startedAt: Date,
  since: Date | null,
  isComplete: boolean,
): DoctorReport {
  const broken = [...examination.broken.values()];
  return {
    startedAt,
    since,
    isComplete,
    looked: { ...examination.looked },
    broken,
    counts: countsOf(broken),
    more: examination.more,
  };
}
