import { PawlError } from "../domain/errors.js";
import { withDatabase } from "../store/db.js";
import { type KeyRecord, readKey } from "../store/idempotency-keys.js";
import type { Caller, Deps } from "./deps.js";

export type IdempotencyKeyView = Pick<
  KeyRecord,
  | "key"
  | "operation"
  | "state"
  | "resourceId"
  | "run"
  | "responseStatus"
  | "createdAt"
  | "completedAt"
  | "expiresAt"
>;

/** What became of a key, so that a client can ask instead of guess. Throws not_found: never used, or purged. */
export async function getIdempotencyKey(
  deps: Deps,
  caller: Caller,
  operation: string,
  key: string,
): Promise<IdempotencyKeyView> {
  const record = await withDatabase(() =>
    readKey(deps.db.sql, { tenantId: caller.tenantId, operation, key }),
  );
  if (record === null) throw new PawlError("not_found", "There is no record of this key for this operation.");
  return record;
}
