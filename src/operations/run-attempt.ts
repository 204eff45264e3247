import { providerKey } from "../domain/attempt.js";
import { afterLookup, afterSend } from "../domain/charge-answers.js";
import {
  budgetIsOver,
  type Change,
  type ChargePolicy,
  type ChargeView,
  type Then,
} from "../domain/charge-change.js";
import { firstStep, leftUnknown } from "../domain/charge-steps.js";
import { PawlError } from "../domain/errors.js";
import type { LookupOutcome, ProviderCall, SendOutcome } from "../domain/provider.js";
import type { ClaimedAttempt } from "../store/attempts.js";
import type { Deps } from "./deps.js";
import { recordOutcome, renewLease } from "./record-outcome.js";

/**
 * A look-up by reference covers objects whose `created`, by the provider's clock, lies this much before the accept;
 * one of a key that the provider has seen before (rows lost, the client key sent again) the whole life of a key.
 */
const CLOCK_ALLOWANCE_MS = 5 * 60_000;
/** Nothing of ours is made in the future; the bound is far so that a provider's fast (or moved) clock hides nothing. */
const FAR_AHEAD_MS = 10 * 365 * 86_400_000;
/** create, confirm, fence and the questions between them; an attempt that needs more in one lease waits for the next. */
const MOST_STEPS = 12;
const MOST_RENEWALS = 3;
const RECORD_AGAIN_MS = 250;

/** A claimed attempt in this worker's hands, and since when by a clock that only grows. */
interface Held {
  view: ChargeView;
  /** Taken before the statement that granted the lease went out, so it never overstates what is left of it. */
  leasedAtMs: number;
}

/**
 * Drives one claimed attempt as far as this lease goes: send or ask, with no transaction open, then commit what came
 * and, in the same commit, what is about to be sent next. Stops at once when a write is refused by the fence.
 */
export async function runAttempt(deps: Deps, claimed: ClaimedAttempt, claimedAtMs: number): Promise<void> {
  const held: Held = {
    view: {
      attempt: claimed.attempt,
      payment: claimed.payment,
      now: claimed.claimedAt,
      policy: policyOf(deps),
    },
    leasedAtMs: claimedAtMs,
  };
  // The database's time of the claim, carried forward by the monotonic clock: no worker's wall clock decides anything.
  const now = () => new Date(claimed.claimedAt.getTime() + (deps.clock.monotonicMs() - claimedAtMs));
  await deps.probe("after_claim");
  let step: Then | Change | null = firstStep(held.view, deps.account.current(), claimed.markedNow);
  for (let steps = 0; step !== null && steps < MOST_STEPS; steps += 1) {
    step = await takeStep(deps, held, step, now);
  }
}

/** One step; null: nothing more to do now, or the attempt is no longer ours. */
async function takeStep(deps: Deps, held: Held, step: Then | Change, now: () => Date): Promise<Then | null> {
  if (!("type" in step)) return commit(deps, held, step, null, now);
  switch (step.type) {
    case "end":
    case "wait":
      return null;
    case "send": {
      const isLate = () => step.call === "confirm" && budgetIsOver({ ...held.view, now: now() });
      const called = await callProvider(
        deps,
        held,
        step.call,
        () => send(deps, held.view, step.call),
        now,
        isLate,
      );
      if (called === null) return null;
      // Decided in time, but a pause came between: the object is asked about and fenced, never confirmed late.
      if (called === "late")
        return commit(deps, held, leftUnknown({ ...held.view, now: now() }, "get"), null, now);
      return commit(deps, held, afterSend(held.view, step.call, called.outcome), called.sentAt, now);
    }
    case "ask": {
      const called = await callProvider(
        deps,
        held,
        step.question,
        () => ask(deps, held.view, step.question),
        now,
      );
      if (called === null || called === "late") return null;
      return commit(deps, held, afterLookup(held.view, step.question, called.outcome), called.sentAt, now);
    }
  }
}

/** One call, with no transaction open. Null: the lease does not cover it, and nothing was sent. */
async function callProvider<Outcome extends SendOutcome | LookupOutcome>(
  deps: Deps,
  held: Held,
  name: ProviderCall | "find" | "get",
  call: () => Promise<Outcome>,
  now: () => Date,
  isLate: () => boolean = () => false,
): Promise<{ readonly outcome: Outcome; readonly sentAt: Date } | "late" | null> {
  await deps.probe(`before_${name}`);
  if (!(await leaseCovers(deps, held))) return null;
  if (isLate()) return "late";
  const sentAt = now();
  const beganMs = deps.clock.monotonicMs();
  const outcome = await call();
  deps.meter.providerCall(name, outcome.type, (deps.clock.monotonicMs() - beganMs) / 1_000);
  await deps.probe(`after_${name}`);
  deps.account.noteAnswer(outcome.evidence.httpStatus);
  held.view = { ...held.view, now: now() };
  return { outcome, sentAt };
}

async function commit(
  deps: Deps,
  held: Held,
  change: Change,
  sentAt: Date | null,
  now: () => Date,
): Promise<Then | null> {
  const beforeMs = deps.clock.monotonicMs();
  const view = { ...held.view, now: now() };
  const applied = await recordPatiently(deps, held, () => recordOutcome(deps, view, change, { sentAt }));
  if (applied === null) {
    deps.meter.attemptLost();
    deps.log.warn(
      { attempt: view.attempt.id, fence: view.attempt.fence },
      "attempt lost: its fence has moved on",
    );
    return null;
  }
  await deps.probe("after_record");
  held.view = { ...view, attempt: applied.attempt, payment: applied.payment };
  held.leasedAtMs = beforeMs;
  return change.then;
}

/**
 * A database that is gone for a moment must not turn an answer that we hold into a question: the write is tried again
 * while the lease lasts. It names fence, state and version, so a try that was committed unseen is not repeated.
 */
async function recordPatiently<T>(deps: Deps, held: Held, record: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await record();
    } catch (error) {
      const leftMs = deps.settings.attemptLeaseMs - (deps.clock.monotonicMs() - held.leasedAtMs);
      const isPassing = error instanceof PawlError && error.code === "service_unavailable";
      if (!isPassing || leftMs <= RECORD_AGAIN_MS) throw error;
      await deps.clock.sleep(RECORD_AGAIN_MS);
    }
  }
}

/**
 * Whether a call may start: what is left of the lease must cover the whole call and a margin. A process that was
 * stopped or starved finds it does not, and goes on only if its fence still holds.
 */
async function leaseCovers(deps: Deps, held: Held): Promise<boolean> {
  const { attemptLeaseMs, providerTimeoutMs } = deps.settings;
  const marginMs = Math.min(1_000, (attemptLeaseMs - providerTimeoutMs) / 4);
  for (let renewals = 0; renewals <= MOST_RENEWALS; renewals += 1) {
    const leftMs = attemptLeaseMs - (deps.clock.monotonicMs() - held.leasedAtMs);
    if (leftMs >= providerTimeoutMs + marginMs) return true;
    const beforeMs = deps.clock.monotonicMs();
    if (!(await renewLease(deps, held.view))) break;
    held.leasedAtMs = beforeMs;
  }
  deps.log.warn(
    { attempt: held.view.attempt.id, fence: held.view.attempt.fence },
    "no call: the lease is over",
  );
  return false;
}

function send(deps: Deps, view: ChargeView, call: ProviderCall): Promise<SendOutcome> {
  const { attempt } = view;
  // A fence is asked about before each further send, so no send of it is a blind one.
  const resend = call === "fence" ? false : attempt.unresolved;
  const context = { idempotencyKey: providerKey(attempt, call), resend };
  switch (call) {
    case "create":
      return deps.provider.createCharge(attempt.parameters, context);
    case "confirm":
      return deps.provider.confirmCharge(chargeIdOf(view), attempt.parameters, context);
    case "fence":
      return deps.provider.cancelCharge(chargeIdOf(view), context);
  }
}

function ask(deps: Deps, view: ChargeView, question: "find" | "get"): Promise<LookupOutcome> {
  const { attempt, now, policy } = view;
  if (question === "get") return deps.provider.getCharge(chargeIdOf(view));
  return deps.provider.findCharge({
    attemptId: attempt.id,
    createdFrom: new Date(
      attempt.createdAt.getTime() - (attempt.keySpent ? policy.keyLifetimeMs : CLOCK_ALLOWANCE_MS),
    ),
    createdTo: new Date(now.getTime() + FAR_AHEAD_MS),
  });
}

function chargeIdOf(view: ChargeView): string {
  const id = view.attempt.providerPaymentId;
  if (id === null)
    throw new Error(`attempt ${view.attempt.id} in ${view.attempt.state} has no provider object`);
  return id;
}

function policyOf(deps: Deps): ChargePolicy {
  const { settings } = deps;
  return {
    retryBudgetMs: settings.retryBudgetMs,
    keyLifetimeMs: settings.providerKeyLifetimeMs,
    reviewAfterMs: settings.unknownReviewAfterMs,
    retry: { firstMs: settings.retryFirstMs, mostMs: settings.retryMostMs },
    follow: { firstMs: settings.followFirstMs, mostMs: settings.followMostMs },
    random: Math.random,
  };
}
