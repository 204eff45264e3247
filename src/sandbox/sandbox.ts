import { Accounts } from "./accounts.js";
import { apiHandler } from "./api-handler.js";
import type { CallEnvironment, CallFor } from "./call.js";
import { SandboxClock } from "./clock.js";
import { SandboxControl } from "./control-client.js";
import { controlHandler } from "./control-server.js";
import { browserRequest, Customer } from "./customer.js";
import { type FaultRuleInput, FaultRules } from "./fault-rules.js";
import { FaultRunner } from "./fault-runner.js";
import { HeldRequests } from "./held-requests.js";
import { HostedPages } from "./hosted-pages.js";
import { Journal } from "./journal.js";
import { Lifecycle } from "./lifecycle.js";
import { Listener } from "./listener.js";
import { Pipeline } from "./pipeline.js";
import { RequestLog } from "./request-log.js";
import type { SandboxParts } from "./sandbox-parts.js";
import { DEFAULT_SETTINGS, type LiveSettings } from "./settings.js";
import { type Realm, Store, type StoredEvent } from "./store.js";
import { type WebhookEndpointInput, Webhooks } from "./webhooks.js";

export interface SandboxOptions {
  /** Of the API. 0 (the default) takes a free one. */
  readonly port?: number;
  /** Of both listeners. Default 127.0.0.1. */
  readonly host?: string;
  readonly controlPort?: number;
  /** Keeps state and keys in a journal there. Absent: in memory only. */
  readonly stateDir?: string;
  /** Real milliseconds every call takes. Default 0. */
  readonly latencyMs?: number;
  /** How long a new object stays out of search, on the sandbox's clock. Default 1000. */
  readonly searchLagMs?: number;
  /** The other settings, as the control API has them: how long authorisations hold, when refunds settle, … */
  readonly settings?: Partial<LiveSettings>;
  readonly webhookEndpoints?: readonly WebhookEndpointInput[];
  /** Real milliseconds before the second, third, … attempt of a failed delivery. */
  readonly webhookRetryDelaysMs?: readonly number[];
  readonly faults?: readonly FaultRuleInput[];
  /** How many requests the log keeps. Default 10,000. */
  readonly requestLogLimit?: number;
}

/** A running sandbox. */
export interface Sandbox {
  /** Where Stripe's API is served: `http://127.0.0.1:12111`. */
  readonly url: string;
  readonly port: number;
  readonly controlUrl: string;
  readonly controlPort: number;
  /** The control API's client, the same that works on a sandbox in another process. */
  readonly control: SandboxControl;
  /** Cuts all connections, writes what is left to write, frees the ports. */
  stop(): Promise<void>;
}

// Stripe retries a test-mode delivery three times over a few hours (docs.stripe.com/webhooks); here they come soon.
const RETRY_DELAYS_MS = [1_000, 10_000, 60_000];
const REQUESTS_LOGGED = 10_000;

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const parts = assemble(options);
  const control = new Listener(controlHandler(parts), options.host ?? "127.0.0.1", options.controlPort ?? 0);
  try {
    await parts.listener.open();
    await control.open();
  } catch (error) {
    await parts.listener.close();
    parts.lifecycle.stop();
    parts.store.close();
    throw error;
  }
  return {
    url: parts.listener.url,
    port: parts.listener.port,
    controlUrl: control.url,
    controlPort: control.port,
    control: new SandboxControl(control.url),
    stop: async () => {
      await parts.listener.close();
      await control.close();
      parts.lifecycle.stop();
      await parts.webhooks.stop();
      parts.held.release({}, "drop");
      parts.store.close();
    },
  };
}

function assemble(options: SandboxOptions): SandboxParts {
  const store = new Store(options.stateDir === undefined ? null : new Journal(options.stateDir));
  const clock = new SandboxClock(Number(store.settings.get("clock_offset_ms") ?? 0));
  const accounts = restoredAccounts(store);
  const log = new RequestLog(options.requestLogLimit ?? REQUESTS_LOGGED);
  const rules = new FaultRules();
  for (const rule of options.faults ?? []) rules.add(rule);
  const held = new HeldRequests(log);
  const webhooks = new Webhooks(options.webhookRetryDelaysMs ?? RETRY_DELAYS_MS);
  for (const endpoint of options.webhookEndpoints ?? []) webhooks.set(endpoint);
  const settings: LiveSettings = { ...DEFAULT_SETTINGS, ...options.settings };
  if (options.latencyMs !== undefined) settings.latency_ms = options.latencyMs;
  if (options.searchLagMs !== undefined) settings.search_lag_ms = options.searchLagMs;
  const publish = (realm: Realm, stored: StoredEvent): void => webhooks.publish(realm.account, stored);
  const environmentOf = (realm: Realm): CallEnvironment => ({
    store,
    realm,
    nowSeconds: clock.nowSeconds(),
    nowMs: clock.nowMs(),
    settings,
    publicUrl: listener.url,
    pendingWebhooks: webhooks.count,
    publish,
    schedule: (kind, id, dueMs) => lifecycle.schedule({ kind, realm: realm.name, id }, dueMs),
  });
  const callFor: CallFor = (realm, objectId, params, publishable) => ({
    ...environmentOf(realm),
    caller: { account: realm.account, livemode: realm.livemode, publishable, realm: realm.name },
    params,
    objectId,
    ...browserRequest(),
  });
  const lifecycle = new Lifecycle({ store, clock, settings, callFor });
  const catchUp = (): void => lifecycle.catchUp();
  const pipeline = new Pipeline({ store, accounts, clock, log, environmentOf, catchUp });
  const customer = new Customer(store, callFor);
  const handler = apiHandler({
    pipeline,
    runner: new FaultRunner(pipeline, held),
    rules,
    log,
    clock,
    accounts,
    store,
    hostedPages: new HostedPages(customer),
    latencyMs: () => settings.latency_ms,
  });
  const listener = new Listener(handler, options.host ?? "127.0.0.1", options.port ?? 0);
  return {
    store,
    accounts,
    clock,
    log,
    rules,
    held,
    pipeline,
    webhooks,
    customer,
    lifecycle,
    settings,
    listener,
    callFor,
  };
}

function restoredAccounts(store: Store): Accounts {
  const accounts = new Accounts();
  const kept = store.settings.get("accounts") as
    | { assigned: [string, string][]; revoked: string[] }
    | undefined;
  for (const [digest, account] of kept?.assigned ?? []) accounts.assign(digest, account);
  for (const digest of kept?.revoked ?? []) accounts.revoke(digest);
  return accounts;
}
