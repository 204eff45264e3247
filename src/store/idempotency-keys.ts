import type { Queryable } from "./db.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export type KeyState = "in_progress" | "completed" | "failed_retryable";

/** A key's record. `expired` is told by the database's clock, in the statement that read it. */
export interface KeyRecord {
  readonly key: string;
  readonly operation: string;
  readonly fingerprint: string;
  readonly state: KeyState;
  readonly run: number;
  readonly resourceId: string;
  readonly responseStatus: number | null;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responseBody: string | null;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly expired: boolean;
}

export interface KeyName {
  readonly tenantId: string;
  readonly operation: string;
  readonly key: string;
}

export async function readKey(db: Queryable, name: KeyName): Promise<KeyRecord | null> {
  const [row] = await db<Row[]>`
    select *, expires_at is not null and expires_at <= now() as expired
      from idempotency_keys
     where tenant_id = ${name.tenantId} and operation = ${name.operation} and key = ${name.key}`;
  if (row === undefined) return null;
  return {
    key: row["key"] as string,
    operation: row["operation"] as string,
    fingerprint: row["fingerprint"] as string,
    state: row["state"] as KeyState,
    run: Number(row["run"]),
    resourceId: row["resource_id"] as string,
    responseStatus: row["response_status"] === null ? null : Number(row["response_status"]),
    responseHeaders: jsonOrNull<Record<string, string>>(row["response_headers"]),
    responseBody: textOrNull(row["response_body"]),
    createdAt: requiredDate(row["created_at"]),
    completedAt: dateOrNull(row["completed_at"]),
    expiresAt: dateOrNull(row["expires_at"]),
    expired: row["expired"] as boolean,
  };
}

/**
 * Deletes at most `limit` finished keys past their expiry, oldest first, and yields how many. A key in progress or
 * unresolved has no expiry and is never seen here; rows that another purge holds are skipped.
 */
export async function purgeExpiredKeys(db: Queryable, limit: number): Promise<number> {
  const rows = await db<Row[]>`
    with old as materialized (
      select tenant_id, operation, key from idempotency_keys
       where expires_at <= now() and state <> 'in_progress'
       order by expires_at limit ${limit} for update skip locked
    )
    delete from idempotency_keys k using old
     where k.tenant_id = old.tenant_id and k.operation = old.operation and k.key = old.key
    returning k.key`;
  return rows.length;
}
