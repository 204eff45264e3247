import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Random } from "../simulation/random.js";
import { isSignedWith } from "../support/receiver.js";

/** One event, however often it came. */
export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly body: string;
  /** Its place among the first arrivals of all events. */
  readonly place: number;
  times: number;
  /** How often it was answered 2xx. */
  taken: number;
}

const REFUSES = 0.05;
const HANGS = 0.01;

/** The merchant's server: takes events as they come, now and then answers 500 or not at all. */
export class ChaosReceiver {
  readonly events = new Map<string, ReceivedEvent>();
  /** What must never arrive: a wrong signature, other bytes under one id. */
  readonly faults: string[] = [];
  requests = 0;
  /** From then on every request is answered 200. */
  isReliable = false;
  #secret = "";
  readonly #digests = new Map<string, string>();

  private constructor(
    private readonly server: Server,
    private readonly random: Random,
  ) {}

  static async start(random: Random): Promise<ChaosReceiver> {
    const server = createServer();
    const receiver = new ChaosReceiver(server, random);
    server.on("request", (request, answer) => receiver.#read(request, answer));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/events`;
  }

  expectSignedWith(secret: string): void {
    this.#secret = secret;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #read(request: IncomingMessage, answer: ServerResponse): void {
    const parts: Buffer[] = [];
    // A sender that is killed in the middle is no fault.
    request.on("error", () => undefined);
    answer.on("error", () => undefined);
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      if (request.complete) this.#take(request, body, answer);
    });
  }

  #take({ headers }: IncomingMessage, body: Buffer, answer: ServerResponse): void {
    this.requests += 1;
    const id = String(headers["webhook-id"]);
    if (!isSignedWith(this.#secret, { headers, body })) this.faults.push(`${id} came with a wrong signature`);
    const digest = createHash("sha256").update(body).digest("hex");
    const known = this.#digests.get(id);
    if (known !== undefined && known !== digest) this.faults.push(`${id} came again with other bytes`);
    this.#digests.set(id, digest);
    const event = this.events.get(id) ?? this.#first(id, body);
    event.times += 1;
    if (!this.isReliable && this.random.chance(HANGS)) return;
    const isRefused = !this.isReliable && this.random.chance(REFUSES);
    if (!isRefused) event.taken += 1;
    answer.writeHead(isRefused ? 500 : 200).end();
  }

  #first(id: string, body: Buffer): ReceivedEvent {
    const text = body.toString();
    const { id: inBody, type } = JSON.parse(text) as { id: string; type: string };
    if (inBody !== id) this.faults.push(`${inBody} came under the id ${id}`);
    const event = { id, type, body: text, place: this.events.size, times: 0, taken: 0 };
    this.events.set(id, event);
    return event;
  }
}
