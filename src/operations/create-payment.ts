import { PawlError } from "../domain/errors.js";
import type { Payment, PaymentInput } from "../domain/payment.js";
import { fingerprint } from "../lib/fingerprint.js";
import { type AcceptRow, acceptRetry } from "../store/accept.js";
import { violatedConstraint, withDatabase } from "../store/db.js";
import { readOrderHolder } from "../store/payments.js";
import { acceptedPayment, acceptRow, type CreateRequest } from "./accept-row.js";
import { attemptIdsOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";
import {
  answerFromKey,
  expired,
  inProgress,
  type KeyedAnswer,
  type KeyedCall,
  keyNameOf,
  processing,
  RETRY_AFTER_SECONDS,
  readFormerKey,
  readKeyOf,
  refusalOfAttempt,
  type WaitPreference,
  waitForOutcome,
} from "./keyed-request.js";

export const CREATE_PAYMENT = "payments.create";

/** Rows that vanish between the claim and the look (a purge, a freed order id) are looked for again so many times. */
const MOST_LOOKS = 5;

/**
 * Records key, payment, attempt and event in one commit, then waits for the worker as `wait` says. The same key with
 * the same request never charges twice: it replays, waits, or is told that the first still runs.
 * Throws PawlError: idempotency_key_in_progress, _reused, _expired, merchant_order_id_taken, amount_not_supported,
 * provider_unavailable (proven to be without effect), service_unavailable.
 */
export async function createPayment(
  deps: Deps,
  call: KeyedCall,
  input: PaymentInput,
  wait: WaitPreference,
): Promise<KeyedAnswer> {
  const operation = CREATE_PAYMENT;
  const request = { ...call, operation, fingerprint: fingerprint(operation, [], input), input, wait };
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const first = deps.recovery.isRecovering() ? null : await runFirst(deps, request);
    const answer = first ?? (await answerFromRecord(deps, request));
    if (answer !== null) return answer;
  }
  throw new PawlError(
    "service_unavailable",
    "The key's record kept changing; the same key is safe to send again.",
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** Accepts the request as the key's first; null: key, derived attempt or order id stands already. */
async function runFirst(deps: Deps, request: CreateRequest): Promise<KeyedAnswer | null> {
  const [own, ...others] = deps.accepter.searchesRuns
    ? attemptIdsOf(deps.installationSecret, keyNameOf(request))
    : [];
  return runWithoutRecord(deps, request, 1, own === undefined ? null : others);
}

/** Null: nothing is written, since somebody is in the way, or the process had not heard what became of the database. */
async function runWithoutRecord(
  deps: Deps,
  request: CreateRequest,
  run: number,
  otherRuns: readonly string[] | null,
): Promise<KeyedAnswer | null> {
  const row = acceptRow(deps, request, run, otherRuns);
  try {
    const accepted = await withDatabase(() => deps.accepter.add(row));
    if (accepted.type === "accepted") return await settle(deps, request, row, accepted.acceptedAt);
    if (accepted.type === "out_of_place") await deps.recovery.check();
    return null;
  } catch (error) {
    if (violatedConstraint(error) !== null) return null;
    throw error;
  }
}

/** Who stands in the way decides the answer: the key is looked at before the order id. Null: nobody does any more. */
async function answerFromRecord(deps: Deps, request: CreateRequest): Promise<KeyedAnswer | null> {
  const record = await readKeyOf(deps, request);
  if (record !== null) {
    return answerFromKey(deps, request, record, (run) => runAfresh(deps, request, run, record.run));
  }
  const former = await readFormerKey(deps, request);
  if (former.type === "used" || former.type === "open") {
    // Its record may stand by now: another request was accepted in between.
    if ((await readKeyOf(deps, request)) !== null) return null;
    throw former.type === "used" ? expired(former.run.payment) : inProgress(former.run.payment);
  }
  deps.recovery.refuseWhileRecovering();
  const holder = await orderHolder(deps, request);
  if (holder !== null) throw orderIdTaken(holder);
  // The others are proven to be without effect, and looked at again by the worker before it sends.
  return former.type === "free" ? runWithoutRecord(deps, request, former.next, []) : null;
}

/** The last run is proven to be without effect: this request becomes the next run. Null: another was first. */
async function runAfresh(
  deps: Deps,
  request: CreateRequest,
  run: number,
  after: number,
): Promise<KeyedAnswer | null> {
  deps.recovery.refuseWhileRecovering();
  const row = acceptRow(deps, request, run);
  try {
    const acceptedAt = await withDatabase(() => acceptRetry(deps.db.sql, row, after));
    return acceptedAt === null ? null : await settle(deps, request, row, acceptedAt);
  } catch (error) {
    if (violatedConstraint(error) === null) throw error;
    const holder = await orderHolder(deps, request);
    if (holder !== null) throw orderIdTaken(holder);
    // This run's row was lost with a backup and made again, and the key's record is from before it.
    const refusal = await refusalOfAttempt(deps, request, row.attempt_id);
    if (refusal !== null && (await readKeyOf(deps, request))?.run !== run) throw refusal;
    // Freed, or begun by another request since: look again.
    return null;
  }
}

function settle(deps: Deps, request: CreateRequest, row: AcceptRow, acceptedAt: Date): Promise<KeyedAnswer> {
  const accepted = { attemptId: row.attempt_id, run: row.run, resourceId: row.payment_id };
  return waitForOutcome(deps, request, accepted, () =>
    processing({ payment: acceptedPayment(row, acceptedAt), refund: null, refundResolution: null }),
  );
}

async function orderHolder(deps: Deps, { caller, input }: CreateRequest): Promise<Payment | null> {
  const orderId = input.merchant_order_id;
  if (orderId === null) return null;
  return withDatabase(() => readOrderHolder(deps.db.sql, caller.tenantId, orderId));
}

function orderIdTaken(payment: Payment): PawlError {
  return new PawlError(
    "merchant_order_id_taken",
    "Another payment holds this merchant_order_id; it is shown here.",
    { payment },
  );
}
