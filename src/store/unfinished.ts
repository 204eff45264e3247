import type { AttemptKind, AttemptState } from "../domain/attempt.js";
import type { Queryable } from "./db.js";
import { dateOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

/** What is not finished on our own side. Read from the partial indexes of what is open. */
export interface Unfinished {
  /** Attempts whose worker let its lease end. */
  readonly expiredLeases: number;
  /** Attempts whose outcome is not known and that are due to be asked about. */
  readonly dueUnknowns: number;
  /** Events of the provider's that wait for `pawl events replay`. */
  readonly parkedEvents: number;
  readonly openReviews: number;
  /** The longest unknown or overdue first. */
  readonly pastBound: readonly PastBound[];
}

/** An attempt that has been unknown, or due without a worker, for longer than it should. */
export interface PastBound {
  readonly tenantId: string;
  readonly paymentId: string;
  readonly attemptId: string;
  readonly kind: AttemptKind;
  readonly state: AttemptState;
  readonly reason: string | null;
  readonly unknownSince: Date | null;
  readonly dueAt: Date;
}

export async function readUnfinished(
  db: Queryable,
  bounds: { readonly unknownMs: number; readonly overdueMs: number; readonly limit: number },
): Promise<Unfinished> {
  const [counts] = await db<Row[]>`
    select count(*) filter (where lease_expires_at <= now())::int as expired,
           count(*) filter (where unknown_since is not null and due_at <= now())::int as unknowns,
           (select count(*)::int from provider_events where state = 'parked') as parked,
           (select count(*)::int from reviews where closed_at is null) as reviews
      from attempts where due_at is not null`;
  const rows = await db<Row[]>`
    select tenant_id, payment_id, id, kind, state, wait_reason, unknown_since, due_at from attempts
     where due_at is not null
       and (unknown_since < now() - ${bounds.unknownMs}::float8 * interval '1 millisecond'
            or (due_at < now() - ${bounds.overdueMs}::float8 * interval '1 millisecond'
                and (lease_expires_at is null or lease_expires_at <= now())))
     order by coalesce(unknown_since, due_at), id limit ${bounds.limit}`;
  return {
    expiredLeases: Number(counts?.["expired"] ?? 0),
    dueUnknowns: Number(counts?.["unknowns"] ?? 0),
    parkedEvents: Number(counts?.["parked"] ?? 0),
    openReviews: Number(counts?.["reviews"] ?? 0),
    pastBound: rows.map((row) => ({
      tenantId: row["tenant_id"] as string,
      paymentId: row["payment_id"] as string,
      attemptId: row["id"] as string,
      kind: row["kind"] as AttemptKind,
      state: row["state"] as AttemptState,
      reason: textOrNull(row["wait_reason"]),
      unknownSince: dateOrNull(row["unknown_since"]),
      dueAt: requiredDate(row["due_at"]),
    })),
  };
}
