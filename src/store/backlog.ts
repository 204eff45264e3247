import type { Queryable } from "./db.js";
import type { Row } from "./rows.js";

/** What is not finished. Read from the partial indexes of what is open, never from whole tables. */
export interface Backlog {
  /** Attempts with something left to do, by state. */
  readonly attemptsByState: ReadonlyMap<string, number>;
  /** How long the longest overdue attempt that nobody holds has been due, in seconds; 0: none is. */
  readonly longestOverdueSeconds: number;
  /** Attempts with an outcome that is not known. */
  readonly unknownOutcomes: number;
  readonly openReviews: number;
  readonly pendingDeliveries: number;
  /** How long the longest overdue delivery has been due, in seconds; 0: none is. */
  readonly longestOverdueDeliverySeconds: number;
  /** Events that no delivery has been made of yet. */
  readonly unrelayedEvents: number;
  /** Ledger entries that the balances do not contain yet. */
  readonly uncountedEntries: number;
  /** Of the provider's, stored and not applied. */
  readonly pendingEvents: number;
  readonly parkedEvents: number;
  /** Differences between our rows and the provider's objects that nobody has mended yet. */
  readonly openFindings: number;
  /** In seconds since the end of the newest stretch of time that was compared with the provider; null: there is none. */
  readonly secondsSinceCompared: number | null;
  /** The database was restored, and nothing is sent yet. */
  readonly isRecovering: boolean;
  /** In seconds; 0: none is overdue. A claimed one is not due until its lease ends. */
  readonly longestOverdueEventSeconds: number;
}

export async function readBacklog(db: Queryable): Promise<Backlog> {
  const rows = await db<Row[]>`
    select state, count(*)::float8 as attempts, count(unknown_since)::float8 as unknown,
           coalesce(max(extract(epoch from now() - due_at))
             filter (where lease_expires_at is null or lease_expires_at <= now()), 0)::float8 as overdue
      from attempts where due_at is not null group by state`;
  const [reviews] = await db<Row[]>`select count(*)::float8 as open from reviews where closed_at is null`;
  const [ledger] = await db<Row[]>`select count(*)::float8 as uncounted from ledger_uncounted`;
  const [inbox] = await db<Row[]>`
    select count(*)::float8 as pending,
           greatest(0, coalesce(max(extract(epoch from now() - due_at)), 0))::float8 as overdue,
           (select count(*)::float8 from provider_events where state = 'parked') as parked
      from provider_events where due_at is not null`;
  const [deliveries] = await db<Row[]>`
    select count(*)::float8 as pending, coalesce(max(extract(epoch from now() - due_at)), 0)::float8 as overdue
      from deliveries where due_at is not null`;
  const [outbox] = await db<Row[]>`
    select count(*)::float8 as unrelayed from outbox where relayed_at is null`;
  const [compared] = await db<Row[]>`
    select (select count(*)::float8 from reconciliation_findings where state = 'open') as findings,
           (select extract(epoch from now() - max(least(finished_at, window_to)))::float8 from reconciliation_runs
             where state = 'completed') as seconds,
           exists (select from installation where recovering_since is not null) as recovering`;
  return {
    attemptsByState: new Map(rows.map((row) => [row["state"] as string, Number(row["attempts"])])),
    longestOverdueSeconds: Math.max(0, ...rows.map((row) => Number(row["overdue"]))),
    unknownOutcomes: rows.reduce((sum, row) => sum + Number(row["unknown"]), 0),
    openReviews: Number(reviews?.["open"] ?? 0),
    pendingDeliveries: Number(deliveries?.["pending"] ?? 0),
    longestOverdueDeliverySeconds: Math.max(0, Number(deliveries?.["overdue"] ?? 0)),
    unrelayedEvents: Number(outbox?.["unrelayed"] ?? 0),
    uncountedEntries: Number(ledger?.["uncounted"] ?? 0),
    pendingEvents: Number(inbox?.["pending"] ?? 0),
    parkedEvents: Number(inbox?.["parked"] ?? 0),
    openFindings: Number(compared?.["findings"] ?? 0),
    secondsSinceCompared: numberOrNull(compared?.["seconds"]),
    isRecovering: compared?.["recovering"] === true,
    longestOverdueEventSeconds: Number(inbox?.["overdue"] ?? 0),
  };
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
