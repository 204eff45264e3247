import type { Settings } from "../config.js";
import type { PaymentProvider } from "../domain/provider.js";
import type { Clock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import type { Database } from "../store/db.js";
import type { Accepter } from "./accept-batch.js";
import type { AdvanceBatch } from "./advance-batch.js";
import type { OutcomeHub } from "./await-outcome.js";
import type { KeyCache } from "./key-cache.js";
import type { ProviderAccount } from "./provider-account.js";

/** A named point between two steps; tests make a process die or stop there. Does nothing in production. */
export type Probe = (name: string) => void | Promise<void>;

/** Whom an attempt that has just been accepted, or is due soon, is told to. */
export interface DueSignal {
  /** An attempt is due now. */
  accepted(): void;
  /** An attempt of this process's workers is due in `ms`. */
  dueIn(ms: number): void;
}

/** What the operator counts. Labels are closed sets. */
export interface Meter {
  /** `outcome`: the type of the answer, not its reason. */
  providerCall(call: string, outcome: string, seconds: number): void;
  paymentMoved(status: string): void;
  /** A write was refused by the fence. */
  attemptLost(): void;
}

/** What every operation is given. Built in wire.ts alone. */
export interface Deps {
  readonly db: Database;
  readonly provider: PaymentProvider;
  readonly account: ProviderAccount;
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
