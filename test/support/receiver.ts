import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One request that a receiver got, byte for byte. */
export interface Received {
  readonly path: string;
  readonly atMs: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly created_at: string;
    readonly data: { readonly object: Readonly<Record<string, unknown>> };
  };
}

/** What a receiver does with its `nth` request (from 1) to that path. */
export type Behaviour = (answer: ServerResponse, nth: number, received: Received) => void;

export const answerWith =
  (status: number, body = ""): Behaviour =>
  (answer) =>
    void answer.writeHead(status).end(body);

/** A merchant's server: records everything, and answers as the test says. */
export class Receiver {
  readonly received: Received[] = [];
  /** Connections that were opened to it, whatever came of them. */
  connections = 0;
  readonly #behaviours = new Map<string, Behaviour>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, answer) => {
      // A try that was cut off is no error of the receiver's.
      request.on("error", () => undefined);
      answer.on("error", () => undefined);
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => this.#take(request, Buffer.concat(parts), answer));
    });
    this.#server.on("connection", () => {
      this.connections += 1;
    });
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = "/"): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Without this a path answers 200. */
  behave(path: string, behaviour: Behaviour): void {
    this.#behaviours.set(path, behaviour);
  }

  at(path: string): Received[] {
    return this.received.filter((one) => one.path === path);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(request: IncomingMessage, body: Buffer, answer: ServerResponse): void {
    const path = request.url ?? "";
    const received: Received = {
      path,
      atMs: performance.now(),
      headers: request.headers,
      body,
      event: JSON.parse(body.toString()) as Received["event"],
    };
    this.received.push(received);
    const behaviour = this.#behaviours.get(path) ?? answerWith(200);
    behaviour(answer, this.at(path).length, received);
  }
}

const TOLERANCE_SECONDS = 300;

/**
 * Whether a request is signed with this secret, as the Standard Webhooks specification has it, written here from the
 * specification alone: HMAC-SHA-256 over `id.timestamp.body`, the key being the base64 after `whsec_`.
 */
export function isSignedWith(secret: string, received: Pick<Received, "headers" | "body">): boolean {
  const { headers, body } = received;
  const id = String(headers["webhook-id"]);
  const timestamp = String(headers["webhook-timestamp"]);
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const wanted = createHmac("sha256", key)
    .update(Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]))
    .digest();
  return String(headers["webhook-signature"])
    .split(" ")
    .map((signature) => /^v1,([A-Za-z0-9+/]+=*)$/.exec(signature)?.[1])
    .filter((signature) => signature !== undefined)
    .map((signature) => Buffer.from(signature, "base64"))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
}
