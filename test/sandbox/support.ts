import { request } from "node:http";
import Stripe from "stripe";
import type { Sandbox } from "../../src/sandbox/index.js";

export const TEST_KEY = "sk_test_sandboxtests";

/** The official SDK against the sandbox. The fetch client: the other one re-sends by itself after a reset. */
export function stripeFor(sandbox: Pick<Sandbox, "port">, key = TEST_KEY): Stripe {
  return new Stripe(key, {
    host: "127.0.0.1",
    port: sandbox.port,
    protocol: "http",
    maxNetworkRetries: 0,
    telemetry: false,
    httpClient: Stripe.createFetchHttpClient(),
  });
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** `error.code` of a fault on the wire: ECONNRESET, ECONNREFUSED; null where the answer came whole. */
  readonly broken: string | null;
}

export interface RawRequest {
  readonly method?: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly key?: string;
  readonly apiKey?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** One request without any client library: what is on the wire, broken answers included. Never rejects. */
export function send(sandbox: Pick<Sandbox, "port">, raw: RawRequest): Promise<RawAnswer> {
  const body = raw.body ?? "";
  const apiKey = raw.apiKey === undefined ? TEST_KEY : raw.apiKey;
  return new Promise((resolve) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port: sandbox.port,
        path: raw.path,
        method: raw.method ?? "POST",
        agent: false,
        ...(raw.signal === undefined ? {} : { signal: raw.signal }),
        headers: {
          ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
          ...(raw.key === undefined ? {} : { "idempotency-key": raw.key }),
          "content-type": "application/x-www-form-urlencoded",
          "content-length": Buffer.byteLength(body),
          ...raw.headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        const end = (broken: string | null): void =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString("utf8"),
            broken,
          });
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => end(null));
        response.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.name));
      },
    );
    outgoing.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ status: 0, headers: {}, text: "", broken: error.code ?? error.name }),
    );
    outgoing.end(body);
  });
}

/** The body of an answer, read as JSON. */
export function bodyOf<T = Stripe.PaymentIntent>(answer: RawAnswer): T {
  return JSON.parse(answer.text) as T;
}

export interface ErrorBody {
  readonly error: {
    readonly type: string;
    readonly code?: string;
    readonly message: string;
    readonly param?: string;
    readonly doc_url?: string;
    readonly request_log_url?: string;
    readonly decline_code?: string;
    readonly payment_intent?: Stripe.PaymentIntent;
  };
}

export const CREATE =
  "amount=4200&currency=usd&payment_method=pm_card_visa&allowed_payment_method_types[]=card&metadata[payment_attempt_id]=";

/** Makes an object that only needs to be confirmed. */
export async function created(
  sandbox: Sandbox,
  method = "pm_card_visa",
  more = "",
): Promise<Stripe.PaymentIntent> {
  const body = `amount=4200&currency=usd&allowed_payment_method_types[]=card&payment_method=${method}${more}`;
  return bodyOf(await send(sandbox, { path: "/v1/payment_intents", body }));
}

/** A card payment of $42.00 that is made and confirmed in one call: paid, or held where captured by hand. */
export function paid(
  stripe: Stripe,
  more: Partial<Stripe.PaymentIntentCreateParams> = {},
): Promise<Stripe.PaymentIntent> {
  return stripe.paymentIntents.create({
    amount: 4200,
    currency: "usd",
    payment_method: "pm_card_visa",
    allowed_payment_method_types: ["card"],
    confirm: true,
    ...more,
  });
}

/** The charge of a payment as it is now. */
export async function chargeOf(
  stripe: Stripe,
  paymentIntent: Stripe.PaymentIntent,
  expand: string[] = [],
): Promise<Stripe.Charge> {
  const id = paymentIntent.latest_charge;
  return stripe.charges.retrieve(typeof id === "string" ? id : (id?.id ?? ""), { expand });
}

/** What the SDK throws. Fails where it does not. */
export async function thrown(call: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  const outcome = await call.then(
    () => null,
    (error: unknown) => error,
  );
  if (outcome instanceof Stripe.errors.StripeError) return outcome;
  throw new Error("the SDK threw no StripeError");
}
