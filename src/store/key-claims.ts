import type postgres from "postgres";
import type { StoredResponse } from "../domain/documents.js";
import type { Queryable } from "./db.js";
import { type Row, requiredDate } from "./rows.js";

/** A part of a statement: it runs in the statement that it is put into, and never by itself. */
export type SqlPart = postgres.PendingQuery<postgres.Row[]>;

/** What happens together with a key's claim. */
export interface KeyedChange {
  /** A `select … for update` of the row that the answer was judged by, as it was read; null: it was judged by none. */
  readonly held: SqlPart | null;
  /** `name as (…)`, one or more. They take what they write from `claimed` (tenant_id), and may use `held`. */
  readonly effect: SqlPart;
}

/** A key with the answer that it gets. */
export interface AnsweredKey extends StoredResponse {
  readonly tenant_id: string;
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly resource_id: string;
  readonly request_id: string;
  readonly retention_ms: number;
}

/**
 * Claims a key, stores its answer and makes the change, in one statement; yields when the key expires. A key whose
 * record has expired, purged or not, is free. Null, and nothing is written: the row that the answer was judged by has
 * changed, or another request's record stands; one that is about to commit is waited for first.
 */
export async function claimAnswered(
  db: Queryable,
  claim: AnsweredKey,
  change: KeyedChange,
): Promise<Date | null> {
  const [claimed] = await db<Row[]>`
    with input as materialized (
      select * from json_to_record(${JSON.stringify(claim)}::text::json) as x(
        tenant_id text, operation text, key text, fingerprint text, resource_id text, request_id text, status int,
        headers json, body text, retention_ms float8)
    ), held as materialized (${change.held ?? db`select true`}
    ), claimed as (
      insert into idempotency_keys as k (tenant_id, operation, key, fingerprint, resource_id, request_id, state,
        response_status, response_headers, response_body, completed_at, expires_at)
      select i.tenant_id, i.operation, i.key, i.fingerprint, i.resource_id, i.request_id,
             'completed'::idempotency_key_state, i.status, i.headers, i.body, now(),
             now() + i.retention_ms * interval '1 millisecond'
        from input i, held
      on conflict (tenant_id, operation, key) do update
         set state = excluded.state, run = k.run + 1, fingerprint = excluded.fingerprint,
             resource_id = excluded.resource_id, request_id = excluded.request_id,
             response_status = excluded.response_status, response_headers = excluded.response_headers,
             response_body = excluded.response_body, completed_at = excluded.completed_at,
             expires_at = excluded.expires_at
       where k.state <> 'in_progress' and k.expires_at <= now()
      returning k.tenant_id, k.expires_at
    ), ${change.effect}
    select expires_at from claimed`;
  return claimed === undefined ? null : requiredDate(claimed["expires_at"]);
}
