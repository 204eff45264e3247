import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Writable } from "node:stream";
import type { PaymentInput } from "../../../../src/domain/payment.js";
import type { EffectInput } from "../../../../src/domain/provider.js";
import { createLogger, type Logger } from "../../../../src/lib/log.js";
import {
  createStripeProvider,
  type StripeProvider,
} from "../../../../src/providers/stripe/stripe-provider.js";

export const SECRET_KEY = "sk_test_scripted0123456789";
export const ATTEMPT_ID = "att_5f2c";
export const TENANT_ID = "ten_01";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Answers one request, or does something else with its connection. */
export type Reply = (response: ServerResponse, socket: Socket, request: ReceivedRequest) => void;

/** A server that does what the test says, one reply a request; the last reply is repeated. */
export class ScriptedStripe {
  readonly requests: ReceivedRequest[] = [];
  readonly base: string;
  readonly #server: Server;
  readonly #script: Reply[];

  private constructor(server: Server, script: Reply[]) {
    this.#server = server;
    this.#script = script;
    this.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(...script: Reply[]): Promise<ScriptedStripe> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const stripe = new ScriptedStripe(server, script);
    server.on("request", (request, response) => stripe.#receive(request, response));
    return stripe;
  }

  script(...replies: Reply[]): void {
    this.#script.splice(0, this.#script.length, ...replies);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const received = { method, path: url, headers, body: Buffer.concat(chunks).toString("utf8") };
      this.requests.push(received);
      const reply = this.#script.length > 1 ? this.#script.shift() : this.#script[0];
      if (reply === undefined) throw new Error("no reply is scripted");
      reply(response, request.socket, received);
    });
  }
}

/** What a test looks at: the adapter, the server it talks to and everything it logged. */
export interface Bench {
  readonly stripe: ScriptedStripe;
  readonly provider: StripeProvider;
  readonly logged: () => string;
  readonly close: () => Promise<void>;
}

export async function startBench(options: { timeoutMs?: number; replies?: Reply[] } = {}): Promise<Bench> {
  const stripe = await ScriptedStripe.start(...(options.replies ?? []));
  const { log, text } = recordingLogger();
  const { timeoutMs = 5_000 } = options;
  const provider = createStripeProvider({ secretKey: SECRET_KEY, apiBase: stripe.base, timeoutMs, log });
  const close = async () => {
    provider.close();
    await stripe.close();
  };
  return { stripe, provider, logged: text, close };
}

export function recordingLogger(): { log: Logger; text: () => string } {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString("utf8"));
      done();
    },
  });
  return { log: createLogger({ level: "trace", destination }), text: () => lines.join("") };
}

/** An answer in Stripe's form. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return text(status, JSON.stringify(body), headers);
}

export function text(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, {
      "content-type": "application/json",
      "request-id": "req_scripted",
      ...headers,
    });
    response.end(body);
  };
}

export const reset: Reply = (_response, socket) => void socket.resetAndDestroy();

export function intent(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: "pi_1",
    object: "payment_intent",
    amount: 4200,
    amount_capturable: 0,
    amount_received: 0,
    client_secret: "pi_1_secret_scripted",
    currency: "usd",
    last_payment_error: null,
    livemode: false,
    metadata: { payment_attempt_id: ATTEMPT_ID, tenant_id: TENANT_ID },
    next_action: null,
    payment_method: "pm_card_visa",
    status: "requires_confirmation",
    ...changes,
  };
}

export function refund(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: "re_1",
    object: "refund",
    amount: 1500,
    balance_transaction: "txn_re_1",
    charge: "ch_1",
    currency: "usd",
    metadata: { payment_attempt_id: ATTEMPT_ID, tenant_id: TENANT_ID },
    payment_intent: "pi_1",
    reason: null,
    status: "succeeded",
    ...changes,
  };
}

/** One page of a list. */
export function page(data: readonly unknown[], more = false): Reply {
  return json(200, { object: "list", data, has_more: more, url: "/v1/objects" });
}

/** A list that never ends: each page has one more object. */
export function endlessPages(object: (id: string) => unknown, prefix: string): Reply {
  let made = 0;
  return (response, socket, request) => {
    made += 1;
    page([object(`${prefix}_${made}`)], true)(response, socket, request);
  };
}

export function paymentInput(changes: Partial<PaymentInput> = {}): PaymentInput {
  return {
    amount: 4200,
    currency: "usd",
    payment_method: "pm_card_visa",
    capture_method: "automatic",
    merchant_order_id: "order-17",
    customer: null,
    description: null,
    statement_descriptor: null,
    return_url: null,
    metadata: {},
    ...changes,
  };
}

/** The stored parameters of a charge that the adapter takes. */
export function parametersOf(provider: StripeProvider, changes: Partial<PaymentInput> = {}): string {
  const prepared = provider.prepareCharge(paymentInput(changes), {
    attemptId: ATTEMPT_ID,
    tenantId: TENANT_ID,
  });
  if (!prepared.ok) throw new Error(prepared.detail);
  return prepared.parameters;
}

export const EFFECTS = {
  capture: { call: "capture", amount: 4200, currency: "usd" },
  cancel: { call: "cancel", reason: null },
  refund: { call: "refund", chargeId: "pi_1", amount: 1500, currency: "usd", reason: null },
} as const satisfies { [Call in EffectInput["call"]]: EffectInput & { call: Call } };

/** The stored parameters of an effect that the adapter takes. */
export function effectOf(provider: StripeProvider, input: EffectInput): string {
  const prepared = provider.prepareEffect(input, { attemptId: ATTEMPT_ID, tenantId: TENANT_ID });
  if (!prepared.ok) throw new Error(prepared.detail);
  return prepared.parameters;
}

export const FIRST_SEND = { idempotencyKey: `payment-attempt:${ATTEMPT_ID}`, resend: false };
export const RE_SEND = { ...FIRST_SEND, resend: true };
