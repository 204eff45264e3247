import { afterAll, afterEach, beforeAll } from "vitest";
import type { FaultRuleInput, LoggedRequest, SandboxControl } from "../../src/sandbox/index.js";
import type { WebhookEndpoint } from "../../src/sandbox/webhooks.js";
import { ApiClient } from "./api-client.js";
import { expectOneTruth } from "./books.js";
import type { Environment } from "./processes.js";
import { INBOX_PATH, STRIPE_SECRET } from "./stripe-sender.js";
import { type Api, type System, startFaultySystem } from "./system.js";

/** Calls of what follows a charge. */
const EFFECT_CALLS = ["payment_intents.capture", "payment_intents.cancel", "refunds.create"];

interface Started {
  readonly system: System;
  apis: [Api, Api];
}

/** Two APIs and two workers on one database and one provider: what a case has unless it says otherwise. */
export class Pair {
  #started: Started | null = null;

  get system(): System {
    return this.#running.system;
  }

  get apis(): [Api, Api] {
    return this.#running.apis;
  }

  get client(): ApiClient {
    return this.apis[0].client;
  }

  get control(): SandboxControl {
    return this.system.control;
  }

  async start(env: Environment): Promise<void> {
    const system = await startFaultySystem({ env });
    const [one, other] = await Promise.all([system.api(), system.api(), system.worker(), system.worker()]);
    this.#started = { system, apis: [one, other] };
  }

  /** Whatever worker runs is killed, and two run with these settings beside those of the pair. */
  async workers(env: Environment = {}): Promise<void> {
    await this.system.crashWorkers();
    await Promise.all([this.system.worker(env), this.system.worker(env)]);
  }

  /** The caller of a tenant of its own. */
  async stranger(): Promise<ApiClient> {
    const { id } = await this.system.command<{ id: string }>("tenants", "create", "--name", "stranger");
    const { secret } = await this.system.command<{ secret: string }>("keys", "create", "--tenant", id);
    return new ApiClient(this.apis[0].url, secret);
  }

  /** The next call of this name meets this fault. */
  disturb(call: string, rule: Omit<FaultRuleInput, "match">): Promise<unknown> {
    return this.control.addFault({ match: { call }, ...rule });
  }

  /** A new payment that is `processing` until the faults are cleared: no confirm of it reaches the provider. */
  async stuck(body: object): Promise<string> {
    await this.disturb("payment_intents.confirm", { times: null, fault: { type: "reset", effect: "none" } });
    const { status, json, text } = await this.client.pay(body, { prefer: "respond-async" });
    if (status !== 202 || json.id === undefined) throw new Error(`not under way: ${status} ${text}`);
    return json.id;
  }

  /** The settle checks (books.ts), of these payments. */
  expectOneTruth(...ids: readonly string[]): Promise<void> {
    return expectOneTruth(this.client, this.control, ids);
  }

  /** What was sent about this object after its charge, in order. */
  async sentFor(objectId: string): Promise<LoggedRequest[]> {
    const log = await this.control.listRequests({ method: "POST" });
    return log.filter(
      ({ call, object_id: id, parameters }) =>
        EFFECT_CALLS.includes(call ?? "") && (id === objectId || parameters["payment_intent"] === objectId),
    );
  }

  /** The provider's events go to this API. `held`: when a test says so; `lost`: never. */
  inbox(at: 0 | 1, mode: WebhookEndpoint["mode"] = "immediate"): Promise<WebhookEndpoint> {
    return this.control.addWebhookEndpoint({
      url: this.apis[at].url + INBOX_PATH,
      secrets: [STRIPE_SECRET],
      mode,
    });
  }

  get #running(): Started {
    if (this.#started === null) throw new Error("not started yet: use it in a test or in a hook");
    return this.#started;
  }
}

/** For a test file: a pair that starts before its tests, is without a fault after each, and ends with them. */
export function usePair(env: Environment = {}): Pair {
  const pair = new Pair();
  beforeAll(() => pair.start(env));
  afterEach(async () => {
    await pair.control.clearFaults();
    await pair.control.release();
  });
  afterAll(() => pair.system.drop());
  return pair;
}
