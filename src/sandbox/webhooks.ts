import { createHmac } from "node:crypto";
import { randomText } from "./ids.js";
import type { StoredEvent } from "./store.js";

export const WEBHOOK_MODES = ["immediate", "held", "lost"] as const;
export type WebhookMode = (typeof WEBHOOK_MODES)[number];

/** Where events go. One signature goes out per secret, as while a secret is rolled. */
export interface WebhookEndpointInput {
  readonly url: string;
  readonly secrets: readonly string[];
  /** Only this account's events. Absent: every account's. */
  readonly account?: string;
  /** Event types, `*` and `payment_intent.*` included. Absent: all. */
  readonly enabled_events?: readonly string[];
  /** `held`: nothing is sent until released. `lost`: never. Default `immediate`. */
  readonly mode?: WebhookMode;
  /** How many times each event is sent. Default 1. */
  readonly copies?: number;
  /** Real milliseconds before the first attempt. Default 0. */
  readonly delay_ms?: number;
}

export interface WebhookEndpoint extends Required<Omit<WebhookEndpointInput, "account" | "enabled_events">> {
  readonly id: string;
  readonly account: string | null;
  readonly enabled_events: readonly string[] | null;
}

/** One attempt to deliver. */
export interface WebhookDelivery {
  readonly endpoint_id: string;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly attempt: number;
  /** The receiver's status; null: no answer. */
  readonly status: number | null;
}

export interface SendOptions {
  /** Added to the signature's time: -600 signs as of ten minutes ago. */
  readonly timestamp_offset_seconds?: number;
  /** Sent instead of the signature. */
  readonly signature?: string;
  readonly copies?: number;
}

const MOST_DELIVERIES_KEPT = 5_000;
const DELIVERY_TIMEOUT_MS = 10_000;

/**
 * Signed webhooks. Failed deliveries are tried again after the given delays (real time); what waits in memory does not
 * outlive the process, as the events themselves do.
 */
export class Webhooks {
  readonly #endpoints = new Map<string, WebhookEndpoint>();
  readonly #held = new Map<string, StoredEvent[]>();
  readonly #retryDelaysMs: readonly number[];
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #underWay = new Set<Promise<void>>();
  #deliveries: WebhookDelivery[] = [];
  #stopped = false;

  constructor(retryDelaysMs: readonly number[]) {
    this.#retryDelaysMs = retryDelaysMs;
  }

  get count(): number {
    return this.#endpoints.size;
  }

  /** Adds an endpoint, or replaces the one with this id. */
  set(input: WebhookEndpointInput, id = `we_${randomText(12)}`): WebhookEndpoint {
    const endpoint: WebhookEndpoint = {
      id,
      url: input.url,
      secrets: input.secrets,
      account: input.account ?? null,
      enabled_events: input.enabled_events ?? null,
      mode: input.mode ?? "immediate",
      copies: input.copies ?? 1,
      delay_ms: input.delay_ms ?? 0,
    };
    this.#endpoints.set(id, endpoint);
    return endpoint;
  }

  list(): WebhookEndpoint[] {
    return [...this.#endpoints.values()];
  }

  get(id: string): WebhookEndpoint | undefined {
    return this.#endpoints.get(id);
  }

  remove(id: string): boolean {
    this.#held.delete(id);
    return this.#endpoints.delete(id);
  }

  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#endpoints.clear();
    this.#held.clear();
    this.#deliveries = [];
  }

  deliveries(): readonly WebhookDelivery[] {
    return this.#deliveries;
  }

  /** An event has happened. */
  publish(account: string, stored: StoredEvent): void {
    for (const endpoint of this.#endpoints.values()) {
      if (endpoint.account !== null && endpoint.account !== account) continue;
      if (endpoint.mode === "lost" || !wants(endpoint, stored.event.type)) continue;
      if (endpoint.mode === "held") {
        const waiting = this.#held.get(endpoint.id) ?? [];
        waiting.push(stored);
        this.#held.set(endpoint.id, waiting);
      } else {
        this.#later(endpoint.delay_ms, () => this.#deliverWithRetries(endpoint, stored, 1));
      }
    }
  }

  held(id: string): readonly StoredEvent[] {
    return this.#held.get(id) ?? [];
  }

  /** Sends what is held for an endpoint, one after the other: in the order they happened, reversed, or as named. */
  async release(id: string, order: "created" | "reverse" | readonly string[]): Promise<WebhookDelivery[]> {
    const endpoint = this.#endpoints.get(id);
    const waiting = this.#held.get(id) ?? [];
    if (endpoint === undefined) return [];
    const chosen =
      order === "created"
        ? waiting
        : order === "reverse"
          ? [...waiting].reverse()
          : order.flatMap((name) => waiting.filter(({ event }) => event.id === name || event.type === name));
    this.#held.set(
      id,
      waiting.filter((stored) => !chosen.includes(stored)),
    );
    const done: WebhookDelivery[] = [];
    for (const stored of chosen)
      done.push(...(await this.send(endpoint, JSON.stringify(stored.event), {}, stored)));
    return done;
  }

  /** Sends these bytes now, signed, without retries. */
  async send(
    endpoint: WebhookEndpoint,
    body: string,
    options: SendOptions,
    stored: StoredEvent | null = null,
  ): Promise<WebhookDelivery[]> {
    const done: WebhookDelivery[] = [];
    for (let copy = 0; copy < (options.copies ?? endpoint.copies); copy += 1) {
      done.push(await this.#attempt(endpoint, body, options, stored, 1));
    }
    return done;
  }

  /** Resolves when nothing is under way. Retries that wait for their time are not waited for. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await this.idle();
  }

  #later(delayMs: number, act: () => Promise<void>): void {
    if (this.#stopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      const work = act().finally(() => this.#underWay.delete(work));
      this.#underWay.add(work);
    }, delayMs);
    this.#timers.add(timer);
  }

  async #deliverWithRetries(endpoint: WebhookEndpoint, stored: StoredEvent, attempt: number): Promise<void> {
    const body = JSON.stringify(stored.event);
    const copies = attempt === 1 ? endpoint.copies : 1;
    let failed = false;
    for (let copy = 0; copy < copies; copy += 1) {
      const delivery = await this.#attempt(endpoint, body, {}, stored, attempt);
      failed ||= delivery.status === null || delivery.status < 200 || delivery.status > 299;
    }
    const delayMs = this.#retryDelaysMs[attempt - 1];
    if (failed && delayMs !== undefined && this.#endpoints.has(endpoint.id)) {
      this.#later(delayMs, () => this.#deliverWithRetries(endpoint, stored, attempt + 1));
    }
  }

  async #attempt(
    endpoint: WebhookEndpoint,
    body: string,
    options: SendOptions,
    stored: StoredEvent | null,
    attempt: number,
  ): Promise<WebhookDelivery> {
    let status: number | null = null;
    try {
      const response = await fetch(endpoint.url, {
        method: "POST",
        headers: {
          "content-type": "application/json; charset=utf-8",
          "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
          "stripe-signature":
            options.signature ?? signatureOf(endpoint, body, options.timestamp_offset_seconds ?? 0),
        },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
      });
      await response.arrayBuffer();
      status = response.status;
    } catch {
      // No answer is a failed delivery, whatever the reason.
      status = null;
    }
    const delivery: WebhookDelivery = {
      endpoint_id: endpoint.id,
      event_id: stored?.event.id ?? null,
      type: stored?.event.type ?? null,
      attempt,
      status,
    };
    this.#deliveries.push(delivery);
    if (this.#deliveries.length > MOST_DELIVERIES_KEPT) this.#deliveries.splice(0, MOST_DELIVERIES_KEPT / 5);
    return delivery;
  }
}

/** `t=<unix>,v1=<hex>…`: HMAC-SHA256 over `${t}.${body}`, by the machine's clock, which the receiver compares with. */
function signatureOf(endpoint: WebhookEndpoint, body: string, offsetSeconds: number): string {
  const t = Math.floor(Date.now() / 1000) + offsetSeconds;
  const parts = endpoint.secrets.map((secret) => {
    return `v1=${createHmac("sha256", secret).update(`${t}.${body}`, "utf8").digest("hex")}`;
  });
  return [`t=${t}`, ...parts].join(",");
}

function wants(endpoint: WebhookEndpoint, type: string): boolean {
  return (
    endpoint.enabled_events?.some(
      (each) => each === "*" || each === type || (each.endsWith(".*") && type.startsWith(each.slice(0, -1))),
    ) ?? true
  );
}
