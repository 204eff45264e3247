import type { Evidence } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { newId } from "../lib/ids.js";
import { nudgeAttempt } from "../store/attempt-references.js";
import { noteFacts, openReview } from "../store/payment-facts.js";
import { type ClaimedEvent, markEventApplied } from "../store/provider-events.js";
import { inTransaction } from "../store/transaction.js";
import type { Deps } from "./deps.js";

/** What one try of an event came to. */
export type Applied =
  /** Its effects and the end of its row are committed. */
  | { readonly type: "done"; readonly outcome: string }
  /** It has no effect; its row is still to be ended. */
  | { readonly type: "nothing"; readonly outcome: string }
  /** About somebody else's object; its row is not to be kept. */
  | { readonly type: "not_ours" }
  /** Nothing is written: tried again later, and parked after too many tries. */
  | { readonly type: "again"; readonly reason: string; readonly retryAfterMs?: number | null };

interface Answer {
  readonly type: string;
  readonly evidence: Evidence;
}

/** One question to the provider, with no transaction open. */
export async function askProvider<A extends Answer>(
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

/** The provider did not say what the object is now, or says that there is none: asked again. */
export function unanswered(
  answer: { readonly type: string } & {
    readonly reason?: string;
    readonly retryAfterMs?: number | null;
  },
): Applied {
  if (answer.type !== "unanswered") return { type: "again", reason: `provider_object_${answer.type}` };
  return {
    type: "again",
    reason: `unanswered: ${answer.reason ?? "unknown"}`,
    retryAfterMs: answer.retryAfterMs ?? null,
  };
}

/** The attempt asks the provider itself, under its own fence: no event writes a state. */
export async function nudge(deps: Deps, event: ClaimedEvent, attempt: AttemptReference): Promise<Applied> {
  await inTransaction(deps.db, async (tx) => {
    await nudgeAttempt(tx, attempt.tenantId, attempt.id);
    await markEventApplied(tx, event, "nudged");
    await deps.probe("before_event_commit");
  });
  deps.due.accepted();
  return { type: "done", outcome: "nudged" };
}

/** What only a person can judge: a review of the attempt's payment, and nothing else of it is touched. */
export async function flagPayment(
  deps: Deps,
  event: ClaimedEvent,
  attempt: AttemptReference,
  reason: string,
): Promise<Applied> {
  await inTransaction(deps.db, async (tx) => {
    const { tenantId, paymentId } = attempt;
    const review = { id: newId("rev"), tenantId, paymentId, attemptId: attempt.id, reason };
    if (await openReview(tx, review)) {
      const row = {
        id: newId("tl"),
        kind: "fact",
        refund_id: null,
        to_status: null,
        reason,
        attempt_id: attempt.id,
        outcome: `${event.type} ${event.objectId}`,
        provider_request_id: null,
      } as const;
      await noteFacts(tx, { tenantId, id: paymentId }, [row]);
    }
    await markEventApplied(tx, event, reason);
  });
  deps.log.warn(
    { payment: attempt.paymentId, attempt: attempt.id, event: event.eventId, reason },
    "review opened",
  );
  return { type: "done", outcome: reason };
}
