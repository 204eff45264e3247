import { connect, type Socket } from "node:net";

/** One answered request. */
export interface Sample {
  readonly ms: number;
  readonly status: number;
  readonly body: string;
}

export interface LoadResult {
  readonly seconds: number;
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * One caller on one kept-alive connection, as lean as can be: the load generator shares the machine's cores with what
 * it measures. Reads answers by Content-Length.
 */
class HttpCaller {
  #received = "";
  #waiting: ((sample: Omit<Sample, "ms">) => void) | null = null;
  #failed: ((error: Error) => void) | null = null;

  private constructor(private readonly socket: Socket) {
    socket.setEncoding("utf8");
    socket.setNoDelay(true);
    socket.on("data", (chunk: string) => this.#read(chunk));
    socket.on("error", (error) => this.#failed?.(error));
    socket.on("close", () => this.#failed?.(new Error("the connection was closed")));
  }

  static open(url: URL): Promise<HttpCaller> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(url.port), url.hostname, () => resolve(new HttpCaller(socket)));
      socket.once("error", reject);
    });
  }

  send(request: string): Promise<Omit<Sample, "ms">> {
    return new Promise((resolve, reject) => {
      this.#waiting = resolve;
      this.#failed = reject;
      this.socket.write(request);
    });
  }

  close(): void {
    this.#failed = null;
    this.socket.destroy();
  }

  #read(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received.slice(0, head))?.[1] ?? 0);
    const body = this.#received.slice(head + 4);
    if (Buffer.byteLength(body) < length) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = "";
    this.#waiting?.({ status, body });
  }
}

export interface LoadOptions {
  readonly url: string;
  readonly callers: number;
  readonly seconds: number;
  /** The whole request, head and body, for the n-th send. */
  request(count: number): string;
}

/** Keeps `callers` requests under way for `seconds`, and then waits for the last answers. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const url = new URL(options.url);
  const callers = await Promise.all(Array.from({ length: options.callers }, () => HttpCaller.open(url)));
  const took: number[] = [];
  const statuses: Record<string, number> = {};
  let count = 0;
  const begun = performance.now();
  const until = begun + options.seconds * 1_000;
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() < until) {
        count += 1;
        const sent = performance.now();
        const { status } = await caller.send(options.request(count));
        took.push(performance.now() - sent);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      caller.close();
    }),
  );
  const seconds = (performance.now() - begun) / 1_000;
  took.sort((a, b) => a - b);
  const at = (share: number) =>
    took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? Number.NaN;
  return { seconds, statuses, perSecond: took.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** `POST /v1/payments` as bytes. */
export function paymentRequest(host: string, secret: string, key: string, prefer: string | null): string {
  const body = `{"amount":4200,"currency":"usd","payment_method":"pm_card_visa","merchant_order_id":"${key}"}`;
  return [
    "POST /v1/payments HTTP/1.1",
    `Host: ${host}`,
    `Authorization: Bearer ${secret}`,
    `Idempotency-Key: ${key}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...(prefer === null ? [] : [`Prefer: ${prefer}`]),
    "",
    body,
  ].join("\r\n");
}
