import type { Accounts } from "./accounts.js";
import type { CallFor } from "./call.js";
import type { SandboxClock } from "./clock.js";
import type { Customer } from "./customer.js";
import type { FaultRules } from "./fault-rules.js";
import type { HeldRequests } from "./held-requests.js";
import type { Lifecycle } from "./lifecycle.js";
import type { Listener } from "./listener.js";
import type { Pipeline } from "./pipeline.js";
import type { RequestLog } from "./request-log.js";
import type { LiveSettings } from "./settings.js";
import type { Store } from "./store.js";
import type { Webhooks } from "./webhooks.js";

/** The parts of a sandbox, as the control API reaches them. */
export interface SandboxParts {
  readonly store: Store;
  readonly accounts: Accounts;
  readonly clock: SandboxClock;
  readonly log: RequestLog;
  readonly rules: FaultRules;
  readonly held: HeldRequests;
  readonly pipeline: Pipeline;
  readonly webhooks: Webhooks;
  readonly customer: Customer;
  readonly lifecycle: Lifecycle;
  readonly settings: LiveSettings;
  readonly listener: Listener;
  readonly callFor: CallFor;
}
