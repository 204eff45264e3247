import { createHmac, randomBytes } from "node:crypto";
import type { PaymentProvider } from "../../src/domain/provider.js";
import { createApp } from "../../src/http/app.js";
import { type Server, serve } from "../../src/http/serve.js";
import { ProviderEventPool } from "../../src/operations/claim-provider-events.js";
import type { Deps } from "../../src/operations/deps.js";
import { receiveProviderEvent } from "../../src/operations/receive-provider-event.js";
import type { Harness } from "./harness.js";

export const WEBHOOK_SECRET = "whsec_test_0123456789abcdef";
/** For a process that takes the provider's events. */
export const OPEN_INBOX: Readonly<Record<string, string>> = {
  STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PROVIDER_EVENT_INTERVAL_MS: "50",
};

export function randomId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString("hex")}`;
}

/** A payment as its rows stand: made by hand, so that every state can be staged without any provider. */
export interface Seeded {
  readonly tenantId: string;
  readonly paymentId: string;
  readonly attemptId: string;
  readonly objectId: string;
}

export interface SeedOptions {
  readonly tenantId?: string;
  readonly objectId?: string | null;
  readonly livemode?: boolean;
  readonly amount?: number;
  readonly currency?: string;
  readonly state?: string;
}

/** A paid payment whose charge attempt has ended, unless told otherwise. */
export async function seedPayment(harness: Harness, options: SeedOptions = {}): Promise<Seeded> {
  const seeded = {
    tenantId: options.tenantId ?? harness.caller.tenantId,
    paymentId: randomId("pay"),
    attemptId: randomId("att"),
    objectId: options.objectId === null ? null : (options.objectId ?? randomId("pi")),
  };
  const amount = options.amount ?? 10_000;
  const { sql } = harness.deps.db;
  await sql`insert into payments ${sql({
    tenant_id: seeded.tenantId,
    id: seeded.paymentId,
    status: "succeeded",
    amount,
    amount_captured: amount,
    currency: options.currency ?? "usd",
    capture_method: "automatic",
    payment_method: "pm_card_visa",
    attempt_id: seeded.attemptId,
    holds_order_id: false,
    metadata: "{}",
    provider: "stripe",
    livemode: options.livemode ?? false,
  })}`;
  await sql`insert into attempts ${sql({
    tenant_id: seeded.tenantId,
    id: seeded.attemptId,
    payment_id: seeded.paymentId,
    operation: "payments.create",
    idempotency_key: randomId("key"),
    run: 1,
    request_id: randomId("req"),
    state: options.state ?? "completed",
    due_at: null,
    provider: "stripe",
    provider_account: "acct_test",
    livemode: options.livemode ?? false,
    parameters: "",
    provider_payment_id: seeded.objectId,
  })}`;
  return { ...seeded, objectId: seeded.objectId ?? "" };
}

export interface StripeEvent {
  readonly id: string;
  readonly type: string;
  readonly livemode: boolean;
  readonly [name: string]: unknown;
}

export function eventOf(
  type: string,
  object: Readonly<Record<string, unknown>>,
  changes: Readonly<Record<string, unknown>> = {},
): StripeEvent {
  return {
    id: randomId("evt"),
    object: "event",
    api_version: "2026-10-28.endive",
    created: 1_790_000_000,
    type,
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    data: { object },
    ...changes,
  };
}

/** A PaymentIntent's event with the marker of this attempt. */
export function chargeEvent(
  seeded: { readonly tenantId: string; readonly attemptId: string; readonly objectId: string },
  type = "payment_intent.succeeded",
  changes: Readonly<Record<string, unknown>> = {},
): StripeEvent {
  const metadata = { payment_attempt_id: seeded.attemptId, tenant_id: seeded.tenantId };
  return eventOf(type, { id: seeded.objectId, object: "payment_intent", metadata }, changes);
}

export function signatureOf(
  body: string | Uint8Array,
  secret = WEBHOOK_SECRET,
  atSeconds = Math.floor(Date.now() / 1_000),
): string {
  const hex = createHmac("sha256", secret).update(`${atSeconds}.`).update(body).digest("hex");
  return `t=${atSeconds},v1=${hex}`;
}

/** The public API of a process, to which events are sent as Stripe sends them. */
export interface Inbox {
  readonly server: Server;
  readonly url: string;
  /** Signed now with the right secret, unless `headers` say otherwise. */
  send(
    body: StripeEvent | string | Uint8Array,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Response>;
  close(): Promise<void>;
}

export async function openInbox(deps: Deps): Promise<Inbox> {
  const server = await serve(createApp(deps), { host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${server.port}/v1/providers/stripe/webhooks`;
  return {
    server,
    url,
    send: (body, headers) => {
      const bytes = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
      return fetch(url, {
        method: "POST",
        headers: headers ?? { "Content-Type": "application/json", "Stripe-Signature": signatureOf(bytes) },
        body: bytes,
      });
    },
    close: () => server.close(0),
  };
}

/** These deps with a provider that answers these questions as told. */
export function withProvider(deps: Deps, answers: Partial<PaymentProvider>): Deps {
  const provider = new Proxy(deps.provider, {
    get: (target, name) => {
      const told = answers[name as keyof PaymentProvider];
      if (told !== undefined) return told;
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === "function" ? (own.bind(target) as unknown) : own;
    },
  });
  return { ...deps, provider };
}

/** Applies every event that is due now, as one round of a worker would. */
export async function applyDue(deps: Deps): Promise<void> {
  const pool = new ProviderEventPool(deps, () => undefined);
  while (await pool.claim()) await pool.drain();
  await pool.drain();
}

/** Puts an event into the inbox as receiving it does. */
export async function storeEvent(harness: Harness, event: object): Promise<string> {
  const body = Buffer.from(JSON.stringify(event));
  const received = await receiveProviderEvent(harness.deps, body, [signatureOf(body)]);
  if (received.type !== "stored") throw new Error(`not stored: ${JSON.stringify(received)}`);
  return (event as StripeEvent).id;
}

export async function emptyInbox(harness: Harness): Promise<void> {
  await harness.deps.db.sql`delete from provider_events`;
}

/** Of an attempt's wake-up: `due_in_s` is rounded to 10 s, so that a slow machine does not show in it. */
export async function attemptRow(
  harness: Harness,
  { tenantId, attemptId }: Pick<Seeded, "tenantId" | "attemptId">,
): Promise<{ due_in_s: number | null; nudged: boolean; fence: string; state: string } | undefined> {
  const [row] = await harness.deps.db.sql<
    { due_in_s: number | null; nudged: boolean; fence: string; state: string }[]
  >`select (round(extract(epoch from due_at - now()) / 10) * 10)::float8 as due_in_s, nudged, fence, state
      from attempts where tenant_id = ${tenantId} and id = ${attemptId}`;
  return row;
}

export interface InboxRow {
  readonly event_id: string;
  readonly state: string;
  readonly tries: number;
  readonly due_at: string | null;
  readonly outcome: string | null;
  readonly payload: string;
}

export async function inboxOf(harness: Harness): Promise<InboxRow[]> {
  return harness.deps.db.sql<InboxRow[]>`select * from provider_events order by received_at, event_id`;
}

/** What became of each, in the order that they came. */
export async function outcomesOf(harness: Harness): Promise<string[]> {
  return (await inboxOf(harness)).map((row) => `${row.state}: ${row.outcome ?? ""}`);
}

export const NO_EVIDENCE = { httpStatus: 200, code: null, requestId: "req_test" } as const;
