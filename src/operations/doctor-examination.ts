import {
  type DoctorBounds,
  doctorBounds,
  INVARIANT_NAMES,
  type Invariant,
  SUBJECT_KINDS,
  type Subject,
  type SubjectKind,
  type Violation,
  violationName,
} from "../domain/doctor.js";
import { PawlError } from "../domain/errors.js";
import { firstIdAt } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { openChecks, readOpenSubjects, readSubjects, subjectChecks } from "../store/doctor.js";
import type { Deps } from "./deps.js";

export type DoctorDeps = Pick<Deps, "db" | "settings" | "clock" | "log">;

/** Rows of a page: each statement over it stays well within its deadline, on a slow disk too. */
export const PAGE_SIZE = 250;
/** A page that does not come within the deadline is looked at in halves, down to this. */
const SMALLEST_PART = 16;
/** What is open, soonest due first: more than are under way at once. */
const OPEN_SUBJECTS = 1_000;

/** A way through all rows, or through all since a time: kind by kind, page by page. Goes on where it was. */
export interface Sweep {
  readonly since: Date | null;
  readonly kinds: readonly SubjectKind[];
  /** The kind that is paged through; its length: the way's end. */
  at: number;
  /** The last row that was looked at; null: none of this kind. */
  after: Subject | null;
}

/** Only payments and events tell by their ids when they were made; an old payment that has moved since has an event. */
export function newSweep(since: Date | null): Sweep {
  return { since, kinds: since === null ? SUBJECT_KINDS : ["payment", "event"], at: 0, after: null };
}

export function hasEnded(sweep: Sweep): boolean {
  return sweep.at >= sweep.kinds.length;
}

/** What broke, and the row by which it was found: null where it was no single one. */
export interface Broken {
  readonly violation: Violation;
  readonly found: { readonly kind: SubjectKind; readonly subject: Subject } | null;
}

/** One look at the rows: what is open, and whatever pages it is told to take. Reads only. */
export class Examination {
  readonly broken = new Map<string, Broken>();
  /** Rows looked at, by kind; one that was looked at twice counts twice. */
  readonly looked: Record<SubjectKind, number> = { payment: 0, attempt: 0, event: 0, key: 0, order_id: 0 };
  /** A check named as many as it may: there may be more of the same. */
  more = false;
  readonly #bounds: DoctorBounds;

  constructor(private readonly deps: DoctorDeps) {
    this.#bounds = doctorBounds(deps.settings);
  }

  /** What is open, whatever its age, and the books as a whole. */
  async lookAtOpen(): Promise<void> {
    const { sql } = this.deps.db;
    for (const check of openChecks(this.#bounds)) {
      const { violations, more } = await withDatabase(() => check(sql));
      for (const violation of violations) this.#note({ violation, found: null });
      this.more ||= more;
    }
    const open = await withDatabase(() => readOpenSubjects(sql, OPEN_SUBJECTS));
    await this.lookAt("key", subjectsOf(open.keys));
    await this.lookAt("attempt", subjectsOf(open.attempts));
    await this.lookAt("payment", [...subjectsOf(open.reviewed), ...distinctPayments(open.attempts)]);
  }

  /** The sweep's next page, with all checks of it; the sweep moves on only when they have run. */
  async takePage(sweep: Sweep): Promise<void> {
    const kind = sweep.kinds[sweep.at];
    if (kind === undefined) return;
    const { since, after } = sweep;
    const page = await withDatabase(() =>
      readSubjects(this.deps.db.sql, { kind, since, after, limit: PAGE_SIZE }),
    );
    await this.lookAt(kind, subjectsOf(page));
    // Of the window's events those about older payments: these have moved since.
    if (kind === "event" && since !== null) {
      const first = firstIdAt("pay", since);
      const older = distinctPayments(page).filter(({ id }) => (id ?? "") < first);
      await this.lookAt("payment", older);
    }
    const last = page.at(-1);
    if (last !== undefined && page.length === PAGE_SIZE) {
      sweep.after = last.subject;
    } else {
      sweep.at += 1;
      sweep.after = null;
    }
  }

  async lookAt(kind: SubjectKind, subjects: readonly Subject[]): Promise<void> {
    for (let from = 0; from < subjects.length; from += PAGE_SIZE) {
      const page = subjects.slice(from, from + PAGE_SIZE);
      for (const check of subjectChecks(kind, this.#bounds)) await this.#run(kind, check, page);
      this.looked[kind] += page.length;
    }
  }

  async #run(
    kind: SubjectKind,
    check: ReturnType<typeof subjectChecks>[number],
    subjects: readonly Subject[],
  ): Promise<void> {
    try {
      const { violations, more } = await withDatabase(() => check(this.deps.db.sql, subjects));
      for (const { violation, at } of violations) {
        const subject = subjects[at];
        this.#note({ violation, found: subject === undefined ? null : { kind, subject } });
      }
      this.more ||= more;
    } catch (error) {
      const isLate = error instanceof PawlError && error.code === "service_unavailable";
      if (!isLate || subjects.length <= SMALLEST_PART) throw error;
      const half = Math.ceil(subjects.length / 2);
      await this.#run(kind, check, subjects.slice(0, half));
      await this.#run(kind, check, subjects.slice(half));
    }
  }

  #note(broken: Broken): void {
    this.broken.set(violationName(broken.violation), broken);
  }
}

/** How many things break each invariant. */
export function countsOf(broken: Iterable<Broken>): ReadonlyMap<Invariant, number> {
  const counts = new Map<Invariant, number>(INVARIANT_NAMES.map((name) => [name, 0]));
  for (const { violation } of broken) {
    counts.set(violation.invariant, (counts.get(violation.invariant) ?? 0) + 1);
  }
  return counts;
}

function subjectsOf(page: readonly { readonly subject: Subject }[]): Subject[] {
  return page.map(({ subject }) => subject);
}

function distinctPayments(page: readonly { readonly payment: Subject | null }[]): Subject[] {
  const payments = page.flatMap(({ payment }) => (payment === null ? [] : [payment]));
  return [...new Map(payments.map((one) => [`${one["tenant_id"]} ${one["id"]}`, one])).values()];
}
