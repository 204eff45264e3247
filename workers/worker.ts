import type { AttemptPool } from "../src/operations/claim-attempts.js";
import type { DeliveryPool } from "../src/operations/claim-deliveries.js";
import type { ProviderEventPool } from "../src/operations/claim-provider-events.js";
import type { Deps } from "../src/operations/deps.js";
import type { Doctor } from "../src/operations/doctor.js";
import type { Comparison } from "../src/operations/reconcile.js";

/** What a worker is given beside the operations' own dependencies. */
export interface WorkerDeps extends Deps {
  readonly pool: AttemptPool;
  readonly deliveries: DeliveryPool;
  readonly providerEvents: ProviderEventPool;
  readonly comparison: Comparison;
  readonly doctor: Doctor;
}

/** One background process of the system: a name, how often it looks when nothing wakes it, and one round of its work. */
export interface Worker {
  readonly name:
    | "attempts"
    | "reconciler"
    | "comparison"
    | "provider-events"
    | "relay"
    | "webhooks"
    | "ledger"
    | "reaper"
    | "doctor";
  intervalMs(deps: WorkerDeps): number;
  /** True: there may be more to do at once. */
  runOnce(deps: WorkerDeps): Promise<boolean>;
}
