import {
  JSON_TYPE,
  type JsonObject,
  paymentDocument,
  paymentPath,
  refundDocument,
  refundPath,
  type StoredResponse,
} from "../domain/documents.js";
import { type FormerKey, type FormerRun, judgeFormerKey, MOST_RUNS } from "../domain/earlier-runs.js";
import { PawlError } from "../domain/errors.js";
import type { Payment, Resolution } from "../domain/payment.js";
import type { Refund } from "../domain/refund.js";
import { withDatabase } from "../store/db.js";
import { type KeyRecord, readKey } from "../store/idempotency-keys.js";
import { readPayment, readStandingAttempts, type StandingAttempt } from "../store/payments.js";
import { readRefund } from "../store/refunds.js";
import { attemptIdOf, attemptIdsOf } from "./attempt-id.js";
import type { Settled } from "./await-outcome.js";
import type { Caller, Deps, RequestContext } from "./deps.js";

/** How long the caller waits for the outcome; `explicit`: a well-formed Prefer asked for it. */
export interface WaitPreference {
  readonly waitMs: number;
  readonly explicit: boolean;
}

export type KeyedAnswer =
  | {
      readonly type: "final";
      readonly response: StoredResponse;
      readonly replayed: boolean;
      readonly keyExpiresAt: Date | null;
    }
  /** The work goes on: the resource as it is, and where to look for it. */
  | {
      readonly type: "processing";
      readonly document: JsonObject;
      readonly location: string;
    };

/** Who asks, and under which Idempotency-Key. */
export interface KeyedCall {
  readonly caller: Caller;
  readonly context: RequestContext;
  readonly key: string;
}

/** A request under an Idempotency-Key whose effect is made by a worker. The identity is (tenant, operation, key). */
export interface KeyedRequest extends KeyedCall {
  readonly operation: string;
  readonly fingerprint: string;
  readonly wait: WaitPreference;
}

/** What a key stands for. */
export interface Resource {
  readonly payment: Payment;
  readonly refund: Refund | null;
  readonly refundResolution: Resolution | null;
}

export const RETRY_AFTER_SECONDS = 1;

export function keyNameOf({ caller, operation, key }: KeyedRequest) {
  return { tenantId: caller.tenantId, operation, key };
}

export function readKeyOf(deps: Deps, request: KeyedRequest): Promise<KeyRecord | null> {
  return withDatabase(() => readKey(deps.db.sql, keyNameOf(request)));
}

/** What the attempts that are derived from a key, and that its record knows nothing of, say of it; `after` its run. */
export async function readFormerKey(
  deps: Deps,
  request: KeyedRequest,
  after = 0,
): Promise<FormerKey<Former>> {
  const runs = new Map(
    attemptIdsOf(deps.installationSecret, keyNameOf(request))
      .map((id, at) => [id, at + 1] as const)
      .slice(after),
  );
  const { tenantId } = request.caller;
  const standing = await withDatabase(() => readStandingAttempts(deps.db.sql, tenantId, [...runs.keys()]));
  return judgeFormerKey(standing.map((attempt) => ({ ...attempt, run: runs.get(attempt.id) ?? 1 })));
}

type Former = StandingAttempt & FormerRun;

/**
 * The key's record is purged or lost and an attempt derived from it stands: it is refused. Null: there is none, or the
 * record stands by now, since another request was accepted in between.
 */
export async function refusalOfFormerKey(deps: Deps, request: KeyedRequest): Promise<PawlError | null> {
  const ids = attemptIdsOf(deps.installationSecret, keyNameOf(request));
  const former = await withDatabase(() => readStandingAttempts(deps.db.sql, request.caller.tenantId, ids));
  const newest = former.toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id)).at(-1);
  if (newest === undefined) return null;
  return (await readKeyOf(deps, request)) === null ? expired(newest.payment) : null;
}

/** The same for one attempt, which stands without the key's record knowing of it. */
export async function refusalOfAttempt(
  deps: Deps,
  request: KeyedRequest,
  attemptId: string,
): Promise<PawlError | null> {
  const { tenantId } = request.caller;
  const [former] = await withDatabase(() => readStandingAttempts(deps.db.sql, tenantId, [attemptId]));
  return former === undefined ? null : expired(former.payment);
}

/** Accepts the request as this run of its key. */
type RunAfresh = (run: number) => Promise<KeyedAnswer | null>;

/** Runs that are later than the record were lost, and made again by a recovery: they decide as a record of theirs would. */
async function answerFromLaterRuns(
  deps: Deps,
  request: KeyedRequest,
  record: KeyRecord,
  runAfresh: RunAfresh,
): Promise<KeyedAnswer | null> {
  const later = await readFormerKey(deps, request, record.run);
  if (later.type === "unknown") return runAfresh(record.run + 1);
  if (later.type === "free") return runAfresh(later.next);
  // Another request may have begun that run just now: then the record knows of it.
  if ((await readKeyOf(deps, request))?.run !== record.run) return null;
  throw later.type === "open" ? inProgress(later.run.payment) : expired(later.run.payment);
}

/**
 * What the key's record says of this request. `runAfresh` makes it the next run where the last is proven to be without
 * effect; it and the whole yield null where the record has changed meanwhile and must be looked at again.
 */
export async function answerFromKey(
  deps: Deps,
  request: KeyedRequest,
  record: KeyRecord,
  runAfresh: RunAfresh,
): Promise<KeyedAnswer | null> {
  if (record.expired) throw expired((await readResource(deps, request, record.resourceId)).payment);
  if (record.fingerprint !== request.fingerprint) {
    throw new PawlError("idempotency_key_reused", "This Idempotency-Key was first used for another request.");
  }
  switch (record.state) {
    case "completed":
      return replay(record);
    case "failed_retryable":
      if (record.run < MOST_RUNS) return answerFromLaterRuns(deps, request, record, runAfresh);
      throw expired(
        (await readResource(deps, request, record.resourceId)).payment,
        "The key has run too often without effect, and runs no more; its last payment is shown here. Use a new key.",
      );
    case "in_progress":
      return waitForOther(deps, request, record);
  }
}

/** The caller of an accepted run waits for its outcome; `pending` is what it is told when the wait ends first. */
export async function waitForOutcome(
  deps: Deps,
  request: KeyedRequest,
  accepted: { readonly attemptId: string; readonly run: number; readonly resourceId: string },
  pending: () => KeyedAnswer | Promise<KeyedAnswer>,
): Promise<KeyedAnswer> {
  const { caller, context, wait } = request;
  const settling = deps.outcomes.wait(caller.tenantId, accepted.attemptId, wait.waitMs, context.signal);
  deps.due.dueNow();
  const settled = await settling;
  if (settled !== null) return answerFromOutcome(deps, request, accepted, settled, false);
  // What ended while the wait did is still answered as ended.
  return wait.waitMs > 0
    ? answerFromOutcome(deps, request, accepted, { type: "elsewhere" }, false)
    : pending();
}

/** A duplicate waits only when it asks to; then it replays what came, else it is told that the first still runs. */
async function waitForOther(deps: Deps, request: KeyedRequest, record: KeyRecord): Promise<KeyedAnswer> {
  const { run, resourceId } = record;
  if (request.wait.explicit) {
    const { caller, context, wait } = request;
    const attemptId = attemptIdOf(deps.installationSecret, keyNameOf(request), run);
    const settled = await deps.outcomes.wait(caller.tenantId, attemptId, wait.waitMs, context.signal);
    const running = { attemptId, run, resourceId };
    const answer = await answerFromOutcome(deps, request, running, settled ?? { type: "elsewhere" }, true);
    if (answer.type === "final") return answer;
  }
  const { payment, refund } = await readResource(deps, request, resourceId);
  throw inProgress(payment, refund);
}

async function answerFromOutcome(
  deps: Deps,
  request: KeyedRequest,
  accepted: { readonly run: number; readonly resourceId: string },
  settled: Settled,
  replayed: boolean,
): Promise<KeyedAnswer> {
  if (settled.type === "here" && settled.response !== null) {
    return { type: "final", response: settled.response, replayed, keyExpiresAt: settled.keyExpiresAt };
  }
  const record = await readKeyOf(deps, request);
  const isOurs = record !== null && record.run === accepted.run;
  if (isOurs && record.state === "completed") return { ...replay(record), replayed };
  const resource = await readResource(deps, request, accepted.resourceId);
  // A later run means that this one was proven to be without effect.
  const ended = record !== null && (record.run > accepted.run || record.state === "failed_retryable");
  if (ended) throw notPerformed(resource);
  return processing(resource);
}

function notPerformed({ payment, refund }: Resource): PawlError {
  const failure = refund === null ? payment.failure : refund.failure;
  return new PawlError(
    "provider_unavailable",
    failure?.message ?? "The provider could not be reached in time; nothing was done.",
    { payment, ...(refund === null ? {} : { refund }), retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

function replay(record: KeyRecord): KeyedAnswer & { type: "final" } {
  if (record.responseStatus === null || record.responseBody === null) {
    throw new Error(`the key of ${record.resourceId} is completed without an answer`);
  }
  const headers = {
    "Content-Type": record.responseHeaders?.["Content-Type"] ?? JSON_TYPE,
    Location: record.responseHeaders?.["Location"] ?? pathOf(record.resourceId),
  };
  return {
    type: "final",
    response: { status: record.responseStatus, headers, body: record.responseBody },
    replayed: true,
    keyExpiresAt: record.expiresAt,
  };
}

export function processing({ payment, refund, refundResolution }: Resource): KeyedAnswer {
  return refund === null
    ? { type: "processing", document: paymentDocument(payment), location: paymentPath(payment.id) }
    : {
        type: "processing",
        document: refundDocument(refund, refundResolution),
        location: refundPath(refund.id),
      };
}

function isRefund(resourceId: string): boolean {
  return resourceId.startsWith("re_");
}

function pathOf(resourceId: string): string {
  return isRefund(resourceId) ? refundPath(resourceId) : paymentPath(resourceId);
}

export async function readResource(deps: Deps, request: KeyedRequest, resourceId: string): Promise<Resource> {
  const { tenantId } = request.caller;
  const view = isRefund(resourceId)
    ? await withDatabase(() => readRefund(deps.db.sql, tenantId, resourceId))
    : null;
  const payment = await withDatabase(() =>
    readPayment(deps.db.sql, tenantId, view?.refund.paymentId ?? resourceId),
  );
  if (payment === null) throw lostUnderway(deps, request, resourceId);
  return { payment, refund: view?.refund ?? null, refundResolution: view?.resolution ?? null };
}

/** Key and resource commit together, so the rows were put back to an older state while the caller waited. */
function lostUnderway(deps: Deps, { operation }: KeyedRequest, resourceId: string): PawlError {
  deps.log.error(
    { operation, resource: resourceId },
    "a key's resource is gone: the database is an older one",
  );
  return new PawlError(
    "service_unavailable",
    "The database was restored under the request; the same key is safe to send again.",
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

export function inProgress(payment: Payment, refund: Refund | null = null): PawlError {
  return new PawlError(
    "idempotency_key_in_progress",
    "The first request with this key has no final answer yet.",
    { payment, ...(refund === null ? {} : { refund }), retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

export function expired(
  payment: Payment,
  detail = "The key has expired; its payment exists and is shown here.",
): PawlError {
  return new PawlError("idempotency_key_expired", detail, { payment });
}
