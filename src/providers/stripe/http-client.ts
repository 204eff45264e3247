import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type Stripe from "stripe";

/** Why there is no answer that can be read. `refused`: no byte of the request left this process. */
export type Fault = "refused" | "timeout" | "lost" | "unreadable";

/** What was seen of an answer before it turned out to be none. */
export interface AnswerHead {
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The SDK wraps it as the `detail` of a StripeConnectionError. It has no `code`: the SDK sends a request again, even
 * with retries off, when the error's code is ECONNRESET or EPIPE.
 */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly fault: Fault;
  /** The socket's own error code, or what was wrong with the answer. */
  readonly detail: string;
  readonly head: AnswerHead;

  constructor(fault: Fault, detail: string, head: AnswerHead) {
    super(`${fault}: ${detail}`);
    this.fault = fault;
    this.detail = detail;
    this.head = head;
  }
}

type SdkHttpClient = NonNullable<Stripe.StripeConfig["httpClient"]>;
type SdkResponse = Awaited<ReturnType<SdkHttpClient["makeRequest"]>>;

// A page of 100 PaymentIntents is about 0.4 MB.
const LARGEST_BODY_BYTES = 8 * 1024 * 1024;

// Below the 5 s after which common servers close an idle connection, so that a send rarely meets that closing: its
// outcome would be unknown.
const IDLE_SOCKET_MS = 4_000;

const HEADERS_READ = ["request-id", "idempotent-replayed", "retry-after"] as const;

/**
 * The HTTP client that the SDK sends through: one request per call and never a second one, on kept-alive connections.
 * `timeoutMs` is a deadline over the whole call, from before the name look-up to the last byte of the body.
 */
export class DeadlineHttpClient implements SdkHttpClient {
  readonly #plain = new HttpAgent({ keepAlive: true, timeout: IDLE_SOCKET_MS });
  readonly #secure = new HttpsAgent({ keepAlive: true, timeout: IDLE_SOCKET_MS });

  getClientName(): string {
    return "pawl";
  }

  makeRequest(
    host: string,
    port: string,
    path: string,
    method: string,
    headers: Record<string, string | number | string[]>,
    requestData: string,
    protocol: string,
    timeoutMs: number,
  ): Promise<SdkResponse> {
    const secure = protocol !== "http";
    const options = { host, port, path, method, headers, agent: secure ? this.#secure : this.#plain };
    return new Promise((resolve, reject) => {
      new Exchange(resolve, reject).start(secure, options, requestData, timeoutMs);
    });
  }

  /** Destroys every connection; a call that is under way ends as lost. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** One request and the reading of its whole answer. Settles once. */
class Exchange {
  readonly #resolve: (response: SdkResponse) => void;
  readonly #reject: (error: TransportError) => void;
  #head: AnswerHead = { status: null, headers: {} };
  #deadline: NodeJS.Timeout | undefined;
  #destroy: () => void = () => undefined;
  #settled = false;

  constructor(resolve: (response: SdkResponse) => void, reject: (error: TransportError) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(secure: boolean, options: RequestOptions, body: string, timeoutMs: number): void {
    this.#deadline = setTimeout(() => this.#fail("timeout", "deadline"), timeoutMs);
    const request = (secure ? httpsRequest : httpRequest)(options);
    this.#destroy = () => request.destroy();
    request.on("error", (error) => this.#fail(neverLeft(error) ? "refused" : "lost", codeOf(error)));
    request.on("response", (response) => this.#read(response));
    request.end(body);
  }

  #read(response: IncomingMessage): void {
    this.#head = { status: response.statusCode ?? null, headers: headersRead(response) };
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > LARGEST_BODY_BYTES) this.#fail("unreadable", "body_too_large");
    });
    response.on("end", () => this.#finish(Buffer.concat(chunks).toString("utf8")));
    response.on("error", (error) => this.#fail("lost", codeOf(error)));
    // Not every cut answer brings an error; after a whole one this comes too late to matter.
    response.on("close", () => this.#fail("lost", "body_cut"));
  }

  /** Hands over what Stripe says: a JSON object, with an `error` object exactly where the status is one of an error. */
  #finish(text: string): void {
    const body = parsedObject(text);
    if (body === null) return this.#fail("unreadable", text === "" ? "empty_body" : "not_json");
    const status = this.#head.status ?? 0;
    const succeeded = status >= 200 && status < 300;
    const fits = status >= 400 ? isObject(body["error"]) : succeeded && body["error"] === undefined;
    if (!fits) return this.#fail("unreadable", "unexpected_body");
    if (this.#settle()) this.#resolve(new ReadResponse(status, this.#head.headers, body));
  }

  #fail(fault: Fault, detail: string): void {
    if (!this.#settle()) return;
    this.#destroy();
    this.#reject(new TransportError(fault, detail, this.#head));
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#deadline);
    return true;
  }
}

/** A complete, parsed answer. The SDK sees only the headers that this adapter reads. */
class ReadResponse implements SdkResponse {
  readonly #status: number;
  readonly #headers: Record<string, string>;
  readonly #body: unknown;

  constructor(status: number, headers: Readonly<Record<string, string>>, body: unknown) {
    this.#status = status;
    this.#headers = { ...headers };
    this.#body = body;
  }

  getStatusCode(): number {
    return this.#status;
  }

  getHeaders(): Record<string, string> {
    return this.#headers;
  }

  getRawResponse(): unknown {
    return { headers: this.#headers };
  }

  toStream(): never {
    throw new Error("no streaming call is made");
  }

  toJSON(): Promise<unknown> {
    return Promise.resolve(this.#body);
  }
}

/** An error of the name look-up or of connecting: the request is written only once there is a connection. */
function neverLeft(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverLeft);
  const syscall = (error as { syscall?: unknown } | null)?.syscall;
  return syscall === "connect" || syscall === "getaddrinfo";
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "connection_error";
}

function headersRead(response: IncomingMessage): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of HEADERS_READ) {
    const value = response.headers[name];
    if (typeof value === "string") kept[name] = value;
  }
  return kept;
}

function parsedObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
