import { type Admission, admit, type EffectRequest } from "../domain/admit-effect.js";
import { refundDocument } from "../domain/documents.js";
import { PawlError } from "../domain/errors.js";
import { problemResponse } from "../domain/final-response.js";
import type { Payment } from "../domain/payment.js";
import type { EffectInput } from "../domain/provider.js";
import type { Refund } from "../domain/refund.js";
import { fingerprint } from "../lib/fingerprint.js";
import { newId } from "../lib/ids.js";
import {
  acceptEffect,
  type EffectRow,
  type KeyClaim,
  type ReadPayment,
  readForEffect,
  storeRefusal,
} from "../store/accept-effect.js";
import { violatedConstraint, withDatabase } from "../store/db.js";
import { readPayment } from "../store/payments.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";
import {
  answerFromKey,
  type KeyedAnswer,
  type KeyedCall,
  type KeyedRequest,
  keyNameOf,
  processing,
  RETRY_AFTER_SECONDS,
  readKeyOf,
  readResource,
  refusalOfFormerKey,
  type WaitPreference,
  waitForOutcome,
} from "./keyed-request.js";

/** The operations under which the keys of effects are kept. */
export const EFFECT_OPERATIONS = {
  capture: "payments.capture",
  cancel: "payments.cancel",
  refund: "refunds.create",
} as const;

/** Records that change between two looks (a run that ends, a purge) are looked at again so many times. */
const MOST_LOOKS = 5;
/** Each further judgement means that another writer of the payment went on: of many refunds at once, one may wait long. */
const MOST_JUDGEMENTS = 200;

interface Request extends KeyedRequest {
  readonly paymentId: string;
  readonly effect: EffectRequest;
}

/**
 * Records key and attempt of a capture, cancel or refund in one statement under the payment's lock, then waits for the
 * worker as `wait` says. What the payment's state refuses is stored as the key's answer.
 * Throws PawlError: not_found, idempotency_key_in_progress, _reused, _expired, operation_in_progress,
 * amount_not_supported, provider_unavailable (proven to be without effect), service_unavailable.
 */
export async function requestEffect(
  deps: Deps,
  call: KeyedCall,
  paymentId: string,
  asked: EffectRequest,
  wait: WaitPreference,
): Promise<KeyedAnswer> {
  const payment = await withDatabase(() => readPayment(deps.db.sql, call.caller.tenantId, paymentId));
  if (payment === null) throw noSuchPayment();
  const operation = EFFECT_OPERATIONS[asked.kind];
  const effect = withoutDefaults(asked, payment);
  const print = fingerprint(operation, [paymentId], effect);
  const request: Request = { ...call, operation, fingerprint: print, wait, paymentId, effect };
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const record = await readKeyOf(deps, request);
    const answer =
      record === null
        ? await runAs(deps, request, 1)
        : await answerFromKey(deps, request, record, (run) => runAs(deps, request, run));
    if (answer !== null) return answer;
  }
  throw new PawlError(
    "service_unavailable",
    "The key's record kept changing; the same key is safe to send again.",
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** All of an authorisation is what a capture takes by default: said or left out, it is the same request. */
function withoutDefaults(asked: EffectRequest, payment: Payment): EffectRequest {
  return asked.kind === "capture" && asked.amount === payment.amount ? { ...asked, amount: null } : asked;
}

/**
 * Null: the key stands, or has changed since it was read. A payment that is written between its reading and the accept
 * is read and judged again.
 */
async function runAs(deps: Deps, request: Request, run: number): Promise<KeyedAnswer | null> {
  // Also no refusal: what the payment was refused for may be older than the truth.
  deps.recovery.refuseWhileRecovering();
  const { caller, paymentId, effect } = request;
  for (let judged = 0; judged < MOST_JUDGEMENTS; judged += 1) {
    const read = await withDatabase(() => readForEffect(deps.db.sql, caller.tenantId, paymentId));
    if (read === null) throw noSuchPayment();
    const admission = admit(read.payment, effect);
    const claim = claimOf(request, read.payment, run);
    const tried =
      admission.type === "refused"
        ? await refuse(deps, request, claim, read.payment, admission)
        : await accept(deps, request, claim, effectRow(deps, request, claim, read, admission.amount));
    if (tried === "key_stands") return null;
    if (tried !== "moved") return tried;
  }
  throw new PawlError(
    "service_unavailable",
    "The payment kept changing; the same key is safe to send again.",
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

function claimOf(request: Request, payment: Payment, run: number): KeyClaim {
  return {
    tenant_id: payment.tenantId,
    payment_id: payment.id,
    from_version: payment.version,
    operation: request.operation,
    key: request.key,
    fingerprint: request.fingerprint,
    run,
    resource_id: request.effect.kind === "refund" ? newId("re") : payment.id,
    request_id: request.context.requestId,
  };
}

/** What may be admitted later is thrown, so that nothing of it stays; what may not is the key's answer. */
async function refuse(
  deps: Deps,
  request: Request,
  claim: KeyClaim,
  payment: Payment,
  admission: Admission & { readonly type: "refused" },
): Promise<KeyedAnswer | Unclaimed> {
  const { code, detail, passing } = admission;
  // Another request with this key may have been accepted just now, or long ago: that is answered first.
  if ((await readKeyOf(deps, request))?.run === claim.run) return "key_stands";
  const former = claim.run === 1 ? await refusalOfFormerKey(deps, request) : null;
  if (former !== null) throw former;
  if (passing) throw new PawlError(code, detail, { payment, retryAfterSeconds: RETRY_AFTER_SECONDS });
  const response = problemResponse(code, detail, { requestId: request.context.requestId, payment });
  // No refund was made, so the payment is what the key stands for.
  const kept = { ...claim, resource_id: payment.id };
  const { claimed, keyExpiresAt } = await withDatabase(() =>
    storeRefusal(deps.db.sql, kept, response, deps.settings.retentionMs, deps.recovery.tells),
  );
  if (claimed === "out_of_place") return outOfPlace(deps);
  return claimed === "claimed" ? { type: "final", response, replayed: false, keyExpiresAt } : claimed;
}

type Unclaimed = "moved" | "key_stands";

async function accept(
  deps: Deps,
  request: Request,
  claim: KeyClaim,
  row: EffectRow,
): Promise<KeyedAnswer | Unclaimed> {
  try {
    const claimed = await withDatabase(() => acceptEffect(deps.db.sql, row, deps.recovery.tells));
    if (claimed === "unsearched") {
      const former = await refusalOfFormerKey(deps, request);
      if (former !== null) throw former;
      return await accept(deps, request, claim, { ...row, searched: true });
    }
    if (claimed === "out_of_place") return await outOfPlace(deps);
    if (claimed !== "claimed") return claimed;
  } catch (error) {
    if (violatedConstraint(error) === null) throw error;
    // The attempt derived from this key stands, and its record does not: it was purged.
    const refusal = await refusalOfFormerKey(deps, request);
    if (refusal !== null) throw refusal;
    return "key_stands";
  }
  const accepted = { attemptId: row.attempt_id, run: claim.run, resourceId: claim.resource_id };
  return waitForOutcome(deps, request, accepted, async () =>
    processing(await readResource(deps, request, claim.resource_id)),
  );
}

/** Throws service_unavailable, now that this process has heard of it too; `moved`: it is over. */
async function outOfPlace({ recovery }: Deps): Promise<"moved"> {
  await recovery.check();
  recovery.refuseWhileRecovering();
  return "moved";
}

function effectRow(
  deps: Deps,
  request: Request,
  claim: KeyClaim,
  { payment, providerAccount, now }: ReadPayment,
  amount: number | null,
): EffectRow {
  const { caller, effect } = request;
  const attemptId = attemptIdOf(deps.installationSecret, keyNameOf(request), claim.run);
  const chargeId = payment.providerPaymentId;
  if (chargeId === null)
    throw new Error(`the ${payment.status} payment ${payment.id} has no provider object`);
  const reference = { attemptId, tenantId: caller.tenantId };
  const prepared = deps.provider.prepareEffect(inputOf(effect, payment, chargeId, amount), reference);
  if (!prepared.ok) {
    throw new PawlError("amount_not_supported", prepared.detail, {
      faults: [{ pointer: prepared.pointer, detail: prepared.detail }],
    });
  }
  return {
    ...claim,
    attempt_id: attemptId,
    kind: effect.kind,
    amount,
    provider: payment.provider,
    provider_account: providerAccount,
    provider_payment_id: chargeId,
    livemode: payment.livemode,
    parameters: prepared.parameters,
    timeline_id: newId("tl"),
    reason: requestedAs(effect),
    opens: effect.kind !== "refund",
    searched: false,
    refund:
      effect.kind === "refund" && amount !== null
        ? refundRow({ claim, attemptId, payment, amount, effect, now })
        : null,
  };
}

function refundRow(made: {
  readonly claim: KeyClaim;
  readonly attemptId: string;
  readonly payment: Payment;
  readonly amount: number;
  readonly effect: EffectRequest & { readonly kind: "refund" };
  readonly now: Date;
}): NonNullable<EffectRow["refund"]> {
  const { claim, payment, amount, effect, now } = made;
  const refund: Refund = {
    tenantId: claim.tenant_id,
    id: claim.resource_id,
    paymentId: payment.id,
    attemptId: made.attemptId,
    status: "processing",
    version: 1,
    amount,
    currency: payment.currency,
    reason: effect.reason,
    metadata: effect.metadata,
    provider: payment.provider,
    providerRefundId: null,
    failure: null,
    external: false,
    createdAt: now,
    updatedAt: now,
  };
  const { id, currency, reason, metadata } = refund;
  const document = JSON.stringify(refundDocument(refund));
  return { id, amount, currency, reason, metadata, event_id: newId("evt"), document };
}

function requestedAs(effect: EffectRequest): string {
  const said = effect.kind === "capture" ? null : effect.reason;
  return said === null ? `${effect.kind} requested` : `${effect.kind} requested: ${said}`;
}

function inputOf(
  effect: EffectRequest,
  payment: Payment,
  chargeId: string,
  amount: number | null,
): EffectInput {
  const { currency } = payment;
  if (effect.kind === "cancel") return { call: "cancel", reason: effect.reason };
  if (amount === null) throw new Error(`a ${effect.kind} was admitted without an amount`);
  return effect.kind === "capture"
    ? { call: "capture", amount, currency }
    : { call: "refund", chargeId, amount, currency, reason: effect.reason };
}

function noSuchPayment(): PawlError {
  return new PawlError("not_found", "There is no such payment.");
}
