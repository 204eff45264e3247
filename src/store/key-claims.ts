import type { StoredResponse } from "../domain/documents.js";
import type { Queryable } from "./db.js";
import type { KeyName } from "./idempotency-keys.js";
import { type Row, requiredDate } from "./rows.js";

/**
 * Claims a key for an effect that is made in this same transaction. A key whose record has expired, purged or not, is
 * free. False: the record of another request stands; a request that is about to commit is waited for first.
 */
export async function claimKey(
  db: Queryable,
  name: KeyName,
  claim: { readonly fingerprint: string; readonly resourceId: string; readonly requestId: string },
): Promise<boolean> {
  const rows = await db<Row[]>`
    insert into idempotency_keys as k (tenant_id, operation, key, fingerprint, resource_id, request_id)
    values (${name.tenantId}, ${name.operation}, ${name.key}, ${claim.fingerprint}, ${claim.resourceId},
            ${claim.requestId})
    on conflict (tenant_id, operation, key) do update
       set state = 'in_progress', run = k.run + 1, fingerprint = excluded.fingerprint,
           resource_id = excluded.resource_id, request_id = excluded.request_id, response_status = null,
           response_headers = null, response_body = null, completed_at = null, expires_at = null
     where k.state <> 'in_progress' and k.expires_at <= now()
    returning k.run`;
  return rows.length > 0;
}

/** Stores the answer of the key that this transaction has claimed; yields when the key expires. */
export async function completeKey(
  db: Queryable,
  name: KeyName,
  response: StoredResponse,
  retentionMs: number,
): Promise<Date> {
  const [row] = await db<Row[]>`
    update idempotency_keys
       set state = 'completed', response_status = ${response.status},
           response_headers = ${JSON.stringify(response.headers)}::text::json, response_body = ${response.body},
           completed_at = now(), expires_at = now() + ${retentionMs}::float8 * interval '1 millisecond'
     where tenant_id = ${name.tenantId} and operation = ${name.operation} and key = ${name.key}
       and state = 'in_progress'
    returning expires_at`;
  if (row === undefined) throw new Error("the claimed key is not there");
  return requiredDate(row["expires_at"]);
}
