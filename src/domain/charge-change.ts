import type { Attempt } from "./attempt.js";
import type { AttemptEventType } from "./attempt-machine.js";
import type { WaitRange } from "./backoff.js";
import type { EarlierRuns } from "./earlier-runs.js";
import type { EffectEventType } from "./effect-machine.js";
import type { ErrorCode } from "./errors.js";
import type { CancellationReason, Failure, NextAction, Payment } from "./payment.js";
import type { PaymentEventType } from "./payment-machine.js";
import type { Evidence, ProviderCall, ProviderFee } from "./provider.js";
import type { Refund } from "./refund.js";
import type { RefundEventType } from "./refund-machine.js";
import type { ReviewReason } from "./review-reason.js";

/** Durations of a charge, in milliseconds, and the source of jitter. */
export interface ChargePolicy {
  /** From the accept: a charge not confirmed by then is fenced, never confirmed late. */
  readonly retryBudgetMs: number;
  /** From a call's first send: how long its provider key still guards a re-send. */
  readonly keyLifetimeMs: number;
  /** How long an outcome may be unknown before a review opens beside the asking. */
  readonly reviewAfterMs: number;
  /** From the accept: a customer who has not acted by then is no longer waited for. */
  readonly customerActionExpiryMs: number;
  readonly retry: WaitRange;
  readonly follow: WaitRange;
  readonly random: () => number;
}

/** An attempt with what it works on, as it was read. `now` is the database's time, carried forward by a monotonic clock. */
export interface AttemptView {
  readonly attempt: Attempt;
  readonly payment: Payment;
  /** Of a refund's attempt, null for every other. */
  readonly refund: Refund | null;
  readonly now: Date;
  readonly policy: ChargePolicy;
}

/** What a decision is made from. */
export interface ChargeView extends AttemptView {
  /** The database was restored and not everything has been asked about yet: what rows say of sends is not believed. */
  readonly recovering: boolean;
  readonly earlierRuns: EarlierRuns;
}

/** About a charge object (`find` by our reference, `get` by its id), or about a refund. */
export type Question = "find" | "get" | "find_refund" | "get_refund";

/** What the worker does after a change is committed. */
export type Then =
  /** The change's own write also records that this call is about to be sent. */
  | { readonly type: "send"; readonly call: ProviderCall }
  | { readonly type: "ask"; readonly question: Question }
  /** The lease is given back and the attempt is due again in `ms`. */
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "end" };

/** What a commit keeps of the send or question that it answers. */
export type TimelineNote = (
  | { readonly kind: "send"; readonly call: ProviderCall }
  | { readonly kind: "question"; readonly call: Question }
) & {
  /** The class of the answer, e.g. `object`, `unknown: timeout`. */
  readonly outcome: string;
  readonly evidence: Evidence | null;
};

/** How the keyed request of a capture, cancel or refund ends. */
export type EffectAnswer =
  /** 200 and the payment, or 201 and the refund. */
  | { readonly type: "done" }
  /** A final refusal: stored, and replayed for ever. */
  | { readonly type: "refused"; readonly code: ErrorCode; readonly detail: string }
  /** Proven to be without effect: the same key runs afresh. */
  | { readonly type: "not_performed" };

/** A decision: everything that one commit writes. Made by pure code, stored by operations/record-outcome. */
export interface Change {
  /** Edges of the attempt machine, in order; the edge into a send is added from `then`. */
  readonly attemptEvents: readonly (AttemptEventType | EffectEventType)[];
  readonly attempt: {
    readonly providerPaymentId?: string;
    readonly unresolved: boolean;
    readonly keySpent: boolean;
    readonly fenceRound: number;
    readonly waits: number;
    readonly waitReason: string | null;
    readonly unknownSince: Date | null;
  };
  /** The edge of the payment machine, or null where the payment stays as it is. */
  readonly paymentEvent: PaymentEventType | null;
  readonly payment: {
    readonly nextAction?: NextAction | null;
    readonly failure?: Failure;
    readonly amountCapturable?: number;
    readonly amountCaptured?: number;
    readonly releaseOrderId?: true;
    readonly authorizedUntil?: Date | null;
    readonly cancellationReason?: CancellationReason;
    /** The capture or cancel in flight is this attempt's, and has ended. */
    readonly effectEnded?: true;
  };
  /** The edge of the refund machine and what became known of the refund; its amounts follow from the edge. */
  readonly refund?: {
    readonly event: RefundEventType | null;
    readonly providerRefundId?: string;
    readonly failure?: Failure | null;
  };
  /** What the provider kept, as soon as it says so. */
  readonly fee?: ProviderFee | null;
  readonly answer?: EffectAnswer;
  readonly reason: string;
  /** Opens a review with this reason, beside whatever else happens. */
  readonly review: ReviewReason | null;
  /** What a person decided has been carried out, or cannot be and is theirs to decide again; left out: neither. */
  readonly instruction?: "carried_out" | "returned";
  readonly note: TimelineNote | null;
  readonly then: Then;
}

/** The unchanged attempt, as a base for a change. */
export function unchanged(attempt: Attempt): Change["attempt"] {
  return {
    unresolved: attempt.unresolved,
    keySpent: attempt.keySpent,
    fenceRound: attempt.fenceRound,
    waits: attempt.waits,
    waitReason: attempt.waitReason,
    unknownSince: attempt.unknownSince,
  };
}

/** The attempt after something became known: nothing is unresolved, and back-off starts anew. */
export function resolved(attempt: Attempt): Change["attempt"] {
  return {
    unresolved: false,
    keySpent: false,
    fenceRound: attempt.fenceRound,
    waits: 0,
    waitReason: null,
    unknownSince: null,
  };
}

/** No confirm may start any more: the budget is over. Counted from the accept, by the database's clock. */
export function budgetIsOver(view: Pick<AttemptView, "attempt" | "policy" | "now">): boolean {
  return view.now.getTime() - view.attempt.createdAt.getTime() >= view.policy.retryBudgetMs;
}

/** The customer has had the time there is, counted from the accept. */
export function customerIsLate({ attempt, policy, now }: ChargeView): boolean {
  return now.getTime() - attempt.createdAt.getTime() >= policy.customerActionExpiryMs;
}

/** The call's key may have been pruned: a send under it would be a new request. */
export function keyLifetimeIsOver(
  view: Pick<AttemptView, "attempt" | "policy" | "now">,
  firstSentAt: Date | null,
): boolean {
  const since = firstSentAt ?? view.attempt.createdAt;
  return view.now.getTime() - since.getTime() >= view.policy.keyLifetimeMs;
}

/** A wait ends with the budget, so a row that was worked on all the time is looked at this soon after it. */
const ROW_TRUSTED_MS = 60_000;

/**
 * The row alone proves that nothing was executed: the budget has just ended and every send was refused before
 * execution. An older row may come from a restored backup, and then says nothing of what was sent since. A younger one
 * may, too, where nobody has noticed: so what is said on its word is asked about all the same, once there is an answer.
 */
export function provenByRow(view: ChargeView): boolean {
  if (view.recovering) return false;
  if (view.attempt.state !== "started" || !budgetIsOver(view) || keyLifetimeIsOver(view, null)) return false;
  const ageMs = view.now.getTime() - view.attempt.createdAt.getTime();
  return ageMs < view.policy.retryBudgetMs + ROW_TRUSTED_MS;
}
