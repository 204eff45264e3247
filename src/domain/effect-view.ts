import type { ChargeView, Question } from "./charge-change.js";
import type { EffectCall } from "./provider.js";

/** The one call of a capture, cancel or refund. */
export function effectCallOf({ attempt }: ChargeView): EffectCall {
  if (attempt.kind === "charge") throw new Error(`attempt ${attempt.id} is a charge`);
  return attempt.kind;
}

/** What can be asked: about the refund where its id is known, else for it; of the others about their charge object. */
export function questionOf({ attempt, refund }: ChargeView): Question {
  if (attempt.kind !== "refund") return "get";
  return (refund?.providerRefundId ?? null) === null ? "find_refund" : "get_refund";
}
