import type { JsonObject } from "./documents.js";

/** Takes the place of an endpoint's id in the deliveries to the message broker. */
export const BROKER_ID = "nats";

/**
 * Why a try failed. A name that does not resolve and one that resolves to an address that must not be called are one
 * fault, so that nobody learns from it which names exist inside our network.
 */
export const DELIVERY_FAULTS = [
  "status",
  "redirect",
  "timeout",
  "address_refused",
  "connection_refused",
  "connection_lost",
  "unreachable",
  "tls_failed",
  "answer_too_long",
  "unreadable_answer",
  "broker_unavailable",
  "endpoint_deleted",
] as const;
export type DeliveryFault = (typeof DELIVERY_FAULTS)[number];

/** What one try came to. */
export interface DeliveryResult {
  readonly delivered: boolean;
  /** The answer's HTTP status; null where none came, and for the broker. */
  readonly status: number | null;
  readonly fault: DeliveryFault | null;
  /** The beginning of the receiver's answer, cleaned of control characters and secrets; null where none came. */
  readonly answer: string | null;
}

export interface WebhookMessage {
  readonly url: string;
  readonly eventId: string;
  readonly body: string;
  /** `whsec_…`; each signs. At least one. */
  readonly secrets: readonly string[];
}

/** The port to merchants' receivers. */
export interface WebhookSender {
  /** Whether this may be an endpoint's URL. Looks its name up, and connects to nothing. */
  mayTarget(url: string): Promise<boolean>;
  /** One try within the deadline. Never rejects: whatever goes wrong is a fault. */
  send(message: WebhookMessage): Promise<DeliveryResult>;
}

export interface BrokerMessage {
  readonly tenantId: string;
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
}

/** The port to a message broker that gets every event of every tenant. */
export interface EventBroker {
  /** Resolves when the broker has stored it, or has not within the deadline. Never rejects. */
  publish(message: BrokerMessage): Promise<DeliveryResult>;
  close(): Promise<void>;
}

/** One tenant's receiver, without its secrets. */
export interface WebhookEndpoint {
  readonly tenantId: string;
  readonly id: string;
  readonly url: string;
  /** Null: all types. */
  readonly events: readonly string[] | null;
  readonly enabled: boolean;
  readonly disabledReason: "gone" | "failing" | null;
  readonly failingSince: Date | null;
  /** Until when the secret before this one signs too; null: none does. */
  readonly previousSecretExpiresAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** `secret`: shown in the answer that made it, and nowhere else. */
export function webhookEndpointDocument(endpoint: WebhookEndpoint, secret: string | null = null): JsonObject {
  return {
    id: endpoint.id,
    object: "webhook_endpoint",
    url: endpoint.url,
    events: endpoint.events,
    enabled: endpoint.enabled,
    disabled_reason: endpoint.disabledReason,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    secret,
    previous_secret_expires_at: endpoint.previousSecretExpiresAt?.toISOString() ?? null,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}

export function webhookEndpointPath(endpointId: string): string {
  return `/v1/webhook_endpoints/${endpointId}`;
}

/** So much longer than scheduled a wait may be, by chance, so that what failed together does not come back together. */
const MOST_JITTER = 0.1;

/**
 * How long to wait after the `tries`-th failed try, in ms; null: that was the last.
 * `chance`: from 0 to 1, drawn by the caller.
 */
export function waitAfter(scheduleMs: readonly number[], tries: number, chance: number): number | null {
  const wait = scheduleMs[tries - 1];
  return wait === undefined ? null : Math.round(wait * (1 + MOST_JITTER * chance));
}

/** The broker is tried for ever: as scheduled, but never further apart than `mostMs`. */
export function waitForBroker(
  scheduleMs: readonly number[],
  tries: number,
  chance: number,
  mostMs: number,
): number {
  return Math.min(waitAfter(scheduleMs, tries, chance) ?? mostMs, mostMs);
}
