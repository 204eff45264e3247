import type { Evidence } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { reasonsAbove } from "../domain/review.js";
import type { ReviewReason } from "../domain/review-reason.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { flagPayment } from "../store/outside-facts.js";
import { type ClaimedEvent, nudgeAttempt } from "../store/provider-events.js";
import type { Deps } from "./deps.js";

/** What one try of an event came to. */
export type Applied =
  /** Its effects and the end of its row are committed, in one statement. `flagged`: they are a review, and nothing else. */
  | { readonly type: "done"; readonly outcome: string; readonly flagged?: true }
  /** It has no effect; its row is still to be ended. */
  | { readonly type: "nothing"; readonly outcome: string }
  /** About somebody else's object; its row is not to be kept. */
  | { readonly type: "not_ours" }
  /** Nothing is written: tried again later, and parked after too many tries. `uncounted`: this was no try, see below. */
  | {
      readonly type: "again";
      readonly reason: string;
      readonly retryAfterMs?: number | null;
      readonly uncounted?: boolean;
    }
  /** Part of it is done, which `progress` tells the next claim: the rest at once. */
  | { readonly type: "goes_on"; readonly progress: string };

/** A row that the effects need was held, or moved on, each time they were about to be written. */
export const BUSY: Applied = { type: "again", reason: "payment_busy" };

/** What any question to the provider comes to. */
export interface ProviderAnswer {
  readonly type: string;
  readonly evidence: Evidence;
}

/** One question to the provider, with no transaction open. */
export async function askProvider<A extends ProviderAnswer>(
  deps: Deps,
  name: string,
  question: () => Promise<A>,
): Promise<A> {
  const beganMs = deps.clock.monotonicMs();
  const answer = await question();
  deps.meter.providerCall(name, answer.type, (deps.clock.monotonicMs() - beganMs) / 1_000);
  deps.account.noteAnswer(answer.evidence.httpStatus);
  await deps.probe(`after_${name}`);
  return answer;
}

/** The provider is away, or busy: that tells nothing of the event, and however long it lasts no event is parked for it. */
const AWAY: ReadonlySet<string> = new Set([
  "unreachable",
  "timeout",
  "connection_lost",
  "server_error",
  "rate_limited",
  "unauthorized",
]);

/** The provider did not say what the object is now, or says that there is none: asked again. */
export function unanswered(
  answer:
    | { readonly type: "absent" | "missing" }
    | { readonly type: "unanswered"; readonly reason: string; readonly retryAfterMs: number | null },
): Applied {
  if (answer.type !== "unanswered") return { type: "again", reason: `provider_object_${answer.type}` };
  const { reason, retryAfterMs } = answer;
  return { type: "again", reason: `unanswered: ${reason}`, retryAfterMs, uncounted: AWAY.has(reason) };
}

/** The attempt asks the provider itself, under its own fence: no event writes a state. */
export async function nudge(deps: Deps, event: ClaimedEvent, attempt: AttemptReference): Promise<Applied> {
  if (!(await withDatabase(() => nudgeAttempt(deps.db.sql, event, attempt)))) return BUSY;
  deps.due.dueNow();
  return { type: "done", outcome: "nudged" };
}

/** What stands for an event where a comparison tells of a difference: it does so again in every run. */
export const RECONCILIATION = "reconciliation";

/**
 * What only a person can judge: a review of the attempt, or of an object of the provider's that is not the attempt's own,
 * and nothing else is touched.
 */
export async function flag(
  deps: Deps,
  event: ClaimedEvent,
  attempt: AttemptReference,
  reason: ReviewReason,
  otherObjectId: string | null,
): Promise<Applied> {
  const flagged = await withDatabase(() =>
    flagPayment(deps.db.sql, {
      provider: event.provider,
      event_id: event.eventId,
      tenant_id: attempt.tenantId,
      payment_id: attempt.paymentId,
      attempt_id: attempt.id,
      review_id: newId("rev"),
      timeline_id: newId("tl"),
      reason,
      yields_to: reasonsAbove(reason)?.join(",") ?? null,
      object_id: otherObjectId ?? "",
      told: `${event.type} ${otherObjectId ?? event.objectId}`,
      repeats: event.type === RECONCILIATION,
    }),
  );
  if (!flagged) return { type: "again", reason: "review_busy" };
  deps.log.warn(
    { payment: attempt.paymentId, attempt: attempt.id, event: event.eventId, reason },
    "provider event needs a person",
  );
  return { type: "done", outcome: reason, flagged: true };
}
