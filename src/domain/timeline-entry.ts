import type { JsonObject } from "./documents.js";

/** One line of a payment's history. */
export interface TimelineEntry {
  readonly id: string;
  /** Set where the statuses are those of a refund. */
  readonly refundId: string | null;
  readonly at: Date;
  readonly kind: "transition" | "send" | "question" | "request" | "fact";
  readonly from: string | null;
  readonly to: string | null;
  readonly reason: string;
  readonly attemptId: string | null;
  readonly call: string | null;
  readonly providerKey: string | null;
  readonly fence: number | null;
  readonly outcome: string | null;
  readonly providerRequestId: string | null;
  readonly sentAt: Date | null;
}

/** As the API and the command line show it. */
export function timelineEntryDocument(entry: TimelineEntry): JsonObject {
  return {
    id: entry.id,
    object: "timeline_entry",
    refund_id: entry.refundId,
    at: entry.at.toISOString(),
    kind: entry.kind,
    from: entry.from,
    to: entry.to,
    reason: entry.reason,
    attempt_id: entry.attemptId,
    call: entry.call,
    provider_key: entry.providerKey,
    fence: entry.fence,
    outcome: entry.outcome,
    provider_request_id: entry.providerRequestId,
    sent_at: entry.sentAt?.toISOString() ?? null,
  };
}
