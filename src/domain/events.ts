import type { JsonObject, JsonValue } from "./documents.js";
import { PAYMENT_STATUSES } from "./payment.js";
import { REFUND_STATUSES } from "./refund.js";

/** Every type that an event can have, and an endpoint can ask for. `payment.<status>`: the status was entered. */
export const EVENT_TYPES = [
  "payment.created",
  ...PAYMENT_STATUSES.map((status) => `payment.${status}` as const),
  "refund.created",
  ...REFUND_STATUSES.map((status) => `refund.${status}` as const),
  "dispute.opened",
  "dispute.updated",
  "dispute.funds_withdrawn",
  "dispute.funds_reinstated",
  "dispute.won",
  "dispute.lost",
  "dispute.closed",
  "webhook_endpoint.disabled",
] as const;

/** One fact, as it was written in the fact's own transaction. */
export interface OutboxEvent {
  readonly tenantId: string;
  /** Sent with every try of every delivery: what a receiver knows duplicates by. */
  readonly id: string;
  readonly type: string;
  /** The object's document right after the fact. */
  readonly object: JsonValue;
  readonly createdAt: Date;
}

/** What the event log shows, and what webhooks and the broker carry byte for byte. */
export function eventDocument(event: OutboxEvent): JsonObject {
  return {
    id: event.id,
    object: "event",
    type: event.type,
    created_at: event.createdAt.toISOString(),
    data: { object: event.object },
  };
}
