import type { Attempt, AttemptState } from "../../../src/domain/attempt.js";
import type { Change, ChargePolicy, ChargeView, Question, Then } from "../../../src/domain/charge-change.js";
import type { AccountView } from "../../../src/domain/charge-steps.js";
import type { EarlierRuns } from "../../../src/domain/earlier-runs.js";
import { afterEffectLookup, afterEffectSend } from "../../../src/domain/effect-answers.js";
import { firstEffectStep } from "../../../src/domain/effect-steps.js";
import type { Payment } from "../../../src/domain/payment.js";
import type {
  EffectCall,
  LookupOutcome,
  ProviderRefund,
  ProviderRefundStatus,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import type { Refund } from "../../../src/domain/refund.js";
import {
  at,
  attemptIn,
  CHARGE_ID,
  DECLINED,
  type Decided,
  decided,
  EVIDENCE,
  NO_CHANGE,
  OWN_ACCOUNT,
  POLICY,
  paymentWith,
  unmoved,
} from "./charge-fixtures.js";

export const EFFECT_STATES = ["started", "sending", "send_unknown", "following", "completed"] as const;
export type EffectState = (typeof EFFECT_STATES)[number] & AttemptState;

export const EFFECT_ID = "att_effect0000000000000000000000000";
export const REFUND_ID = "re_own";
export const PROVIDER_REFUND_ID = "re_provider";
/** What the captures and refunds of these tests ask for, of an authorisation or a capture of 4200. */
export const EFFECT_AMOUNT = 1_000;

/** The attempt of an effect as its row would be in that state, after a first send without trouble. */
export function effectAttempt(kind: EffectCall, state: EffectState, patch: Partial<Attempt> = {}): Attempt {
  return attemptIn(state, {
    id: EFFECT_ID,
    kind,
    operation: kind === "refund" ? "refunds.create" : `payments.${kind}`,
    idempotencyKey: "effect-1",
    amount: kind === "cancel" ? null : EFFECT_AMOUNT,
    refundId: kind === "refund" ? REFUND_ID : null,
    providerPaymentId: CHARGE_ID,
    createFirstSentAt: null,
    effectFirstSentAt: state === "started" ? null : at(0),
    unresolved: state === "send_unknown",
    unknownSince: state === "send_unknown" ? at(0) : null,
    ...patch,
  });
}

export function refundWith(patch: Partial<Refund> = {}): Refund {
  return {
    tenantId: "ten_own",
    id: REFUND_ID,
    paymentId: "pay_own",
    attemptId: EFFECT_ID,
    status: "processing",
    version: 1,
    amount: EFFECT_AMOUNT,
    currency: "usd",
    reason: null,
    metadata: {},
    provider: "stripe",
    providerRefundId: null,
    failure: null,
    external: false,
    createdAt: at(0),
    updatedAt: at(0),
    ...patch,
  };
}

/** The payment that such an attempt works on: held and open for a capture or cancel, paid for a refund. */
function paymentFor(kind: EffectCall, state: EffectState, refund: Refund | null): Payment {
  if (kind === "refund") {
    return paymentWith({
      status: "succeeded",
      providerPaymentId: CHARGE_ID,
      amountCaptured: 4200,
      amountRefunded: refund?.status === "succeeded" ? refund.amount : 0,
      refundReserved: refund === null || refund.status === "failed" ? 0 : refund.amount,
    });
  }
  return paymentWith({
    status: "authorized",
    captureMethod: "manual",
    providerPaymentId: CHARGE_ID,
    amountCapturable: 4200,
    authorizedUntil: at(604_800_000),
    openEffect: state === "completed" ? null : EFFECT_ID,
  });
}

export interface EffectScene {
  readonly attempt?: Partial<Attempt>;
  readonly payment?: Partial<Payment>;
  readonly refund?: Partial<Refund>;
  /** How long after the effect's accept; 1 s when left out. */
  readonly afterMs?: number;
  readonly policy?: Partial<ChargePolicy>;
  readonly recovering?: boolean;
  readonly earlierRuns?: EarlierRuns;
}

export function effectView(kind: EffectCall, state: EffectState, scene: EffectScene = {}): ChargeView {
  const refund = kind === "refund" ? refundWith(scene.refund) : null;
  return {
    attempt: effectAttempt(kind, state, scene.attempt),
    payment: { ...paymentFor(kind, state, refund), ...scene.payment },
    refund,
    now: at(scene.afterMs ?? 1_000),
    policy: { ...POLICY, ...scene.policy },
    recovering: scene.recovering ?? false,
    earlierRuns: scene.earlierRuns ?? "harmless",
  };
}

function refundThatIs(status: ProviderRefundStatus, patch: Partial<ProviderRefund>): ProviderRefund {
  return {
    id: PROVIDER_REFUND_ID,
    chargeId: CHARGE_ID,
    status,
    amount: EFFECT_AMOUNT,
    currency: "usd",
    attemptId: EFFECT_ID,
    tenantId: "ten_own",
    failure: status === "failed" ? { ...DECLINED, code: "expired_or_canceled_card" } : null,
    ...patch,
  };
}

export function refundMade(
  status: ProviderRefundStatus,
  patch: Partial<ProviderRefund> = {},
  replayed = false,
): RefundSendOutcome {
  return { type: "refund", refund: refundThatIs(status, patch), replayed, evidence: EVIDENCE };
}

export function refundFound(
  status: ProviderRefundStatus,
  patch: Partial<ProviderRefund> = {},
): RefundLookupOutcome {
  return { type: "found", refund: refundThatIs(status, patch), evidence: EVIDENCE };
}

/** The answer to the effect's send, decided and applied. */
export function effectSent(view: ChargeView, outcome: SendOutcome | RefundSendOutcome): Decided {
  return decided(view, afterEffectSend(view, outcome));
}

/** The answer to a question about it, decided and applied. */
export function effectAsked(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): Decided {
  return decided(view, afterEffectLookup(view, question, outcome));
}

/** The first step of a claim, applied where it is a change. */
export function effectClaimed(
  view: ChargeView,
  account: AccountView = OWN_ACCOUNT,
  markedNow = false,
): Decided {
  const step: Then | Change = firstEffectStep(view, account, markedNow);
  if (!("type" in step)) return decided(view, step);
  return { ...unmoved(view), change: NO_CHANGE, then: step, view };
}

export const SEND_CAPTURE: Then = { type: "send", call: "capture" };
export const SEND_CANCEL: Then = { type: "send", call: "cancel" };
export const SEND_REFUND: Then = { type: "send", call: "refund" };
export const FIND_REFUND: Then = { type: "ask", question: "find_refund" };
export const GET_REFUND: Then = { type: "ask", question: "get_refund" };
