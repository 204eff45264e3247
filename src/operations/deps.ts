import type { Settings } from "../config.js";
import type { PaymentProvider, ProviderNotice } from "../domain/provider.js";
import type { NoticeReading } from "../domain/provider-event.js";
import type { EventBroker, WebhookSender } from "../domain/webhook.js";
import type { Clock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import type { Database } from "../store/db.js";
import type { Accepter } from "./accept-batch.js";
import type { AdvanceBatch } from "./advance-batch.js";
import type { OutcomeHub } from "./await-outcome.js";
import type { KeyCache } from "./key-cache.js";
import type { ProviderAccount } from "./provider-account.js";
import type { RecoveryWatch } from "./recovery-watch.js";

/** A named point between two steps; tests make a process die or stop there. Does nothing in production. */
export type Probe = (name: string) => void | Promise<void>;

/** Who is told that there is work: the workers of this process, or else those of another. */
export interface DueSignal {
  /** An attempt is due now. */
  dueNow(): void;
  /** An attempt of this process's workers is due in `ms`. */
  dueIn(ms: number): void;
  /** An event of the provider's has been stored. */
  eventStored(): void;
}

export type ProviderEventStep =
  | "stored"
  | "duplicate"
  | "ignored"
  | "refused"
  | "applied"
  | "deferred"
  | "parked";

/** What the operator counts. Labels are closed sets. */
export interface Meter {
  /** `outcome`: the type of the answer, not its reason. */
  providerCall(call: string, outcome: string, seconds: number): void;
  paymentMoved(status: string): void;
  /** A write was refused by the fence. */
  attemptLost(): void;
  /** One try of a delivery. `lost`: it had been taken over, or asked for again, before its outcome was written. */
  deliveryTried(target: "webhook" | "broker", outcome: "delivered" | "retrying" | "failed" | "lost"): void;
  /** What became of an event of the provider's, received or tried. */
  providerEvent(step: ProviderEventStep): void;
}

/** What every operation is given. Built in wire.ts alone. */
export interface Deps {
  readonly db: Database;
  readonly provider: PaymentProvider;
  readonly account: ProviderAccount;
  readonly recovery: RecoveryWatch;
  readonly webhooks: WebhookSender;
  /** Null: no broker is configured. */
  readonly broker: EventBroker | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly probe: Probe;
  readonly meter: Meter;
  readonly settings: Settings;
  readonly accepter: Accepter;
  readonly advances: AdvanceBatch;
  readonly outcomes: OutcomeHub;
  readonly due: DueSignal;
  readonly apiKeys: KeyCache;
  /** Whether these bytes are an event that the provider has signed, now, and what it says. */
  readNotice(rawBody: Uint8Array, signature: readonly string[], nowMs: number): NoticeReading;
  /** What a stored event says, whose signature was good when it came. Null: it cannot be read any more. */
  rereadNotice(payload: string): ProviderNotice | null;
  /** Derives attempt ids; the same for the life of the data. */
  readonly installationSecret: string;
  /** Names this process as an owner of leases. */
  readonly workerName: string;
}

/** Who makes a request, as authenticate() found. */
export interface Caller {
  readonly tenantId: string;
  readonly keyId: string;
  readonly scopes: readonly string[];
  readonly livemode: boolean;
}

export interface RequestContext {
  readonly requestId: string;
  readonly traceparent: string | null;
  /** Aborted when the client has gone: waiting ends, the work goes on. */
  readonly signal: AbortSignal;
}
