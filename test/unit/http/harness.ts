import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import type { Settings } from "../../../src/config.js";
import { paymentDocument, paymentPath } from "../../../src/domain/documents.js";
import type { Payment } from "../../../src/domain/payment.js";
import { createApp } from "../../../src/http/app.js";
import { type Server, serve } from "../../../src/http/serve.js";
import { createLogger } from "../../../src/lib/log.js";
import type { Deps } from "../../../src/operations/deps.js";
import { operations } from "./fake-operations.js";

export const SECRET = "pawl_test_0123456789";
export const CALLER = {
  tenantId: "ten_1",
  keyId: "key_1",
  scopes: ["payments:read", "payments:write"],
  livemode: false,
};
export const INPUT = { amount: 4200, currency: "usd", payment_method: "pm_card_visa" };

export const PAYMENT: Payment = {
  tenantId: "ten_1",
  id: "pay_0198d5f2a3c47b1e9d20f6c1a8e45b77",
  status: "processing",
  version: 1,
  amount: 4200,
  currency: "usd",
  captureMethod: "automatic",
  paymentMethod: "pm_card_visa",
  customer: null,
  merchantOrderId: "order-17",
  holdsOrderId: true,
  description: null,
  statementDescriptor: null,
  returnUrl: null,
  metadata: { cart: "17" },
  provider: "stripe",
  providerPaymentId: null,
  nextAction: null,
  failure: null,
  resolution: null,
  amountCapturable: 0,
  amountCaptured: 0,
  amountRefunded: 0,
  refundReserved: 0,
  openEffect: null,
  authorizedUntil: null,
  cancellationReason: null,
  disputes: [],
  livemode: false,
  createdAt: new Date("2026-11-29T12:00:00Z"),
  updatedAt: new Date("2026-11-29T12:00:01Z"),
};

/** The answer of an operation whose work goes on. */
export const STILL_PROCESSING = {
  type: "processing",
  document: paymentDocument(PAYMENT),
  location: paymentPath(PAYMENT.id),
} as const;

export interface TestServer {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** Every log line since the start. */
  readonly lines: readonly string[];
}

/** Deps with what HTTP itself uses: the log and the settings. */
export function testDeps(settings: Partial<Settings> = {}): { deps: Deps; lines: string[] } {
  const lines: string[] = [];
  const log = createLogger({ level: "info", destination: { write: (line) => void lines.push(line) } });
  const all = { defaultWaitMs: 10_000, rateLimitPerSecond: 0, requestBodyTimeoutMs: 5_000, ...settings };
  return { deps: { log, settings: all } as unknown as Deps, lines };
}

/** The app over the fake operations, on a free port. SECRET is a key with both payment scopes. */
export async function startApp(settings: Partial<Settings> = {}): Promise<TestServer> {
  for (const operation of Object.values(operations))
    if (typeof operation === "function") operation.mockReset();
  operations.authenticate.mockImplementation(async (_deps, secret) => (secret === SECRET ? CALLER : null));
  operations.createPayment.mockResolvedValue(STILL_PROCESSING);
  operations.getPayment.mockResolvedValue(PAYMENT);
  const { deps, lines } = testDeps(settings);
  const server = await serve(createApp(deps), { host: "127.0.0.1", port: 0 });
  return { server, port: server.port, url: `http://127.0.0.1:${server.port}`, lines };
}

/** A create with its usual headers; `headers` replaces or, with undefined, takes away. */
export function post(
  { url }: TestServer,
  body: unknown,
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  const all: Record<string, string | undefined> = {
    Authorization: `Bearer ${SECRET}`,
    "Content-Type": "application/json",
    "Idempotency-Key": "K",
    ...headers,
  };
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  return fetch(`${url}/v1/payments`, { method: "POST", headers: sent, body: text });
}

export function get(
  { url }: TestServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(url + path, { headers: { Authorization: `Bearer ${SECRET}`, ...headers } });
}

export interface Problem {
  readonly code: string;
  readonly status: number;
  readonly detail: string;
  readonly request_id: string;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
  readonly payment?: { readonly id: string };
}

/** The problem of a refused request, checked for what every problem has. */
export async function problemOf(response: Response): Promise<Problem> {
  const problem = (await response.json()) as Problem & { type: string };
  if (response.headers.get("content-type") !== "application/problem+json") throw new Error("not a problem");
  if (problem.status !== response.status) throw new Error("the status differs from the problem's");
  if (problem.request_id !== response.headers.get("x-request-id")) throw new Error("the request id differs");
  if (problem.type !== `/docs/errors/${problem.code}`)
    throw new Error("the type does not link to the code's page");
  return problem;
}

export function pointersOf(problem: Problem): string[] {
  return (problem.errors ?? []).map((error) => error.pointer);
}

/** Sends bytes as they are and gives everything that came back until the server ended the connection. */
export function rawExchange(port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const received: Buffer[] = [];
    socket.on("connect", () => {
      for (const part of parts) socket.write(part);
    });
    socket.on("data", (chunk) => received.push(chunk));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "EPIPE" ? undefined : reject(error),
    );
    socket.on("close", () => resolve(Buffer.concat(received).toString("latin1")));
  });
}

/** The head of a raw create, without the empty line that ends it. */
export function rawHead(...lines: readonly string[]): string {
  return ["POST /v1/payments HTTP/1.1", "Host: pawl", `Authorization: Bearer ${SECRET}`, ...lines, ""].join(
    "\r\n",
  );
}

/** A request with any method, which fetch would refuse. */
export function withMethod(
  port: number,
  method: string,
  path: string,
): Promise<{ status: number; allow: string | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      { port, method, path, headers: { Authorization: `Bearer ${SECRET}` } },
      (incoming) => {
        let body = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (chunk: string) => {
          body += chunk;
        });
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, allow: incoming.headers.allow, body }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

export interface Gate<T> {
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;
}

/** A promise that the test resolves, to stage what happens while something is under way. */
function gate<T>(): Gate<T> {
  let open: (value: T) => void = () => undefined;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

type Answered = Awaited<ReturnType<typeof operations.createPayment>>;

/** Holds the next create inside the operation: `reached` resolves when it is there, `answer` lets it go on. */
export function holdCreate(): { reached: Promise<AbortSignal>; answer: (answered: Answered) => void } {
  const reached = gate<AbortSignal>();
  const answered = gate<Answered>();
  operations.createPayment.mockImplementationOnce((_deps, call) => {
    reached.open(call.context.signal);
    return answered.opened;
  });
  return { reached: reached.opened, answer: answered.open };
}

/** What the first create was given. */
export function given() {
  const [, call, input, wait] = operations.createPayment.mock.calls[0] ?? [];
  return { context: call?.context, key: call?.key, input, wait };
}
