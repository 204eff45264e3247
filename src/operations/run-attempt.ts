import {
  budgetIsOver,
  type Change,
  type ChargeView,
  provenByRow,
  type Question,
  type Then,
} from "../domain/charge-change.js";
import { type AccountView, leftUnknown } from "../domain/charge-steps.js";
import { effectIsLate, effectLeftUnknown } from "../domain/effect-steps.js";
import { PawlError } from "../domain/errors.js";
import type {
  LookupOutcome,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../domain/provider.js";
import { decideAfterLookup, decideAfterSend, decideFirst } from "../domain/review-decisions.js";
import { type ClaimedAttempt, readHeld, type Held as StillHeld } from "../store/attempts.js";
import { withDatabase } from "../store/db.js";
import { askQuestion, sendCall } from "./call-provider.js";
import { chargePolicyOf } from "./charge-policy.js";
import type { Deps } from "./deps.js";
import { earlierRunsOf } from "./earlier-runs.js";
import { recordOutcome, renewLease } from "./record-outcome.js";

/** create, confirm, fence and the questions between them; an attempt that needs more in one lease waits for the next. */
const MOST_STEPS = 12;
const MOST_RENEWALS = 3;
/** Each further decision means that another writer of the payment went on: one of many refunds may lose that often. */
const MOST_DECISIONS = 200;
const RECORD_AGAIN_MS = 250;
/** A send goes out this soon after its mark, or is marked again: nothing has moved the database in between. */
const MARKED_WITHIN_MS = 5_000;

/** A claimed attempt in this worker's hands, and since when by a clock that only grows. */
interface Held {
  view: ChargeView;
  /** Taken before the statement that granted the lease went out, so it never overstates what is left of it. */
  leasedAtMs: number;
  /** The database's time of the claim, carried forward by the monotonic clock: no worker's wall clock decides anything. */
  now(): Date;
}

/**
 * Drives one claimed attempt as far as this lease goes: send or ask, with no transaction open, then commit what came
 * and, in the same commit, what is about to be sent next. Stops at once when a write is refused by the fence.
 */
export async function runAttempt(deps: Deps, claimed: ClaimedAttempt, claimedAtMs: number): Promise<void> {
  const { attempt, payment, refund } = claimed;
  const held: Held = {
    view: {
      attempt,
      payment,
      refund,
      now: claimed.claimedAt,
      policy: chargePolicyOf(deps.settings),
      recovering: deps.recovery.isRecovering(),
      earlierRuns: "open",
    },
    leasedAtMs: claimedAtMs,
    now: () => new Date(claimed.claimedAt.getTime() + (deps.clock.monotonicMs() - claimedAtMs)),
  };
  const earlierRuns = await recordPatiently(deps, held, () => earlierRunsOf(deps, attempt));
  held.view = { ...held.view, earlierRuns };
  await deps.probe("after_claim");
  const account = deps.account.current();
  let step: Then | Decision | null = begin(held.view, account, claimed.markedNow);
  for (let steps = 0; step !== null && steps < MOST_STEPS; steps += 1) {
    step = await takeStep(deps, held, step);
  }
}

/** What is made of the attempt as it is when it is written. */
type Decision = (view: ChargeView) => Change;

/** The first step is decided once, from what the claim read; a change among them is decided again where it must be. */
function begin(view: ChargeView, account: AccountView, markedNow: boolean): Then | Decision {
  const step = decideFirst(view, account, markedNow);
  if ("type" in step) return step;
  return (now) => {
    const again = decideFirst(now, account, markedNow);
    return "type" in again ? step : again;
  };
}

/** One step; null: nothing more to do now, or the attempt is no longer ours. */
async function takeStep(deps: Deps, held: Held, step: Then | Decision): Promise<Then | null> {
  if (typeof step === "function") return commit(deps, held, step, null);
  switch (step.type) {
    case "end":
    case "wait":
      return null;
    case "send":
      return send(deps, held, step.call);
    case "ask":
      return ask(deps, held, step);
  }
}

async function send(deps: Deps, held: Held, call: ProviderCall): Promise<Then | null> {
  await deps.probe(`before_${call}`);
  if (!(await leaseCovers(deps, held, true))) return null;
  // Decided in time, but a pause came between: it is asked about, never sent late.
  if (isTooLate({ ...held.view, now: held.now() }, call)) return commit(deps, held, leftUnsent, null);
  const { outcome, sentAt } = await callProvider(deps, held, call, () =>
    sendCall(deps.provider, held.view, call),
  );
  return commit(deps, held, (view) => decideAfterSend(view, call, outcome), sentAt);
}

async function ask(deps: Deps, held: Held, step: Then & { readonly type: "ask" }): Promise<Then | null> {
  const { question } = step;
  await deps.probe(`before_${question}`);
  if (!(await leaseCovers(deps, held, false))) return null;
  const { outcome, sentAt } = await callProvider(deps, held, question, () =>
    askQuestion(deps.provider, held.view, question),
  );
  const again = isAboutOwnObject(question) ? null : step;
  return commit(deps, held, (view) => decideAfterLookup(view, question, outcome), sentAt, again);
}

/** No confirm after the budget, no refund after its key's lifetime: however short the way from deciding to sending. */
function isTooLate(view: ChargeView, call: ProviderCall): boolean {
  if (view.attempt.kind !== "charge") return effectIsLate(view);
  return call === "confirm" && budgetIsOver(view);
}

function leftUnsent(view: ChargeView): Change {
  return view.attempt.kind === "charge" ? leftUnknown(view, "get") : effectLeftUnknown(view);
}

/** One call, with no transaction open. `sentAt`: the database's time, just before it went out. */
async function callProvider<
  Outcome extends SendOutcome | LookupOutcome | RefundSendOutcome | RefundLookupOutcome,
>(
  deps: Deps,
  held: Held,
  name: ProviderCall | Question,
  call: () => Promise<Outcome>,
): Promise<{ readonly outcome: Outcome; readonly sentAt: Date }> {
  const sentAt = held.now();
  const beganMs = deps.clock.monotonicMs();
  const outcome = await call();
  deps.meter.providerCall(name, outcome.type, (deps.clock.monotonicMs() - beganMs) / 1_000);
  await deps.probe(`after_${name}`);
  deps.account.noteAnswer(outcome.evidence.httpStatus);
  held.view = { ...held.view, now: held.now() };
  return { outcome, sentAt };
}

/** A refund's object is written by its own attempt alone; a charge's by its captures and cancels, too. */
function isAboutOwnObject(question: Question): boolean {
  return question === "find_refund" || question === "get_refund";
}

/**
 * Commits what `decide` makes of the attempt as it is now. Where somebody else has written to the payment meanwhile (a
 * refund beside this one, a cancel of the authorisation that is being looked at), it is read again. Then the answer to
 * a send is decided anew, since it is not older than its own effect; `again`: a look may be older than what was written
 * since, so it is not believed and the question is put once more.
 */
async function commit(
  deps: Deps,
  held: Held,
  decide: Decision,
  sentAt: Date | null,
  again: Then | null = null,
): Promise<Then | null> {
  for (let tries = 0; tries < MOST_DECISIONS; tries += 1) {
    const beforeMs = deps.clock.monotonicMs();
    const view = await viewToDecide(deps, held);
    const change = decide(view);
    const applied = await recordPatiently(deps, held, () => recordOutcome(deps, view, change, { sentAt }));
    if (applied !== null) {
      await deps.probe("after_record");
      held.view = { ...view, attempt: applied.attempt, payment: applied.payment, refund: applied.refund };
      held.leasedAtMs = beforeMs;
      return change.then;
    }
    const fresh = await readAgain(deps, held);
    if (fresh === null) {
      deps.meter.attemptLost();
      deps.log.warn(
        { attempt: view.attempt.id, fence: view.attempt.fence },
        "attempt lost: its fence has moved on",
      );
      return null;
    }
    if (!fresh.inPlace) await recordPatiently(deps, held, () => deps.recovery.check());
    held.view = { ...held.view, payment: fresh.payment, refund: fresh.refund };
    if (again !== null) return again;
  }
  throw new Error(`attempt ${held.view.attempt.id}: its payment kept changing`);
}

/** A row that would be believed by itself is one only where the database is still the one that it was written in. */
async function viewToDecide(deps: Deps, held: Held): Promise<ChargeView> {
  const view = { ...held.view, now: held.now(), recovering: deps.recovery.isRecovering() };
  if (!provenByRow(view)) return view;
  await recordPatiently(deps, held, () => deps.recovery.check());
  return { ...view, recovering: deps.recovery.isRecovering() };
}

/** Null: the attempt is not ours any more. */
function readAgain(deps: Deps, held: Held): Promise<StillHeld | null> {
  const { attempt } = held.view;
  const { tenantId, id: attemptId, fence, state } = attempt;
  return recordPatiently(deps, held, () =>
    withDatabase(() => readHeld(deps.db.sql, { tenantId, attemptId, fence, state }, deps.recovery.tells)),
  );
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
 * stopped or starved finds it does not, and goes on only if its fence still holds; with a send, only if the database is
 * in place, too.
 */
async function leaseCovers(deps: Deps, held: Held, isSend: boolean): Promise<boolean> {
  const { attemptLeaseMs, providerTimeoutMs } = deps.settings;
  const marginMs = Math.min(1_000, (attemptLeaseMs - providerTimeoutMs) / 4);
  for (let renewals = 0; renewals <= MOST_RENEWALS; renewals += 1) {
    const sinceMs = deps.clock.monotonicMs() - held.leasedAtMs;
    const isMarked = !isSend || sinceMs <= MARKED_WITHIN_MS;
    if (isMarked && attemptLeaseMs - sinceMs >= providerTimeoutMs + marginMs) return true;
    const beforeMs = deps.clock.monotonicMs();
    if (!(await renewLease(deps, held.view, isSend))) break;
    held.leasedAtMs = beforeMs;
  }
  deps.log.warn(
    { attempt: held.view.attempt.id, fence: held.view.attempt.fence },
    "no call: the lease is over",
  );
  return false;
}
