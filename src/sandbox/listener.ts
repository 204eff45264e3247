import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// Longer than any client keeps an idle connection, so that it is never the sandbox that closes one under a request.
const KEEP_ALIVE_MS = 120_000;

/** One HTTP listener that can be closed and opened again on the port it had: a refused connection on request. */
export class Listener {
  readonly #server: Server;
  readonly #host: string;
  #port: number;

  constructor(
    handler: (request: IncomingMessage, response: ServerResponse) => void,
    host: string,
    port: number,
  ) {
    // A request held by a fault may take as long as it likes.
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, handler);
    this.#host = host;
    this.#port = port;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://${this.#host.includes(":") ? `[${this.#host}]` : this.#host}:${this.#port}`;
  }

  get listening(): boolean {
    return this.#server.listening;
  }

  async open(): Promise<void> {
    if (this.#server.listening) return;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#port, this.#host, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Cuts every connection; from then on connections are refused. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
