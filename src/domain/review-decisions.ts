import { afterLookup, afterSend, nothingNew } from "./charge-answers.js";
import type { Change, ChargeView, Question, Then, TimelineNote } from "./charge-change.js";
import { resolved } from "./charge-change.js";
import { OBJECT_MISSING, waiting } from "./charge-decisions.js";
import { type AccountView, firstStep } from "./charge-steps.js";
import { describeLookup } from "./describe-outcome.js";
import { afterEffectLookup, afterEffectSend } from "./effect-answers.js";
import { firstEffectStep } from "./effect-steps.js";
import { questionOf } from "./effect-view.js";
import type { Instruction } from "./instruction.js";
import type {
  LookupOutcome,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "./provider.js";
import { endOfReview, isFlagAlone, isGone, isNewsTo } from "./review.js";
import { carryOutForCharge, whyNotNamed } from "./review-charge.js";
import { carryOutForEffect } from "./review-effect.js";
import { carriedOut, returned } from "./review-ends.js";

/** The attempt has come to have another object than the person named. */
const OTHER_OBJECT = "provider_object_other";

/**
 * What a worker decides, for an attempt of any kind, with or without a person's instruction. With one it asks first,
 * always; what the machine alone makes of the answer comes before what the person wanted, and ends the instruction.
 */

/** The first step with an attempt that has just been claimed; `markedNow` as firstStep has it. */
export function decideFirst(view: ChargeView, account: AccountView, markedNow: boolean): Then | Change {
  const first = view.attempt.kind === "charge" ? firstStep : firstEffectStep;
  const { instruction } = view.attempt;
  if (instruction === null) return first(view, account, markedNow);
  const step = markedNow ? notSent(view) : askFirst(view, first(view, account, false));
  return instruction.resolution === "dismiss" ? dismissed(view, step) : step;
}

/** The claim has recorded that a call is about to be sent. It is not: the question comes first. */
function notSent(view: ChargeView): Change {
  const question = view.attempt.kind === "charge" ? "find" : questionOf(view);
  const then: Then = { type: "ask", question: named(view, question) };
  return { ...nothingNew(view), attemptEvents: ["REFUSED_UNEXECUTED"], reason: "instructed", then };
}

function askFirst(view: ChargeView, step: Then | Change): Then | Change {
  const then = "type" in step ? step : step.then;
  if (then.type === "ask") {
    const asks: Then = { type: "ask", question: named(view, then.question) };
    return "type" in step ? asks : { ...step, then: asks };
  }
  // A charge whose object is known, about to be confirmed.
  return then.type === "send" ? { type: "ask", question: "get" } : step;
}

/** An object that only the person knows of is asked about by its id. */
function named(view: ChargeView, question: Question): Question {
  return question === "find" && isNamed(view) ? "get" : question;
}

function isNamed({ attempt }: ChargeView): boolean {
  const name = attempt.instruction?.providerObjectId ?? null;
  return attempt.kind === "charge" && attempt.providerPaymentId === null && name !== null;
}

/** Nothing is asked for it: what was flagged changes nothing here, and an attempt with work left goes on with it. */
function dismissed(view: ChargeView, step: Then | Change): Change {
  const { attempt, payment } = view;
  const goesOn = "type" in step ? { ...nothingNew(view), then: step } : step;
  if (!isFlagAlone(view)) return returned(view, goesOn, payment.status);
  // The step needs a person by itself.
  if (goesOn.review !== null) return goesOn;
  if (attempt.state === "completed") {
    // Seen by a person, and still without the provider's word.
    const { unresolved } = attempt;
    return carriedOut(view, { ...nothingNew(view), attempt: { ...resolved(attempt), unresolved } });
  }
  if (payment.status !== "succeeded") return carriedOut(view, goesOn);
  return carriedOut(view, { ...nothingNew(view), attemptEvents: ["END"], attempt: resolved(attempt) });
}

/** What follows from the answer to a question, or from its absence. */
export function decideAfterLookup(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): Change {
  const { instruction } = view.attempt;
  if (instruction === null) return ownAfterLookup(view, question, outcome);
  const note: TimelineNote = {
    kind: "question",
    call: question,
    outcome: describeLookup(outcome),
    evidence: outcome.evidence,
  };
  const unfit = whyUnfit(view, question, outcome);
  if (unfit !== null) return returned(view, waiting(view, { reason: unfit, note }), unfit);
  const own = ownAfterLookup(view, question, outcome);
  if (outcome.type === "unanswered") return own;
  if (endOfReview(view, own) !== null) return settled(view, instruction, own);
  const isUnseen =
    instruction.resolution === "adopt_provider_object" && isNewsTo(instruction.reason, own.review);
  if (isUnseen) return returned(view, own, `found since: ${own.review ?? ""}`);
  const list = listToAsk(view, question, outcome, own);
  if (list !== null) return { ...own, then: { type: "ask", question: list } };
  return carryOut(view, instruction, { outcome, own, note });
}

/** What shows whether there is another object with the attempt's marks, where its own is gone; null: nothing is to be asked. */
function listToAsk(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
  own: Change,
): Question | null {
  const { kind, instruction } = view.attempt;
  const now = { ...view, attempt: { ...view.attempt, waitReason: own.attempt.waitReason } };
  if (instruction?.resolution !== "mark_not_performed" || outcome.type !== "missing" || !isGone(now))
    return null;
  if (question === "get_refund") return "find_refund";
  return question === "get" && kind === "charge" ? "find" : null;
}

/** Before the machine sees it: what is not this attempt's object is nobody's to adopt, whatever it shows. */
function whyUnfit(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): string | null {
  const { providerPaymentId: own, instruction } = view.attempt;
  const name = instruction?.providerObjectId ?? null;
  if (own !== null && name !== null && name !== own) return OTHER_OBJECT;
  const found = outcome.type === "found" && "charge" in outcome ? outcome.charge : null;
  // Another one with the same marks, in place of the one that is gone.
  if (question === "find" && own !== null && found !== null && found.id !== own)
    return "provider_object_stray";
  if (question !== "get" || !isNamed(view) || outcome.type === "unanswered") return null;
  return found === null ? OBJECT_MISSING : whyNotNamed(view, found);
}

/** A fact has come first, unless it is what the person's own cancel brought about. */
function settled(view: ChargeView, instruction: Instruction, own: Change): Change {
  const isCanceled = own.then.type === "end" && own.payment.releaseOrderId === true;
  const wasSent = instruction.resolution === "cancel_at_provider" && view.attempt.state === "fencing";
  return wasSent && isCanceled ? carriedOut(view, own) : own;
}

function carryOut(
  view: ChargeView,
  { resolution }: Instruction,
  answered: {
    readonly outcome: LookupOutcome | RefundLookupOutcome;
    readonly own: Change;
    readonly note: TimelineNote;
  },
): Change {
  const { own, outcome } = answered;
  // Taken at the first step, and never asked for.
  if (resolution === "dismiss") return returned(view, own, own.reason);
  if (view.attempt.kind !== "charge") return carryOutForEffect(view, resolution, answered);
  if ("refund" in outcome) throw new Error(`charge ${view.attempt.id} was answered with a refund`);
  return carryOutForCharge(view, resolution, { ...answered, outcome });
}

/** What follows from the answer to a send, or from its absence. */
export function decideAfterSend(
  view: ChargeView,
  call: ProviderCall,
  outcome: SendOutcome | RefundSendOutcome,
): Change {
  const own = ownAfterSend(view, call, outcome);
  const { instruction } = view.attempt;
  if (instruction?.resolution !== "retry_same_key") return own;
  if (endOfReview(view, own) !== null) return carriedOut(view, own);
  // Not sent, or one call of several: the instruction stays. Sent and not settled: it has done what it could.
  const stays = outcome.type === "not_performed" || own.then.type === "send";
  return stays ? own : returned(view, own, own.reason);
}

function ownAfterSend(
  view: ChargeView,
  call: ProviderCall,
  outcome: SendOutcome | RefundSendOutcome,
): Change {
  if (call === "capture" || call === "cancel" || call === "refund") return afterEffectSend(view, outcome);
  if (outcome.type === "refund") throw new Error(`a ${call} was answered with a refund`);
  return afterSend(view, call, outcome);
}

function ownAfterLookup(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): Change {
  if (view.attempt.kind !== "charge") return afterEffectLookup(view, question, outcome);
  const ofCharge = question === "find" || question === "get";
  if (!ofCharge || "refund" in outcome) throw new Error(`a charge was asked about with ${question}`);
  return afterLookup(view, question, outcome);
}
