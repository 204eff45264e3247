import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Bytes that the proxy has in its hands instead of passing them on. */
export interface Held {
  /** Resolves when there is something to hold. */
  readonly caught: Promise<void>;
  /** Passes on what is held, and everything after it. */
  release(): void;
}

interface Trap {
  readonly text: Buffer;
  /** `request`: from the bytes with the text on. `answer`: everything that comes back after them. */
  readonly holds: "request" | "answer";
  readonly caught: () => void;
  link: Link | null;
}

/** Before a database: passes everything through until it is told to hold, cut or refuse. */
export class TcpProxy {
  readonly #links = new Set<Link>();
  #traps: Trap[] = [];
  #isRefusing = false;
  #server: Server | null = null;

  private constructor(private readonly target: { readonly host: string; readonly port: number }) {}

  /** A proxy before the server of this URL. */
  static async before(url: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) });
    const server = createServer((client) => proxy.#accept(client));
    proxy.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** The same URL, through the proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = "127.0.0.1";
    changed.port = String((this.#server?.address() as AddressInfo).port);
    return changed.href;
  }

  /** Holds the first request that contains `text`: it does not reach the server until it is released. */
  holdRequest(text: string): Held {
    return this.#trap(text, "request");
  }

  /** Lets the first request that contains `text` reach the server and holds everything the server answers. */
  holdAnswer(text: string): Held {
    return this.#trap(text, "answer");
  }

  /** Ends every connection at once, as a network that breaks. */
  cut(): void {
    for (const link of this.#links) link.end();
  }

  /** Whether new connections are taken. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing;
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  #trap(text: string, holds: Trap["holds"]): Held {
    let trap: Trap | null = null;
    const caught = new Promise<void>((resolve) => {
      trap = { text: Buffer.from(text), holds, caught: resolve, link: null };
      this.#traps.push(trap);
    });
    return {
      caught,
      release: () => {
        this.#traps = this.#traps.filter((one) => one !== trap);
        trap?.link?.release();
      },
    };
  }

  #accept(client: Socket): void {
    if (this.#isRefusing) {
      client.destroy();
      return;
    }
    const link = new Link(client, connect(this.target), (bytes) => {
      const trap = this.#traps.find((one) => one.link === null && bytes.includes(one.text));
      if (trap !== undefined) trap.link = link;
      return trap ?? null;
    });
    this.#links.add(link);
    client.once("close", () => this.#links.delete(link));
  }
}

/** One connection through the proxy. */
class Link {
  #seen = Buffer.alloc(0);
  #holds: Trap["holds"] | null = null;
  readonly #held: { readonly to: Socket; readonly bytes: Buffer }[] = [];

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    trapFor: (bytes: Buffer) => Trap | null,
  ) {
    for (const socket of [client, server]) {
      socket.on("error", () => this.end());
      socket.on("close", () => this.end());
    }
    client.on("data", (bytes: Buffer) => {
      // A text may come in two parts.
      this.#seen = Buffer.concat([this.#seen, bytes]).subarray(-SEEN_BYTES);
      const trap = this.#holds === null ? trapFor(this.#seen) : null;
      if (trap !== null) this.#holds = trap.holds;
      this.#pass(server, bytes, "request");
      if (trap?.holds === "request") trap.caught();
      if (trap?.holds === "answer") server.once("data", trap.caught);
    });
    server.on("data", (bytes: Buffer) => this.#pass(client, bytes, "answer"));
  }

  #pass(to: Socket, bytes: Buffer, direction: Trap["holds"]): void {
    if (this.#holds === direction) this.#held.push({ to, bytes });
    else to.write(bytes);
  }

  release(): void {
    this.#holds = null;
    for (const { to, bytes } of this.#held.splice(0)) to.write(bytes);
  }

  end(): void {
    this.client.destroy();
    this.server.destroy();
  }
}

const SEEN_BYTES = 256 * 1024;
