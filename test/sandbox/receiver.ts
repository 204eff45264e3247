import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly body: string;
  readonly signature: string;
}

/** A merchant's endpoint: keeps raw bodies, answers as scripted, and lets a test wait for the n-th delivery. */
export class Receiver {
  readonly received: Received[] = [];
  answers: number[] = [];
  #server: Server | null = null;
  #waiting: (() => void)[] = [];

  async start(): Promise<string> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const signature = request.headers["stripe-signature"];
        this.received.push({
          body: Buffer.concat(chunks).toString("utf8"),
          signature: typeof signature === "string" ? signature : "",
        });
        response.writeHead(this.answers.shift() ?? 200).end();
        for (const wake of this.#waiting.splice(0)) wake();
      });
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
  }

  async until(count: number): Promise<readonly Received[]> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.received;
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}
