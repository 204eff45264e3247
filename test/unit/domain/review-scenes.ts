import { ATTEMPT_STATES, type AttemptState } from "../../../src/domain/attempt.js";
import type { ChargeView, Question } from "../../../src/domain/charge-change.js";
import {
  type Instruction,
  REVIEW_RESOLUTIONS,
  type ReviewResolution,
} from "../../../src/domain/instruction.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import type {
  EffectCall,
  LookupOutcome,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import { decideAfterLookup, decideAfterSend } from "../../../src/domain/review-decisions.js";
import { type Decided, decided, type Scene, viewIn } from "./charge-fixtures.js";
import { EFFECT_STATES, type EffectScene, type EffectState, effectView } from "./effect-fixtures.js";

/** Reviews of every attempt as its row may be, with what a person decided in them. */

export function instructed(
  view: ChargeView,
  resolution: ReviewResolution,
  providerObjectId: string | null = null,
  reason?: string,
): ChargeView {
  const decidedFor = reason === undefined ? {} : { reason };
  const instruction: Instruction = { reviewId: "rev_own", resolution, providerObjectId, ...decidedFor };
  return { ...view, attempt: { ...view.attempt, instruction } };
}

/** A charge whose payment waits for a person. */
export function charge(state: AttemptState, scene: Scene = {}): ChargeView {
  return viewIn(state, { ...scene, payment: { status: "needs_review", ...scene.payment } });
}

/** A refund that waits for a person. */
export function refund(state: EffectState, scene: EffectScene = {}): ChargeView {
  return effectView("refund", state, { ...scene, refund: { status: "needs_review", ...scene.refund } });
}

/** The answer to a question, decided with the person's instruction and applied. */
export function answered(
  view: ChargeView,
  question: Question,
  outcome: LookupOutcome | RefundLookupOutcome,
): Decided {
  return decided(view, decideAfterLookup(view, question, outcome));
}

export function answeredSend(
  view: ChargeView,
  call: ProviderCall,
  outcome: SendOutcome | RefundSendOutcome,
): Decided {
  return decided(view, decideAfterSend(view, call, outcome));
}

const EFFECT_ONLY: ReadonlySet<AttemptState> = new Set(["sending", "send_unknown"]);
export const CHARGE_STATES = ATTEMPT_STATES.filter((state) => !EFFECT_ONLY.has(state));
/** States that a claim's first step has left behind it, where an answer finds the attempt. */
export const ASKED_STATES = CHARGE_STATES.filter((state) => state !== "creating" && state !== "confirming");
const BEFORE_OBJECT: readonly AttemptState[] = ["started", "creating", "create_unknown"];

/** Whether a charge in this state can have a payment in that status. */
function isReal(state: AttemptState, status: PaymentStatus): boolean {
  const ended = status === "failed" || status === "canceled";
  const open = status === "processing" || status === "needs_review";
  if (BEFORE_OBJECT.includes(state)) return open;
  if (state === "completed") return !["processing", "requires_action", "authorized"].includes(status);
  if (state === "following") return status !== "succeeded";
  return state === "fencing" ? open || ended || status === "requires_action" : open;
}

export interface Row {
  readonly name: string;
  readonly view: ChargeView;
  readonly resolution: ReviewResolution;
}

/** Each state of a charge × each status of its payment × each resolution, soon and after the key's lifetime. */
export function chargeRows(states: readonly AttemptState[], afterMs: readonly number[]): Row[] {
  return states.flatMap((state) =>
    PAYMENT_STATUSES.filter((status) => isReal(state, status)).flatMap((status) =>
      afterMs.flatMap((ms) =>
        REVIEW_RESOLUTIONS.map((resolution) => ({
          name: `charge ${state}, payment ${status}, ${resolution}, ${ms} ms`,
          view: instructed(viewIn(state, { payment: { status }, afterMs: ms }), resolution),
          resolution,
        })),
      ),
    ),
  );
}

const KINDS: readonly EffectCall[] = ["capture", "cancel", "refund"];

/** The same of a capture, cancel or refund. */
export function effectRows(states: readonly EffectState[], afterMs: readonly number[]): Row[] {
  return KINDS.flatMap((kind) =>
    states.flatMap((state) =>
      afterMs.flatMap((ms) =>
        REVIEW_RESOLUTIONS.map((resolution) => ({
          name: `${kind} ${state}, ${resolution}, ${ms} ms`,
          view: instructed(effectIn(kind, state, ms), resolution),
          resolution,
        })),
      ),
    ),
  );
}

function effectIn(kind: EffectCall, state: EffectState, afterMs: number): ChargeView {
  if (kind !== "refund") return effectView(kind, state, { afterMs });
  const status = state === "completed" ? "succeeded" : "needs_review";
  const providerRefundId = state === "following" || state === "completed" ? "re_provider" : null;
  return effectView(kind, state, { afterMs, refund: { status, providerRefundId } });
}

export const ASKED_EFFECT_STATES = EFFECT_STATES.filter((state) => state !== "sending");
