import type { AttemptState } from "./attempt.js";
import type { AttemptEventType } from "./attempt-machine.js";
import { backoffMs } from "./backoff.js";
import type { Change, ChargeView, TimelineNote } from "./charge-change.js";
import { budgetIsOver, keyLifetimeIsOver, resolved, unchanged } from "./charge-change.js";
import type { EffectEventType } from "./effect-machine.js";
import type { ReviewReason } from "./review-reason.js";
import { canPayment } from "./transition.js";

/** The longest wait between two questions about one unknown, whatever the settings and the provider say. */
export const LONGEST_WAIT_MS = 300_000;

/** Says least of all reasons for a review: every other tells more, and none gives way to it. */
export const OUTCOME_UNKNOWN = "outcome_unknown";

/** The provider object of a failed or canceled payment was paid, and that cannot simply be adopted. */
export const PAID_AFTER_END = "paid_after_end";

/** The provider answers that it has no object of an id that is committed here. */
export const OBJECT_MISSING = "provider_object_missing";

export interface WaitFor {
  readonly reason: string;
  readonly note: TimelineNote | null;
  /** The provider's own Retry-After. */
  readonly retryAfterMs?: number | null;
  readonly events?: readonly (AttemptEventType | EffectEventType)[];
  readonly attempt?: Partial<Change["attempt"]>;
}

/** The provider knew a create's key with other parameters: only a person, or the object itself, can tell what that was. */
export const KEY_MISMATCH = "provider_key_mismatch";

export function isKeyMismatch(waitReason: string | null): boolean {
  return waitReason === "key_mismatch" || waitReason === KEY_MISMATCH;
}

/** Try or ask again later. An unknown that has lasted too long also opens a review; the asking goes on. */
export function waiting(view: ChargeView, wait: WaitFor): Change {
  const { attempt, payment, policy, now } = view;
  const patch = { ...unchanged(attempt), ...wait.attempt };
  const waits = attempt.waits + 1;
  // Past its budget, what cannot be asked about or ended is unknown too, and must not stay so unseen.
  const unknownSince = patch.unknownSince ?? (budgetIsOver(view) ? now : null);
  const unknownForMs = unknownSince === null ? 0 : now.getTime() - unknownSince.getTime();
  // Whatever the payment shows: a declined one whose object cannot be closed still holds its order id.
  const review = unknownForMs >= policy.reviewAfterMs ? OUTCOME_UNKNOWN : null;
  // An effect's unknown is its own review's; the payment's status is the charge's.
  const isCharge = attempt.kind === "charge" && payment.status === "processing";
  const waitReason = isKeyMismatch(attempt.waitReason) ? attempt.waitReason : wait.reason;
  return {
    attemptEvents: wait.events ?? [],
    attempt: { ...patch, unknownSince, waits, waitReason },
    paymentEvent: review !== null && isCharge ? "REVIEW" : null,
    payment: {},
    reason: wait.reason,
    review,
    note: wait.note,
    then: { type: "wait", ms: waitMs(view, waits, wait.retryAfterMs ?? 0) },
  };
}

/** The `looks`-th wait, from 1, between two looks at a pending or requires_action payment: a clock of its own. */
export function followMs(view: ChargeView, looks: number): number {
  return backoffMs(view.policy.follow, looks, view.policy.random);
}

/** How often an authorisation is looked at though it should stand: what the provider did not tell is found by then. */
export const HELD_LOOK_MS = 6 * 3_600_000;
/** After the moment at which an authorisation ends, the provider needs a little to say so. */
const LAPSE_MARGIN_MS = 1_000;

/** Until an authorisation is looked at again: when it should have lapsed, and not much later than that. */
export function heldMs(view: ChargeView, authorizedUntil: Date | null): number {
  const { attempt, now } = view;
  const leftMs = authorizedUntil === null ? HELD_LOOK_MS : authorizedUntil.getTime() - now.getTime();
  return leftMs > 0 ? Math.min(leftMs + LAPSE_MARGIN_MS, HELD_LOOK_MS) : followMs(view, attempt.waits + 1);
}

/** Ends with the budget, when a question or a fence is due. */
function waitMs(view: ChargeView, waits: number, retryAfterMs: number): number {
  const { attempt, policy, now } = view;
  const ms = Math.min(Math.max(backoffMs(policy.retry, waits, policy.random), retryAfterMs), LONGEST_WAIT_MS);
  const toBudgetEndMs = attempt.createdAt.getTime() + policy.retryBudgetMs - now.getTime();
  return toBudgetEndMs > 0 ? Math.min(ms, toBudgetEndMs) : ms;
}

/** A person must look. The attempt keeps its state and is asked about again later. */
export function underReview(view: ChargeView, reason: ReviewReason, note: TimelineNote | null): Change {
  const { attempt, payment } = view;
  const inFlight = attempt.state === "creating" || attempt.state === "confirming";
  // A declined payment whose closing is in doubt stays failed: only money that moved after the end reopens it.
  const ended = payment.status === "failed" || payment.status === "canceled";
  const opens = canPayment(payment.status, "REVIEW") && (!ended || reason === PAID_AFTER_END);
  return {
    attemptEvents: inFlight ? ["OUTCOME_UNKNOWN"] : [],
    attempt: {
      ...unchanged(attempt),
      unresolved: attempt.unresolved || inFlight,
      waits: attempt.waits + 1,
      waitReason: reason,
      unknownSince: attempt.unknownSince ?? view.now,
    },
    paymentEvent: opens ? "REVIEW" : null,
    payment: {},
    reason,
    review: reason,
    note,
    then: { type: "wait", ms: waitMs(view, attempt.waits + 1, 0) },
  };
}

/**
 * Proven to be without effect for the whole attempt: no provider object was ever committed, or it was canceled at the
 * provider and read back `canceled`. The same key runs afresh.
 */
export function notPerformed(view: ChargeView, reason: string, note: TimelineNote | null): Change {
  return {
    attemptEvents: ["END"],
    attempt: resolved(view.attempt),
    paymentEvent: "NOT_PERFORMED",
    payment: {
      nextAction: null,
      failure: {
        code: "provider_unavailable",
        decline_code: null,
        advice_code: null,
        message: "The provider did not perform the payment in time; nothing was charged.",
        retry: "same_key",
      },
      releaseOrderId: true,
    },
    reason,
    review: null,
    note,
    then: { type: "end" },
  };
}

/**
 * The same on the word of the row alone, which a restored backup may have made old. It stays unresolved, and is asked
 * about until there is an answer: no later run of its key sends before that.
 */
export function notPerformedByRow(view: ChargeView, reason: string, note: TimelineNote | null): Change {
  return { ...notPerformed(view, reason, note), ...askedAboutAfterwards(view, reason) };
}

/** Ended, and due. */
export function askedAboutAfterwards(view: ChargeView, reason: string): Pick<Change, "attempt" | "then"> {
  const { attempt, then } = waiting(view, { reason, note: null, attempt: { unresolved: true } });
  return { attempt, then };
}

/** An earlier run of the key has moved the money after all: this one ends, and nothing is sent for it. */
export function supersededByEarlierRun(view: ChargeView, note: TimelineNote | null): Change {
  return {
    attemptEvents: ["END"],
    attempt: resolved(view.attempt),
    paymentEvent: "CANCEL",
    payment: { nextAction: null, releaseOrderId: true },
    answer: {
      type: "refused",
      code: "invalid_state",
      detail: "An earlier payment with this Idempotency-Key was charged after all; this one is canceled.",
    },
    reason: "earlier_run_performed",
    review: null,
    note,
    then: { type: "end" },
  };
}

/** The confirm's effect is not visible and no earlier one is outstanding beyond the key's guard: confirm, or fence. */
export function confirmOrFence(
  view: ChargeView,
  events: readonly AttemptEventType[],
  note: TimelineNote | null,
): Change {
  const { attempt } = view;
  const late = budgetIsOver(view) || keyLifetimeIsOver(view, attempt.confirmFirstSentAt);
  const spent = attempt.state === "confirm_unknown" && attempt.keySpent;
  if (late || spent) return fence(view, events, note, late ? "retry_budget_over" : "provider_key_spent");
  return {
    attemptEvents: events,
    attempt: { ...unchanged(attempt), keySpent: false, waitReason: null },
    paymentEvent: null,
    payment: {},
    reason: "confirm",
    review: null,
    note,
    then: { type: "send", call: "confirm" },
  };
}

/** Cancel the object at the provider, so that no earlier call can charge it, then read it back. */
export function fence(
  view: ChargeView,
  events: readonly AttemptEventType[],
  note: TimelineNote | null,
  reason: string,
): Change {
  const { attempt } = view;
  const again = attempt.state === "fencing";
  return {
    attemptEvents: events,
    attempt: {
      ...unchanged(attempt),
      keySpent: false,
      fenceRound: again && attempt.keySpent ? attempt.fenceRound + 1 : attempt.fenceRound,
      waits: again ? attempt.waits + 1 : 0,
      waitReason: reason,
    },
    paymentEvent: null,
    payment: {},
    reason,
    review: null,
    note,
    then: { type: "send", call: "fence" },
  };
}

/** States in which a create may already have been sent and no object id is committed. */
export function isBeforeObject(state: AttemptState): boolean {
  return state === "started" || state === "creating" || state === "create_unknown";
}
