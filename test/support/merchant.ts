import { type ApiAnswer, type ApiClient, newKey, type PaymentDocument } from "./api-client.js";
import { until } from "./until.js";

/** What a merchant does after the charge, over HTTP alone. */

export interface CallOptions {
  readonly key?: string;
  readonly prefer?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RefundDocument {
  readonly id: string;
  readonly payment_id: string;
  readonly status: string;
  readonly amount: number;
  readonly provider_refund_id: string | null;
  readonly external: boolean;
  readonly failure: { readonly code: string } | null;
  readonly [member: string]: unknown;
}

export interface EventDocument {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly data: { readonly object: Readonly<Record<string, unknown>> & { readonly id: string } };
}

export interface EntryDocument {
  readonly fact: string;
  readonly leg: number;
  readonly debit_account: string;
  readonly credit_account: string;
  readonly amount: number;
  readonly currency: string;
}

export interface SubscriptionDocument {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

export interface DeliveryDocument {
  readonly event_id: string;
  readonly event_type: string;
  readonly state: string;
  readonly tries: number;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly last_answer: string | null;
  readonly next_try_at: string | null;
}

export const MANUAL = {
  amount: 10_000,
  currency: "usd",
  payment_method: "pm_card_visa",
  capture_method: "manual",
} as const;
export const AUTOMATIC = { ...MANUAL, capture_method: "automatic" } as const;
export const NEEDS_CUSTOMER = {
  ...AUTOMATIC,
  payment_method: "pm_card_authenticationRequired",
  return_url: "https://shop.example/back",
} as const;

/** A keyed POST; `body` undefined: none is sent, a string: these bytes. */
export function post(
  client: ApiClient,
  path: string,
  body?: object | string,
  options: CallOptions = {},
): Promise<ApiAnswer> {
  return client.request("POST", path, {
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    headers: {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      "Idempotency-Key": options.key ?? newKey(),
      ...(options.prefer === undefined ? {} : { Prefer: options.prefer }),
      ...options.headers,
    },
  });
}

type Effect = (
  client: ApiClient,
  paymentId: string,
  body?: object | string,
  options?: CallOptions,
) => Promise<ApiAnswer>;

export const capture: Effect = (client, id, body, options) =>
  post(client, `/v1/payments/${id}/capture`, body, options);
export const cancel: Effect = (client, id, body, options) =>
  post(client, `/v1/payments/${id}/cancel`, body, options);
export const refund: Effect = (client, id, body, options) =>
  post(client, `/v1/payments/${id}/refunds`, body, options);

/** A new payment that must come to 201. */
export async function made(client: ApiClient, body: object): Promise<PaymentDocument> {
  const answer = await client.pay(body, { prefer: "wait=30" });
  if (answer.status !== 201) throw new Error(`POST /v1/payments: ${answer.status} ${answer.text}`);
  return answer.json as PaymentDocument;
}

export function objectIdOf(payment: PaymentDocument): string {
  if (payment.provider_payment_id === null) throw new Error(`${payment.id} has no provider object`);
  return payment.provider_payment_id;
}

/** Status and, for a problem, its code: what a table of cases compares. */
export function outcomeOf(answer: ApiAnswer): string {
  return answer.status < 300 ? String(answer.status) : `${answer.status} ${answer.json.code ?? answer.text}`;
}

/** Every item of a paged list, in its order. */
async function listAll<T>(client: ApiClient, path: string): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const query: string = `${path.includes("?") ? "&" : "?"}limit=100${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer: ApiAnswer = await client.get(path + query);
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
    items.push(...(answer.json.data as unknown as T[]));
    cursor = (answer.json["next_cursor"] as string | null | undefined) ?? null;
  } while (cursor !== null);
  return items;
}

export function refundsOf(client: ApiClient, paymentId: string): Promise<RefundDocument[]> {
  return listAll(client, `/v1/payments/${paymentId}/refunds`);
}

export function entriesOf(client: ApiClient, paymentId: string): Promise<EntryDocument[]> {
  return listAll(client, `/v1/ledger/entries?payment=${paymentId}`);
}

/** The tenant's event log, oldest first. */
export async function listEvents(client: ApiClient): Promise<EventDocument[]> {
  return (await listAll<EventDocument>(client, "/v1/events")).reverse();
}

/** Those about a payment, its refunds and disputes included. */
export function eventsAbout(events: readonly EventDocument[], paymentId: string): EventDocument[] {
  return events.filter(
    ({ data: { object } }) => object.id === paymentId || object["payment_id"] === paymentId,
  );
}

export async function eventsOf(client: ApiClient, paymentId: string): Promise<EventDocument[]> {
  return eventsAbout(await listEvents(client), paymentId);
}

export async function typesOf(client: ApiClient, paymentId: string): Promise<string[]> {
  return (await eventsOf(client, paymentId)).map((event) => event.type);
}

/** Registers a receiver; without `events` for all of them. */
export async function subscribe(
  client: ApiClient,
  url: string,
  events?: readonly string[],
): Promise<SubscriptionDocument> {
  const answer = await post(client, "/v1/webhook_endpoints", { url, ...(events && { events }) });
  if (answer.status !== 201) throw new Error(`subscribing ${url}: ${answer.status} ${answer.text}`);
  return answer.json as unknown as SubscriptionDocument;
}

/** What was sent to a receiver, oldest first. */
export async function deliveriesOf(client: ApiClient, subscriptionId: string): Promise<DeliveryDocument[]> {
  const path = `/v1/webhook_endpoints/${subscriptionId}/deliveries`;
  return (await listAll<DeliveryDocument>(client, path)).reverse();
}

export async function readRefund(client: ApiClient, id: string): Promise<RefundDocument> {
  const answer = await client.get(`/v1/refunds/${id}`);
  if (answer.status !== 200) throw new Error(`GET of ${id}: ${answer.status} ${answer.text}`);
  return answer.json as unknown as RefundDocument;
}

export function untilRefund(
  client: ApiClient,
  id: string,
  statuses: readonly string[],
): Promise<RefundDocument> {
  return until(
    `${id} in ${statuses.join("|")}`,
    () => readRefund(client, id),
    (seen) => statuses.includes(seen.status),
  );
}

/** Waits until the payment shows these members. */
export function untilShows(
  client: ApiClient,
  id: string,
  members: Readonly<Record<string, unknown>>,
): Promise<PaymentDocument> {
  return until(
    `${id} with ${JSON.stringify(members)}`,
    () => client.payment(id),
    (payment) => Object.entries(members).every(([name, value]) => payment[name] === value),
  );
}
