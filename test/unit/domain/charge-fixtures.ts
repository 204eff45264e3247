import { type Applied, applyChange } from "../../../src/domain/apply-change.js";
import type { Attempt, AttemptState } from "../../../src/domain/attempt.js";
import { afterLookup, afterSend } from "../../../src/domain/charge-answers.js";
import type { Change, ChargePolicy, ChargeView, Then } from "../../../src/domain/charge-change.js";
import { type AccountView, firstStep } from "../../../src/domain/charge-steps.js";
import type { EarlierRuns } from "../../../src/domain/earlier-runs.js";
import type { Failure, NextAction, Payment } from "../../../src/domain/payment.js";
import type {
  ChargeCall,
  ChargeStatus,
  Evidence,
  LookupOutcome,
  NotPerformedReason,
  ProviderCharge,
  SendOutcome,
  UnknownReason,
} from "../../../src/domain/provider.js";

const ACCEPTED_AT = new Date("2026-01-15T10:00:00.000Z");
export const BUDGET_MS = 120_000;
export const KEY_LIFETIME_MS = 82_800_000;
export const REVIEW_AFTER_MS = 86_400_000;
export const LONGEST_WAIT_MS = 300_000;
/** How often an authorisation is looked at that should stand. */
export const HELD_LOOK_MS = 21_600_000;
export const CUSTOMER_EXPIRY_MS = 86_400_000;

/** The defaults of the settings, without jitter: a wait is three quarters of its whole. */
export const POLICY: ChargePolicy = {
  retryBudgetMs: BUDGET_MS,
  keyLifetimeMs: KEY_LIFETIME_MS,
  reviewAfterMs: REVIEW_AFTER_MS,
  customerActionExpiryMs: CUSTOMER_EXPIRY_MS,
  retry: { firstMs: 1_000, mostMs: LONGEST_WAIT_MS },
  follow: { firstMs: 2_000, mostMs: LONGEST_WAIT_MS },
  random: () => 0.5,
};

export const OWN_ACCOUNT: AccountView = { type: "known", accountId: "acct_own", livemode: false };
export const UNKNOWN_ACCOUNT: AccountView = { type: "unknown", reason: "unauthorized" };
export const EVIDENCE: Evidence = { httpStatus: 200, code: null, requestId: "req_1" };
export const CHARGE_ID = "pi_own";

export function at(afterMs: number): Date {
  return new Date(ACCEPTED_AT.getTime() + afterMs);
}

const BEFORE_OBJECT: readonly AttemptState[] = ["started", "creating", "create_unknown"];
const CONFIRM_SENT: readonly AttemptState[] = ["confirming", "confirm_unknown", "following", "fencing"];

/** An attempt as its row would be in that state, after first sends without trouble. */
export function attemptIn(state: AttemptState, patch: Partial<Attempt> = {}): Attempt {
  const unknown = state === "create_unknown" || state === "confirm_unknown";
  return {
    tenantId: "ten_own",
    id: "att_0123456789abcdef0123456789abcdef",
    paymentId: "pay_own",
    kind: "charge",
    operation: "payments.create",
    idempotencyKey: "order-17",
    run: 1,
    requestId: "req_http",
    amount: null,
    refundId: null,
    state,
    fence: 1,
    provider: "stripe",
    providerAccount: "acct_own",
    livemode: false,
    parameters: "{}",
    providerPaymentId: BEFORE_OBJECT.includes(state) ? null : CHARGE_ID,
    unresolved: unknown || state === "fencing",
    keySpent: false,
    createFirstSentAt: state === "started" ? null : ACCEPTED_AT,
    confirmFirstSentAt: CONFIRM_SENT.includes(state) ? ACCEPTED_AT : null,
    fenceFirstSentAt: state === "fencing" ? ACCEPTED_AT : null,
    effectFirstSentAt: null,
    fenceRound: 1,
    waits: 0,
    waitReason: null,
    unknownSince: unknown ? ACCEPTED_AT : null,
    instruction: null,
    createdAt: ACCEPTED_AT,
    ...patch,
  };
}

export function paymentWith(patch: Partial<Payment> = {}): Payment {
  return {
    tenantId: "ten_own",
    id: "pay_own",
    status: "processing",
    version: 1,
    amount: 4200,
    currency: "usd",
    captureMethod: "automatic",
    paymentMethod: "pm_card_visa",
    customer: null,
    merchantOrderId: "order-17",
    holdsOrderId: true,
    description: null,
    statementDescriptor: null,
    returnUrl: null,
    metadata: {},
    provider: "stripe",
    providerPaymentId: null,
    nextAction: null,
    failure: null,
    resolution: null,
    amountCapturable: 0,
    amountCaptured: 0,
    amountRefunded: 0,
    refundReserved: 0,
    openEffect: null,
    authorizedUntil: null,
    cancellationReason: null,
    disputes: [],
    livemode: false,
    createdAt: ACCEPTED_AT,
    updatedAt: ACCEPTED_AT,
    ...patch,
  };
}

export interface Scene {
  readonly attempt?: Partial<Attempt>;
  readonly payment?: Partial<Payment>;
  /** How long after the accept; 1 s when left out. */
  readonly afterMs?: number;
  readonly policy?: Partial<ChargePolicy>;
  readonly recovering?: boolean;
  readonly earlierRuns?: EarlierRuns;
}

export function viewIn(state: AttemptState, scene: Scene = {}): ChargeView {
  return {
    attempt: attemptIn(state, scene.attempt),
    payment: paymentWith(scene.payment),
    refund: null,
    now: at(scene.afterMs ?? 1_000),
    policy: { ...POLICY, ...scene.policy },
    recovering: scene.recovering ?? false,
    earlierRuns: scene.earlierRuns ?? "harmless",
  };
}

export const DECLINED: Failure = {
  code: "card_declined",
  decline_code: "insufficient_funds",
  message: "Your card has insufficient funds.",
  advice_code: null,
  retry: "new_key",
};
export const NEXT_ACTION: NextAction = {
  type: "redirect_to_url",
  redirect_url: "https://bank.example/3ds",
  client_secret: null,
};

function chargeThatIs(status: ChargeStatus, patch: Partial<ProviderCharge> = {}): ProviderCharge {
  return {
    id: CHARGE_ID,
    status,
    amount: 4200,
    currency: "usd",
    amountCapturable: status === "authorized" ? 4200 : 0,
    amountCaptured: status === "succeeded" ? 4200 : 0,
    livemode: false,
    attemptId: "att_0123456789abcdef0123456789abcdef",
    tenantId: "ten_own",
    nextAction: status === "requires_action" ? NEXT_ACTION : null,
    failure: status === "declined" ? DECLINED : null,
    authorizedUntil: null,
    lapsed: false,
    fee: null,
    ...patch,
  };
}

export function object(
  status: ChargeStatus,
  patch: Partial<ProviderCharge> = {},
  replayed = false,
): SendOutcome {
  return { type: "object", charge: chargeThatIs(status, patch), replayed, evidence: EVIDENCE };
}

export function replayedObject(status: ChargeStatus): SendOutcome {
  return object(status, {}, true);
}

/** An answer to a send, or its absence, that shows no object: of a charge as of a refund. */
export type Refusal = Exclude<SendOutcome, { type: "object" }>;
export type NoObject = Exclude<LookupOutcome, { type: "found" }>;

export function decline(replayed = false): Refusal {
  return { type: "declined", failure: DECLINED, replayed, evidence: EVIDENCE };
}

export function rejection(): Refusal {
  return { type: "rejected", failure: { ...DECLINED, code: "invalid_request_error" }, evidence: EVIDENCE };
}

export function notPerformed(reason: NotPerformedReason, retryAfterMs: number | null = null): Refusal {
  return { type: "not_performed", reason, retryAfterMs, evidence: EVIDENCE };
}

export function unknown(
  reason: UnknownReason,
  keySpent = false,
  retryAfterMs: number | null = null,
): Refusal {
  return { type: "unknown", reason, keySpent, retryAfterMs, evidence: EVIDENCE };
}

export function found(status: ChargeStatus, patch: Partial<ProviderCharge> = {}): LookupOutcome {
  return { type: "found", charge: chargeThatIs(status, patch), evidence: EVIDENCE };
}

export const ABSENT: NoObject = { type: "absent", evidence: EVIDENCE };
export const MISSING: NoObject = { type: "missing", evidence: EVIDENCE };

export function unanswered(
  reason: (LookupOutcome & { type: "unanswered" })["reason"],
  retryAfterMs: number | null = null,
): NoObject {
  return { type: "unanswered", reason, retryAfterMs, evidence: EVIDENCE };
}

export interface Decided extends Applied {
  readonly change: Change;
  readonly then: Then;
  /** The same time, with what the decision made of attempt and payment: for the next decision. */
  readonly view: ChargeView;
}

export function decided(view: ChargeView, change: Change): Decided {
  const applied = applyChange(view, change);
  const { attempt, payment, refund } = applied;
  return { ...applied, change, then: change.then, view: { ...view, attempt, payment, refund } };
}

/** The answer to a send, decided and applied. */
export function sent(view: ChargeView, call: ChargeCall, outcome: SendOutcome): Decided {
  return decided(view, afterSend(view, call, outcome));
}

/** The answer to a question, decided and applied. */
export function asked(view: ChargeView, question: "find" | "get", outcome: LookupOutcome): Decided {
  return decided(view, afterLookup(view, question, outcome));
}

/** The first step of a claim, applied where it is a change. */
export function claimed(view: ChargeView, account: AccountView = OWN_ACCOUNT, markedNow = false): Decided {
  const step = firstStep(view, account, markedNow);
  if (!("type" in step)) return decided(view, step);
  return { ...unmoved(view), change: NO_CHANGE, then: step, view };
}

/** What a step that writes nothing leaves. */
export function unmoved({ attempt, payment, refund }: ChargeView): Applied {
  return { attempt, payment, paymentMoved: false, refund, refundMoved: false };
}

export const NO_CHANGE: Change = {
  attemptEvents: [],
  attempt: {
    unresolved: false,
    keySpent: false,
    fenceRound: 1,
    waits: 0,
    waitReason: null,
    unknownSince: null,
  },
  paymentEvent: null,
  payment: {},
  reason: "no change",
  review: null,
  note: null,
  then: { type: "end" },
};

export function later(view: ChargeView, afterMs: number): ChargeView {
  return { ...view, now: at(afterMs) };
}

export const SEND_CREATE: Then = { type: "send", call: "create" };
export const SEND_CONFIRM: Then = { type: "send", call: "confirm" };
export const SEND_FENCE: Then = { type: "send", call: "fence" };
export const ASK_FIND: Then = { type: "ask", question: "find" };
export const ASK_GET: Then = { type: "ask", question: "get" };
export const END: Then = { type: "end" };
