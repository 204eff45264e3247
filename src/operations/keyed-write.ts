import { JSON_TYPE, type JsonObject, type StoredResponse } from "../domain/documents.js";
import { PawlError } from "../domain/errors.js";
import { fingerprint } from "../lib/fingerprint.js";
import { withDatabase } from "../store/db.js";
import { type KeyName, type KeyRecord, readKey } from "../store/idempotency-keys.js";
import { claimAnswered, type KeyedChange } from "../store/key-claims.js";
import type { Deps } from "./deps.js";
import type { KeyedAnswer, KeyedCall } from "./keyed-request.js";

/** A request under an Idempotency-Key whose whole effect is one statement of ours. */
export interface KeyedWrite extends KeyedCall {
  readonly operation: string;
  /** With `input` what makes two requests under one key the same. */
  readonly pathIds: readonly string[];
  readonly input: unknown;
  /** What the key stands for. */
  readonly resourceId: string;
  /** What takes more than the database to find out. Throws PawlError; not asked where the key has its answer already. */
  check?(): Promise<void>;
  /**
   * Reads what the answer is judged by, the database's time among it, and writes nothing. Asked again where that has
   * changed before the effect was made. A PawlError that it throws leaves the key free.
   */
  prepare(): Promise<KeyedEffect>;
}

export interface KeyedEffect {
  readonly change: KeyedChange;
  readonly status: number;
  readonly location: string;
  readonly document: JsonObject;
  /** Members that the first answer alone shows: in the stored one they are as `document` has them. */
  readonly shownOnce?: JsonObject;
}

type FinalAnswer = KeyedAnswer & { readonly type: "final" };

/** Each further look means that another writer went on, or a record expired; more often than this it is a bug to see. */
const MOST_LOOKS = 50;

/**
 * Claim, effect and stored answer in one statement, so that a key is never seen in progress: the same request again is
 * answered with what is stored. Throws PawlError: idempotency_key_reused, service_unavailable, and what `check` and
 * `prepare` throw.
 */
export async function keyedWrite(
  deps: Pick<Deps, "db" | "settings">,
  request: KeyedWrite,
): Promise<FinalAnswer> {
  const { operation, key, caller } = request;
  const name = { tenantId: caller.tenantId, operation, key };
  const print = fingerprint(operation, request.pathIds, request.input);
  let checked = false;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const record = await withDatabase(() => readKey(deps.db.sql, name));
    if (record !== null && !record.expired) return replay(record, print);
    if (!checked) await request.check?.();
    checked = true;
    const effect = await prepared(deps, request, name);
    if (effect === null) continue;
    const claim = {
      tenant_id: caller.tenantId,
      operation,
      key,
      fingerprint: print,
      resource_id: request.resourceId,
      request_id: request.context.requestId,
      retention_ms: deps.settings.retentionMs,
      ...responseOf(effect, effect.document),
    };
    const keyExpiresAt = await withDatabase(() => claimAnswered(deps.db.sql, claim, effect.change));
    if (keyExpiresAt === null) continue;
    const response = responseOf(effect, { ...effect.document, ...effect.shownOnce });
    return { type: "final", response, replayed: false, keyExpiresAt };
  }
  throw new PawlError("service_unavailable", "What the request is about kept changing; send it again.");
}

/**
 * Null: the same request has just been answered by another of its kind, and may be the very reason for a refusal here.
 */
async function prepared(
  deps: Pick<Deps, "db">,
  request: KeyedWrite,
  name: KeyName,
): Promise<KeyedEffect | null> {
  try {
    return await withDatabase(() => request.prepare());
  } catch (error) {
    if (!(error instanceof PawlError)) throw error;
    const record = await withDatabase(() => readKey(deps.db.sql, name));
    if (record === null || record.expired) throw error;
    return null;
  }
}

function replay(record: KeyRecord, print: string): FinalAnswer {
  if (record.fingerprint !== print) {
    throw new PawlError("idempotency_key_reused", "This Idempotency-Key was first used for another request.");
  }
  const { responseStatus: status, responseBody: body, responseHeaders: headers } = record;
  const location = headers?.["Location"];
  if (record.state !== "completed" || status === null || body === null || location === undefined) {
    throw new Error(`the key of ${record.resourceId} was committed without its answer`);
  }
  const response = { status, headers: { "Content-Type": JSON_TYPE, Location: location }, body };
  return { type: "final", response, replayed: true, keyExpiresAt: record.expiresAt };
}

function responseOf(effect: KeyedEffect, document: KeyedEffect["document"]): StoredResponse {
  return {
    status: effect.status,
    headers: { "Content-Type": JSON_TYPE, Location: effect.location },
    body: JSON.stringify(document),
  };
}
