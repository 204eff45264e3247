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
}

export async function readBacklog(db: Queryable): Promise<Backlog> {
  const rows = await db<Row[]>`
    select state, count(*)::float8 as attempts, count(unknown_since)::float8 as unknown,
           coalesce(max(extract(epoch from now() - due_at))
             filter (where lease_expires_at is null or lease_expires_at <= now()), 0)::float8 as overdue
      from attempts where due_at is not null group by state`;
  const [reviews] = await db<Row[]>`select count(*)::float8 as open from reviews where closed_at is null`;
  return {
    attemptsByState: new Map(rows.map((row) => [row["state"] as string, Number(row["attempts"])])),
    longestOverdueSeconds: Math.max(0, ...rows.map((row) => Number(row["overdue"]))),
    unknownOutcomes: rows.reduce((sum, row) => sum + Number(row["unknown"]), 0),
    openReviews: Number(reviews?.["open"] ?? 0),
  };
}
