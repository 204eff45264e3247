import { type Applied, applyChange } from "../../../src/domain/apply-change.js";
import type { Attempt } from "../../../src/domain/attempt.js";
import type { Change, ChargeView, Question } from "../../../src/domain/charge-change.js";
import type { AccountView } from "../../../src/domain/charge-steps.js";
import { afterEffectLookup, afterEffectSend } from "../../../src/domain/effect-answers.js";
import { firstEffectStep } from "../../../src/domain/effect-steps.js";
import { questionOf } from "../../../src/domain/effect-view.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import {
  EFFECT_CALLS,
  type EffectCall,
  type LookupOutcome,
  type RefundLookupOutcome,
  type RefundSendOutcome,
  type SendOutcome,
} from "../../../src/domain/provider.js";
import type { Refund, RefundStatus } from "../../../src/domain/refund.js";
import {
  at,
  BUDGET_MS,
  DECLINED,
  KEY_LIFETIME_MS,
  OWN_ACCOUNT,
  REVIEW_AFTER_MS,
  UNKNOWN_ACCOUNT,
} from "./charge-fixtures.js";
import {
  CHARGE_EFFECT_LOOKUPS,
  CHARGE_EFFECT_OUTCOMES,
  REFUND_LOOKUPS,
  REFUND_OUTCOMES,
} from "./charge-outcomes.js";
import { EFFECT_STATES, type EffectState, effectView, PROVIDER_REFUND_ID } from "./effect-fixtures.js";

export type EffectOutcome = SendOutcome | RefundSendOutcome | LookupOutcome | RefundLookupOutcome;

/** One decision of an effect's: from a row as it can be, and an answer as there can be one. */
export interface EffectCase {
  readonly kind: EffectCall;
  readonly view: ChargeView;
  readonly what: "send" | "first" | Question;
  readonly outcome: EffectOutcome | null;
  readonly change: Change;
  readonly applied: Applied;
}

/** What can be captured or canceled can be moved by others meanwhile: by the charge's own look, by an event. */
const STATUSES: Record<EffectCall, readonly PaymentStatus[]> = {
  capture: PAYMENT_STATUSES,
  cancel: PAYMENT_STATUSES,
  refund: ["succeeded"],
};

/** The refund's statuses that go with a state of its attempt, and whether the provider's id of it is known by then. */
const REFUNDS: Record<EffectState, readonly Partial<Refund>[]> = {
  started: refunds(["processing", "needs_review"], [null]),
  sending: refunds(["processing", "needs_review"], [null, PROVIDER_REFUND_ID]),
  send_unknown: refunds(["processing", "needs_review"], [null, PROVIDER_REFUND_ID]),
  following: refunds(["processing", "needs_review"], [PROVIDER_REFUND_ID]),
  completed: [
    ...refunds(["succeeded"], [PROVIDER_REFUND_ID]),
    ...refunds(["failed"], [null, PROVIDER_REFUND_ID]).map((one) => ({ ...one, failure: DECLINED })),
  ],
};

function refunds(statuses: readonly RefundStatus[], ids: readonly (string | null)[]): Partial<Refund>[] {
  return statuses.flatMap((status) => ids.map((providerRefundId) => ({ status, providerRefundId })));
}

const TIMES_MS = [1_000, BUDGET_MS, KEY_LIFETIME_MS, REVIEW_AFTER_MS + 10_000];
const MARKS: readonly Partial<Attempt>[] = [
  {},
  { unresolved: true },
  { unresolved: true, keySpent: true },
  { waitReason: "state_conflict" },
  { waitReason: "key_mismatch", unresolved: true },
  { waits: 7, providerAccount: null },
  { unknownSince: at(0) },
];
const ACCOUNTS: readonly AccountView[] = [
  OWN_ACCOUNT,
  UNKNOWN_ACCOUNT,
  { type: "known", accountId: "acct_other", livemode: false },
  { type: "known", accountId: "acct_own", livemode: true },
  { type: "known", accountId: "key_rotated", livemode: false },
];

/** Every view of a state: each status, time and mark that its row can have. */
function viewsIn(kind: EffectCall, state: EffectState): ChargeView[] {
  // Where nothing is under way or has ended, nothing is unresolved.
  const marks = state === "started" || state === "completed" ? MARKS.filter((one) => !one.unresolved) : MARKS;
  const ofRefund = kind === "refund" ? REFUNDS[state] : [{}];
  return STATUSES[kind].flatMap((status) =>
    ofRefund.flatMap((refund) =>
      TIMES_MS.flatMap((afterMs) =>
        marks.map((attempt) => effectView(kind, state, { attempt, payment: { status }, refund, afterMs })),
      ),
    ),
  );
}

function caseOf(
  view: ChargeView,
  what: EffectCase["what"],
  outcome: EffectOutcome | null,
  change: Change,
): EffectCase {
  const kind = view.attempt.kind as EffectCall;
  return { kind, view, what, outcome, change, applied: applyChange(view, change) };
}

const EFFECT_VIEWS = EFFECT_CALLS.flatMap((kind) => EFFECT_STATES.flatMap((state) => viewsIn(kind, state)));

export const EFFECT_SENDS: readonly EffectCase[] = EFFECT_VIEWS.flatMap((view) => {
  if (view.attempt.state !== "sending") return [];
  const outcomes = view.attempt.kind === "refund" ? REFUND_OUTCOMES : CHARGE_EFFECT_OUTCOMES;
  return outcomes.map((outcome) => caseOf(view, "send", outcome, afterEffectSend(view, outcome)));
});

export const EFFECT_QUESTIONS: readonly EffectCase[] = EFFECT_VIEWS.flatMap((view) => {
  if (view.attempt.state === "sending") return [];
  const question = questionOf(view);
  const outcomes = view.attempt.kind === "refund" ? REFUND_LOOKUPS : CHARGE_EFFECT_LOOKUPS;
  return outcomes
    .filter((outcome) => question === "find_refund" || outcome.type !== "absent")
    .map((outcome) => caseOf(view, question, outcome, afterEffectLookup(view, question, outcome)));
});

export const EFFECT_FIRSTS: readonly EffectCase[] = EFFECT_VIEWS.flatMap((view) =>
  ACCOUNTS.flatMap((account) =>
    [true, false].flatMap((markedNow) => {
      const step = firstEffectStep(view, account, markedNow);
      return "type" in step ? [] : [caseOf(view, "first", null, step)];
    }),
  ),
);

export const EFFECT_CASES: readonly EffectCase[] = [...EFFECT_SENDS, ...EFFECT_QUESTIONS, ...EFFECT_FIRSTS];

/** Of the cases that break a rule, so many kinds are shown. */
const MOST_SHOWN = 12;

const told = ({ kind, view, what, change }: EffectCase) =>
  `${kind} in ${view.attempt.state}, ${view.payment.status}/${view.refund?.status ?? "-"}, ${what}: ` +
  `${change.note?.outcome ?? change.reason} → ${change.then.type}`;
export const faults = (cases: readonly EffectCase[], isFault: (one: EffectCase) => boolean) =>
  [...new Set(cases.filter(isFault).map(told))].slice(0, MOST_SHOWN);

export const wasCompleted = ({ view }: EffectCase) => view.attempt.state === "completed";
export const ends = (one: EffectCase) => one.change.then.type === "end" || endsByRow(one);
/** Ended on the word of its row alone, and asked about all the same. */
const endsByRow = ({ change }: EffectCase) =>
  change.answer?.type === "not_performed" && change.then.type === "wait" && change.attempt.unresolved;
export const sendsNext = ({ change }: EffectCase) => change.then.type === "send";

/** The object that an answer shows, where it is this attempt's own. */
export function chargeShown({ outcome }: EffectCase) {
  return outcome !== null && "charge" in outcome ? outcome.charge : null;
}
export function refundShown({ outcome }: EffectCase) {
  return outcome !== null && "refund" in outcome ? outcome.refund : null;
}
