import dns from "node:dns";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  createStripeProvider,
  type StripeProvider,
} from "../../../../src/providers/stripe/stripe-provider.js";
import {
  type Bench,
  FIRST_SEND,
  intent,
  json,
  parametersOf,
  RE_SEND,
  type Reply,
  recordingLogger,
  reset,
  SECRET_KEY,
  startBench,
} from "./scripted-stripe.js";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function benchOf(timeoutMs: number, ...replies: Reply[]): Promise<Bench> {
  const bench = await startBench({ timeoutMs, replies });
  cleanUps.push(bench.close);
  return bench;
}

function providerAt(apiBase: string, timeoutMs = 5_000): StripeProvider {
  const provider = createStripeProvider({
    secretKey: SECRET_KEY,
    apiBase,
    timeoutMs,
    log: recordingLogger().log,
  });
  cleanUps.push(() => provider.close());
  return provider;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUps.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const confirm = (provider: StripeProvider, context = FIRST_SEND) =>
  provider.confirmCharge("pi_1", parametersOf(provider), context);

const LOST = { type: "unknown", reason: "connection_lost", keySpent: false };
const TIMED_OUT = { type: "unknown", reason: "timeout", keySpent: false };

describe("a connection that is refused", () => {
  it("means that nothing was sent", async () => {
    const provider = providerAt(`http://127.0.0.1:${await closedPort()}`);
    expect(await confirm(provider)).toMatchObject({
      type: "not_performed",
      reason: "unreachable",
      evidence: { httpStatus: null, code: "ECONNREFUSED" },
    });
    expect(await provider.getCharge("pi_1")).toMatchObject({ type: "unanswered", reason: "unreachable" });
  });

  it("says nothing of an earlier send", async () => {
    const provider = providerAt(`http://127.0.0.1:${await closedPort()}`);
    expect(await confirm(provider, RE_SEND)).toMatchObject({ type: "unknown", reason: "resend_refused" });
  });

  it("on each address of a name means that nothing was sent", async () => {
    const port = await closedPort();
    lookUp((_host, _options, callback) =>
      callback(null, [
        { address: "127.0.0.1", family: 4 },
        { address: "::1", family: 6 },
      ]),
    );
    const provider = providerAt(`http://stripe.test:${port}`);
    expect(await confirm(provider)).toMatchObject({ type: "not_performed", reason: "unreachable" });
  });

  it.each(["ENOTFOUND", "EAI_AGAIN"])(
    "by the name service (%s) means that nothing was sent",
    async (code) => {
      lookUp((_host, _options, callback) =>
        callback(Object.assign(new Error(code), { code, syscall: "getaddrinfo" })),
      );
      expect(await confirm(providerAt("http://stripe.test"))).toMatchObject({
        type: "not_performed",
        reason: "unreachable",
        evidence: { code },
      });
    },
  );
});

describe("a connection that is lost", () => {
  it("before an answer leaves the outcome unknown, after exactly one request", async () => {
    const bench = await benchOf(5_000, reset);
    expect(await confirm(bench.provider)).toMatchObject({
      ...LOST,
      evidence: { httpStatus: null, code: "ECONNRESET" },
    });
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("when a kept-alive one is reused leaves the outcome unknown, and nothing is sent again", async () => {
    const bench = await benchOf(5_000, json(200, intent()), reset, json(200, intent()));
    expect(await bench.provider.getCharge("pi_1")).toMatchObject({ type: "found" });
    expect(await confirm(bench.provider)).toMatchObject(LOST);
    expect(bench.stripe.requests).toHaveLength(2);
  });

  it("after the headers leaves the outcome unknown, and the status is kept", async () => {
    const cut: Reply = (response, socket) => {
      response.writeHead(200, { "content-length": 500, "request-id": "req_cut" });
      response.write('{"id":"pi_1",', () => socket.resetAndDestroy());
    };
    const bench = await benchOf(5_000, cut);
    expect(await confirm(bench.provider)).toMatchObject({
      ...LOST,
      evidence: { httpStatus: 200, requestId: "req_cut" },
    });
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("by an orderly end in the middle of the body leaves the outcome unknown", async () => {
    const cut: Reply = (response, socket) => {
      response.writeHead(200, { "content-length": 500 });
      response.write('{"id":"pi_1",', () => socket.end());
    };
    expect(await confirm((await benchOf(5_000, cut)).provider)).toMatchObject(LOST);
  });

  it("before a word of an answer, by an orderly end, leaves the outcome unknown", async () => {
    const bench = await benchOf(5_000, (_response, socket) => void socket.end());
    expect(await confirm(bench.provider)).toMatchObject(LOST);
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("because the other side does not speak HTTP leaves the outcome unknown", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end("220 mail ready\r\n");
    });
    expect(await confirm(providerAt(`http://127.0.0.1:${await listen(server)}`))).toMatchObject(LOST);
  });

  it("because the provider is closed ends the call", async () => {
    const bench = await benchOf(60_000, () => bench.provider.close());
    expect(await confirm(bench.provider)).toMatchObject(LOST);
  });
});

describe("the deadline", () => {
  it("ends a call that is not answered, and destroys its connection", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const bench = await benchOf(100, (_response, socket) => {
      closed = new Promise((resolve) => socket.once("close", resolve));
    });
    expect(await confirm(bench.provider)).toMatchObject({
      ...TIMED_OUT,
      evidence: { httpStatus: null, code: "deadline" },
    });
    await closed;
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("ends a call whose body stalls, and keeps the status", async () => {
    const stall: Reply = (response) => {
      response.writeHead(200, { "content-length": 500, "request-id": "req_stalled" });
      response.write('{"id":');
    };
    const outcome = await confirm((await benchOf(100, stall)).provider);
    expect(outcome).toMatchObject({ ...TIMED_OUT, evidence: { httpStatus: 200, requestId: "req_stalled" } });
  });

  it("ends a call whose body drips on, byte by byte", async () => {
    const drip: Reply = (response) => {
      response.writeHead(200, { "content-length": 100_000 });
      const timer = setInterval(() => response.write(" "), 10);
      response.once("close", () => clearInterval(timer));
    };
    // Without a deadline over the whole call it would go on for a quarter of an hour.
    expect(await confirm((await benchOf(150, drip)).provider)).toMatchObject(TIMED_OUT);
  });

  it("counts from before the connection is ready", async () => {
    // Takes the connection and never answers the TLS greeting, so that no request can be written.
    const server = createServer((socket) => socket.on("error", () => undefined).resume());
    const closed = new Promise((resolve) =>
      server.once("connection", (socket) => socket.once("close", resolve)),
    );
    const provider = providerAt(`https://127.0.0.1:${await listen(server)}`, 150);
    expect(await confirm(provider)).toMatchObject(TIMED_OUT);
    await closed;
  });

  it("counts from before the name is looked up", async () => {
    lookUp(() => undefined);
    expect(await confirm(providerAt("http://stripe.test", 100))).toMatchObject(TIMED_OUT);
  });
});

describe("an answer", () => {
  it("that is too large to be one is given up, and its connection destroyed", async () => {
    let sent = 0;
    const flood: Reply = (response, socket) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(256 * 1024, 0x20);
      const more = () => {
        while (!socket.destroyed && sent < 64 * 1024 * 1024) {
          sent += chunk.length;
          if (!response.write(chunk)) return response.once("drain", more);
        }
        return response.end();
      };
      more();
    };
    const bench = await benchOf(10_000, flood);
    expect(await confirm(bench.provider)).toMatchObject({
      type: "unknown",
      reason: "unreadable",
      evidence: { httpStatus: 200, code: "body_too_large" },
    });
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  it("in many small pieces is read as one", async () => {
    const pieces: Reply = (response) => {
      response.writeHead(200);
      for (const byte of Buffer.from(JSON.stringify(intent({ description: "größer €" }))))
        response.write(Buffer.of(byte));
      response.end();
    };
    expect(await confirm((await benchOf(5_000, pieces)).provider)).toMatchObject({ type: "object" });
  });

  it("reuses the connection for the next call", async () => {
    const ports = new Set<number | undefined>();
    const bench = await benchOf(5_000, (response, socket, request) => {
      ports.add(socket.remotePort);
      json(200, intent())(response, socket, request);
    });
    for (let count = 0; count < 5; count++) await bench.provider.getCharge("pi_1");
    expect(ports.size).toBe(1);
  });
});

type Lookup = (
  host: string,
  options: unknown,
  callback: (error: Error | null, addresses?: { address: string; family: number }[]) => void,
) => void;

function lookUp(answer: Lookup): void {
  vi.spyOn(dns, "lookup").mockImplementation(answer as unknown as typeof dns.lookup);
}
