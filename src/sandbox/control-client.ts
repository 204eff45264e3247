import type Stripe from "stripe";
import { Bank, Dashboard } from "./control-after-charge-client.js";
import { ControlTransport, queryOf } from "./control-transport.js";
import type {
  ClockState,
  EventInput,
  KeyState,
  Release,
  Released,
  WaitForHeld,
  WaitForRequests,
} from "./control-types.js";
import type { FaultRule, FaultRuleInput } from "./fault-rules.js";
import type { HeldRequest, HeldSelector } from "./held-requests.js";
import type { Counts, ObjectFilter, PaymentIntentRecord, RefundCounts } from "./objects.js";
import type { LoggedRequest, RequestFilter } from "./request-log.js";
import type { LiveSettings } from "./settings.js";
import type { SendOptions, WebhookDelivery, WebhookEndpoint, WebhookEndpointInput } from "./webhooks.js";

/** Typed client of a sandbox's control API, in this process or another. Every method throws on a refusal. */
export class SandboxControl {
  readonly url: string;
  /** The merchant's people at the provider: captures, cancels and refunds made outside Pawl. */
  readonly dashboard: Dashboard;
  /** Banks and the provider itself: refunds that settle or fail, disputes, authorisations that lapse, payouts. */
  readonly bank: Bank;
  readonly #transport: ControlTransport;

  constructor(controlUrl: string) {
    this.#transport = new ControlTransport(controlUrl);
    this.url = this.#transport.url;
    this.dashboard = new Dashboard(this.#transport);
    this.bank = new Bank(this.#transport);
  }

  addFault(rule: FaultRuleInput): Promise<FaultRule> {
    return this.#send("POST", "/faults", rule);
  }

  listFaults(): Promise<FaultRule[]> {
    return this.#send("GET", "/faults");
  }

  async removeFault(id: string): Promise<void> {
    await this.#send("DELETE", `/faults/${id}`);
  }

  async clearFaults(): Promise<void> {
    await this.#send("DELETE", "/faults");
  }

  listHeld(selector: HeldSelector = {}): Promise<HeldRequest[]> {
    return this.#send("GET", `/held${queryOf({ ...selector })}`);
  }

  /** Waits until so many requests are held. Throws when the time is over first. */
  async waitForHeld(wait: WaitForHeld = {}): Promise<HeldRequest[]> {
    const held = await this.#send<HeldRequest[]>("POST", "/held/wait", wait);
    return enough(held, wait.count ?? 1, "held requests");
  }

  /** When it resolves, the released requests have had their effect. */
  async release(release: Release = {}): Promise<readonly HeldRequest[]> {
    return (await this.#send<Released>("POST", "/release", release)).released;
  }

  clock(): Promise<ClockState> {
    return this.#send("GET", "/clock");
  }

  advanceClock(byMs: number): Promise<ClockState> {
    return this.#send("POST", "/clock/advance", { by_ms: byMs });
  }

  setClock(now: Date): Promise<ClockState> {
    return this.#send("POST", "/clock/set", { now: now.toISOString() });
  }

  /** In order of receipt. */
  listRequests(filter: RequestFilter = {}): Promise<LoggedRequest[]> {
    return this.#send("GET", `/requests${queryOf({ ...filter })}`);
  }

  async clearRequests(): Promise<void> {
    await this.#send("DELETE", "/requests");
  }

  /** Waits until so many matching requests are in the log. Throws when the time is over first. */
  async waitForRequests(wait: WaitForRequests = {}): Promise<LoggedRequest[]> {
    const requests = await this.#send<LoggedRequest[]>("POST", "/requests/wait", wait);
    return enough(requests, wait.count ?? 1, "requests");
  }

  listPaymentIntents(filter: ObjectFilter = {}): Promise<PaymentIntentRecord[]> {
    const metadata = Object.entries(filter.metadata ?? {}).map(([name, value]): [string, string] => [
      `metadata[${name}]`,
      value,
    ]);
    const { account, status } = filter;
    return this.#send(
      "GET",
      `/payment_intents${queryOf({ account, status, ...Object.fromEntries(metadata) })}`,
    );
  }

  getPaymentIntent(id: string): Promise<PaymentIntentRecord> {
    return this.#send("GET", `/payment_intents/${id}`);
  }

  /** Successful charges by object, and by the value of a metadata key. */
  counts(metadataKey?: string): Promise<Counts> {
    return this.#send("GET", `/counts${queryOf({ metadata_key: metadataKey })}`);
  }

  /** Refunds by object, and by the value of a metadata key: those that were not taken back, without releases. */
  refundCounts(metadataKey?: string): Promise<RefundCounts> {
    return this.#send("GET", `/refund_counts${queryOf({ metadata_key: metadataKey })}`);
  }

  /** Every account's, oldest first; releases of authorisations are among them. */
  listRefunds(filter: { payment_intent?: string } = {}): Promise<Stripe.Refund[]> {
    return this.#send("GET", `/refunds${queryOf(filter)}`);
  }

  /** Overwrites members of a charge, refund, dispute, payout or PaymentIntent, and makes an event of it where asked. */
  patchObject<T = unknown>(id: string, changes: object, event?: string): Promise<T> {
    return this.#send("PATCH", `/objects/${id}`, { changes, ...(event === undefined ? {} : { event }) });
  }

  /** Overwrites members of the object, and makes an event of it where a type is given. */
  patchPaymentIntent(
    id: string,
    changes: Partial<Stripe.PaymentIntent>,
    event?: string,
  ): Promise<PaymentIntentRecord> {
    return this.#send("PATCH", `/payment_intents/${id}`, {
      changes,
      ...(event === undefined ? {} : { event }),
    });
  }

  /** The object is gone: its id is a 404 from now on. */
  async removePaymentIntent(id: string): Promise<void> {
    await this.#send("DELETE", `/payment_intents/${id}`);
  }

  /** The customer ends 3D Secure. */
  authenticate(id: string, outcome: "complete" | "fail"): Promise<PaymentIntentRecord> {
    return this.#send("POST", `/payment_intents/${id}/authenticate`, { outcome });
  }

  /** The customer confirms from the browser, with another card. A decline resolves too: the object tells. */
  confirmAsCustomer(
    id: string,
    input: { payment_method?: string; return_url?: string } = {},
  ): Promise<PaymentIntentRecord> {
    return this.#send("POST", `/payment_intents/${id}/confirm`, input);
  }

  listIdempotencyKeys(): Promise<KeyState[]> {
    return this.#send("GET", "/idempotency_keys");
  }

  /** Forgets finished keys as if they were a day old: one, or all. Resolves to how many. */
  async pruneIdempotencyKeys(key?: string): Promise<number> {
    const answer = await this.#send<{ pruned: number }>(
      "POST",
      "/idempotency_keys/prune",
      key === undefined ? {} : { key },
    );
    return answer.pruned;
  }

  async assignApiKey(key: string, account: string): Promise<void> {
    await this.#send("POST", "/api_keys/assign", { key, account });
  }

  async revokeApiKey(key: string): Promise<void> {
    await this.#send("POST", "/api_keys/revoke", { key });
  }

  addWebhookEndpoint(endpoint: WebhookEndpointInput): Promise<WebhookEndpoint> {
    return this.#send("POST", "/webhook_endpoints", endpoint);
  }

  updateWebhookEndpoint(id: string, changes: Partial<WebhookEndpointInput>): Promise<WebhookEndpoint> {
    return this.#send("PATCH", `/webhook_endpoints/${id}`, changes);
  }

  listWebhookEndpoints(): Promise<WebhookEndpoint[]> {
    return this.#send("GET", "/webhook_endpoints");
  }

  async removeWebhookEndpoint(id: string): Promise<void> {
    await this.#send("DELETE", `/webhook_endpoints/${id}`);
  }

  heldEvents(endpointId: string): Promise<Stripe.Event[]> {
    return this.#send("GET", `/webhook_endpoints/${endpointId}/held`);
  }

  /** Sends held events: as they happened, reversed, or those named by id or type in that order. */
  releaseEvents(
    endpointId: string,
    order: "created" | "reverse" | readonly string[] = "created",
  ): Promise<WebhookDelivery[]> {
    return this.#send("POST", `/webhook_endpoints/${endpointId}/release`, { order });
  }

  listEvents(filter: { type?: string; object_id?: string } = {}): Promise<Stripe.Event[]> {
    return this.#send("GET", `/events${queryOf(filter)}`);
  }

  /** Makes one more event and sends it as any other: a second one of a fact, or one of an object of one's own. */
  makeEvent(input: EventInput): Promise<Stripe.Event> {
    return this.#send("POST", "/events", input);
  }

  /** Sends an event again, the same id, signed anew. */
  redeliverEvent(
    id: string,
    options: SendOptions & { endpoint_id?: string } = {},
  ): Promise<WebhookDelivery[]> {
    return this.#send("POST", `/events/${id}/redeliver`, options);
  }

  /** Sends these very bytes (or an object as JSON), signed unless a signature is given. */
  sendWebhook(
    endpointId: string,
    body: string | object,
    options: SendOptions = {},
  ): Promise<WebhookDelivery[]> {
    return this.#send("POST", `/webhook_endpoints/${endpointId}/send`, { body, ...options });
  }

  listDeliveries(): Promise<WebhookDelivery[]> {
    return this.#send("GET", "/webhook_deliveries");
  }

  /** Resolves when no delivery is under way. */
  async webhooksIdle(): Promise<void> {
    await this.#send("POST", "/webhook_deliveries/idle");
  }

  settings(): Promise<LiveSettings> {
    return this.#send("GET", "/settings");
  }

  changeSettings(settings: Partial<LiveSettings>): Promise<LiveSettings> {
    return this.#send("POST", "/settings", settings);
  }

  /** From now on connections to the API are refused; open ones are cut. */
  async closeListener(): Promise<void> {
    await this.#send("POST", "/listener/close");
  }

  async openListener(): Promise<void> {
    await this.#send("POST", "/listener/open");
  }

  /** Forgets objects, keys, rules, endpoints, log; the clock is the machine's again. */
  async reset(): Promise<void> {
    await this.#send("POST", "/reset");
  }

  #send<T>(method: string, path: string, body?: unknown): Promise<T> {
    return this.#transport.send(method, path, body);
  }
}

function enough<T>(found: T[], count: number, what: string): T[] {
  if (found.length < count) throw new Error(`sandbox control: ${found.length} of ${count} ${what} in time`);
  return found;
}
