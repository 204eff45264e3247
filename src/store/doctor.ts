import type { DoctorBounds, Invariant, Subject, SubjectKind, Violation } from "../domain/doctor.js";
import type { Queryable } from "./db.js";
import { checkAttempts, checkAttemptsOfPayments } from "./doctor-attempts.js";
import { checkEvents, checkHistory } from "./doctor-history.js";
import { checkKeys, checkOrderIds } from "./doctor-keys.js";
import {
  checkBalances,
  checkCounting,
  checkDeliveries,
  checkDeliveriesTooLate,
  checkDueTooLate,
  checkInbox,
  checkInboxTooLate,
  checkInstallation,
  checkOverdue,
  checkRelay,
  MOST_NAMED,
} from "./doctor-open.js";
import { checkBooks, checkPayments } from "./doctor-payments.js";
import {
  answeredKeys,
  dueAttempts,
  type PageRequest,
  reviewedPayments,
  sampledSubjects,
  subjectInput,
  subjectOf,
  subjectPage,
} from "./doctor-subjects.js";
import type { SqlPart } from "./key-claims.js";
import { jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

/** A statement that only reads, with a name for people. */
interface Statement {
  readonly name: string;
  readonly statement: (db: Queryable, bounds: DoctorBounds) => SqlPart;
}

const OPEN_CHECKS: readonly Statement[] = [
  { name: "overdue attempts", statement: checkOverdue },
  { name: "attempts due too late", statement: checkDueTooLate },
  { name: "overdue deliveries", statement: checkDeliveries },
  { name: "deliveries due too late", statement: checkDeliveriesTooLate },
  { name: "events not relayed", statement: checkRelay },
  { name: "overdue provider events", statement: checkInbox },
  { name: "provider events due too late", statement: checkInboxTooLate },
  { name: "balances", statement: checkBalances },
  { name: "entries not counted", statement: checkCounting },
  { name: "recovery and comparison", statement: checkInstallation },
];

const SUBJECT_CHECKS: Readonly<Record<SubjectKind, readonly Statement[]>> = {
  payment: [
    { name: "payments", statement: checkPayments },
    { name: "books", statement: checkBooks },
    { name: "attempts of payments", statement: checkAttemptsOfPayments },
    { name: "history", statement: checkHistory },
  ],
  attempt: [{ name: "attempts", statement: checkAttempts }],
  event: [{ name: "events", statement: checkEvents }],
  key: [{ name: "keys", statement: checkKeys }],
  order_id: [{ name: "order ids", statement: checkOrderIds }],
};

/** What the open checks found. `more`: there may be more of the same. */
export interface Found {
  readonly violations: readonly Violation[];
  readonly more: boolean;
}

/** One of the checks of what is open, as a function that runs it. */
export function openChecks(bounds: DoctorBounds): readonly ((db: Queryable) => Promise<Found>)[] {
  return OPEN_CHECKS.map((check) => async (db) => {
    const rows = await db<Row[]>`${check.statement(db, bounds)}`;
    return { violations: rows.map(violationOf), more: rows.length >= MOST_NAMED };
  });
}

/** As above, with the place of each violation's subject in the list. */
export interface FoundOfSubjects {
  readonly violations: readonly { readonly violation: Violation; readonly at: number }[];
  readonly more: boolean;
}

/** The checks of one kind of subject; each runs as one statement over a list of them. */
export function subjectChecks(
  kind: SubjectKind,
  bounds: DoctorBounds,
): readonly ((db: Queryable, subjects: readonly Subject[]) => Promise<FoundOfSubjects>)[] {
  return SUBJECT_CHECKS[kind].map((check) => async (db, subjects) => {
    const rows = await db<Row[]>`${overSubjects(db, check, kind, subjects, bounds)}`;
    const violations = rows.map((row) => ({ violation: violationOf(row), at: Number(row["n"]) }));
    return { violations, more: rows.length >= MOST_NAMED };
  });
}

function overSubjects(
  db: Queryable,
  check: Statement,
  kind: SubjectKind,
  subjects: readonly Subject[],
  bounds: DoctorBounds,
): SqlPart {
  return db`with ${subjectInput(db, kind, subjects)} ${check.statement(db, bounds)} limit ${MOST_NAMED}`;
}

function violationOf(row: Row): Violation {
  return {
    invariant: row["invariant"] as Invariant,
    tenantId: textOrNull(row["tenant_id"]),
    paymentId: textOrNull(row["payment_id"]),
    ids: jsonOrNull<Record<string, string>>(row["ids"]) ?? {},
    detail: row["detail"] as string,
  };
}

/** A subject, and the payment that it belongs to where its page tells. */
export interface PagedSubject {
  readonly subject: Subject;
  readonly payment: Subject | null;
}

export async function readSubjects(db: Queryable, page: PageRequest): Promise<PagedSubject[]> {
  const rows = await db<Row[]>`${subjectPage(db, page)}`;
  return rows.map((row) => pagedOf(page.kind, row));
}

/** Some hundred rows from anywhere in the table. */
export async function readSample(db: Queryable, kind: SubjectKind): Promise<Subject[]> {
  const rows = await db<Row[]>`${sampledSubjects(db, kind)}`;
  return rows.map((row) => subjectOf(kind, row));
}

/** What is open, and what was finished last: at most `limit` of each. */
export interface OpenSubjects {
  readonly attempts: readonly PagedSubject[];
  readonly reviewed: readonly PagedSubject[];
  readonly keys: readonly PagedSubject[];
}

export async function readOpenSubjects(db: Queryable, limit: number): Promise<OpenSubjects> {
  const attempts = await db<Row[]>`${dueAttempts(db, limit)}`;
  const reviewed = await db<Row[]>`${reviewedPayments(db, limit)}`;
  const keys = await db<Row[]>`${answeredKeys(db, limit)}`;
  return {
    attempts: attempts.map((row) => pagedOf("attempt", row)),
    reviewed: reviewed.map((row) => pagedOf("payment", row)),
    keys: keys.map((row) => pagedOf("key", row)),
  };
}

function pagedOf(kind: SubjectKind, row: Row): PagedSubject {
  const id = textOrNull(row["payment_id"]);
  return {
    subject: subjectOf(kind, row),
    payment: id === null ? null : { tenant_id: row["tenant_id"] as string, id },
  };
}

export async function readDatabaseTime(db: Queryable): Promise<Date> {
  const [row] = await db<Row[]>`select now() as at`;
  return requiredDate(row?.["at"]);
}

/** What is explained: every statement of a round, with subjects as a round would have them. */
export interface Explained {
  readonly name: string;
  /** As PostgreSQL prints it, with what it read. */
  readonly plan: readonly string[];
}

/** Runs every statement once, on this connection and with its settings, and yields how. */
export async function explainChecks(
  db: Queryable,
  bounds: DoctorBounds,
  given: {
    readonly subjects: Readonly<Record<SubjectKind, readonly Subject[]>>;
    readonly since: Date | null;
    readonly limit: number;
  },
): Promise<Explained[]> {
  const { subjects, since, limit } = given;
  const kinds = Object.keys(SUBJECT_CHECKS) as SubjectKind[];
  const statements: readonly { readonly name: string; readonly statement: () => SqlPart }[] = [
    ...OPEN_CHECKS.map(({ name, statement }) => ({ name, statement: () => statement(db, bounds) })),
    { name: "due attempts", statement: () => dueAttempts(db, limit) },
    { name: "open reviews", statement: () => reviewedPayments(db, limit) },
    { name: "keys answered last", statement: () => answeredKeys(db, limit) },
    ...kinds.flatMap((kind) => [
      {
        name: `page of ${kind}s`,
        statement: () => subjectPage(db, { kind, since, after: null, limit }),
      },
      { name: `drawn ${kind}s`, statement: () => sampledSubjects(db, kind) },
      ...SUBJECT_CHECKS[kind].map((check) => ({
        name: check.name,
        statement: () => overSubjects(db, check, kind, subjects[kind], bounds),
      })),
    ]),
  ];
  const explained: Explained[] = [];
  for (const { name, statement } of statements) {
    const rows = await db<Row[]>`explain (analyze, buffers, timing off) ${statement()}`;
    explained.push({ name, plan: rows.map((row) => String(row["QUERY PLAN"])) });
  }
  return explained;
}
