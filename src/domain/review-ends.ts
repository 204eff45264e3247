import type { Change, ChargeView, TimelineNote } from "./charge-change.js";
import { waiting } from "./charge-decisions.js";
import { endOfReview } from "./review.js";

/** How a person's instruction ends, whatever it was. */

/** It is carried out by this change, and with it the review has ended. */
export function carriedOut(view: ChargeView, change: Change): Change {
  const reason = resolutionOf(view);
  const { payment } = change;
  // The fence that a person has had sent is theirs, and nobody else's at the provider.
  const isTheirs = reason === "cancel_at_provider" && view.attempt.state === "fencing";
  const shown =
    isTheirs && payment.cancellationReason === "canceled_at_provider"
      ? { ...payment, cancellationReason: "requested" as const }
      : payment;
  return { ...change, payment: shown, review: null, instruction: "carried_out", reason };
}

/** It cannot be carried out: the review goes back to its person with what was found, and the timeline says why. */
export function returned(view: ChargeView, change: Change, why: string): Change {
  const reason = `${resolutionOf(view)} is not possible: ${why}`;
  return { ...change, instruction: "returned", reason };
}

/** The same where the machine alone would send something: it is asked again first, with the person knowing. */
export function returnedUnsent(view: ChargeView, change: Change, why: string, note: TimelineNote): Change {
  return returned(view, movesOn(change) ? waiting(view, { reason: why, note }) : change, why);
}

/** Carried out where `change` ends the review; else there is nothing in it that a person could want. */
export function carriedOutIfEnded(view: ChargeView, change: Change, own: Change): Change {
  return endOfReview(view, change) === null ? returned(view, own, change.reason) : carriedOut(view, change);
}

/** More is sent or asked at once, and what comes of that decides. */
export function movesOn({ then }: Change): boolean {
  return then.type === "send" || then.type === "ask";
}

function resolutionOf({ attempt }: ChargeView): string {
  if (attempt.instruction === null) throw new Error(`attempt ${attempt.id} has no instruction`);
  return attempt.instruction.resolution;
}
