import { createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/lib/clock.js";
import { createWebhookSender, type WebhookSenderOptions } from "../../../src/webhooks/webhook-sender.js";
import { answerWith, isSignedWith, Receiver } from "../../support/receiver.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET = "whsec_bmV4dCBzZWNyZXQgb2YgdGhlIGVuZHBvaW50";
const BODY = JSON.stringify({ id: "evt_1", text: "příliš žluťoučký kůň €" });
const SHORT_MS = 250;

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function receiver(): Promise<Receiver> {
  const started = await Receiver.start();
  ends.push(() => started.stop());
  return started;
}

/** A server that speaks what the test says, HTTP or not. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<{ url: string; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return { url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`, server };
}

function sender(options: Partial<WebhookSenderOptions> = {}) {
  return createWebhookSender({
    timeoutMs: 5_000,
    allowPrivate: true,
    userAgent: "pawl/1.2.3",
    clock: systemClock,
    ...options,
  });
}

const message = (url: string, secrets: readonly string[] = [SECRET]) => ({
  url,
  eventId: "evt_1",
  body: BODY,
  secrets,
});

describe("what is sent", () => {
  test("is the body byte for byte, signed with each secret", async () => {
    const to = await receiver();
    const result = await sender().send(message(to.url("/hook?x=1"), [SECRET, OTHER_SECRET]));
    expect(result).toEqual({ delivered: true, status: 200, fault: null, answer: null });
    const [got, ...more] = to.received;
    expect(more).toEqual([]);
    expect(got!.path).toBe("/hook?x=1");
    expect(got!.body.toString()).toBe(BODY);
    expect(got!.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(BODY)),
      "user-agent": "pawl/1.2.3",
      "webhook-id": "evt_1",
    });
    expect(isSignedWith(SECRET, got!)).toBe(true);
    expect(isSignedWith(OTHER_SECRET, got!)).toBe(true);
    expect(isSignedWith("whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCBvZiAyNA==", got!)).toBe(false);
    expect(isSignedWith(SECRET, { headers: got!.headers, body: Buffer.from(`${BODY} `) })).toBe(false);
  });

  test("has the time of its own try, in the header and under the signature", async () => {
    const to = await receiver();
    const times = [new Date("2026-03-04T05:06:07.900Z"), new Date("2026-03-04T05:06:12.100Z")];
    const clock: Clock = { ...systemClock, now: () => times.shift() ?? new Date(0) };
    const one = sender({ clock });
    await one.send(message(to.url()));
    await one.send(message(to.url()));
    expect(to.received.map((got) => got.headers["webhook-timestamp"])).toEqual(["1772600767", "1772600772"]);
    expect(new Set(to.received.map((got) => got.headers["webhook-signature"])).size).toBe(2);
  });
});

describe("an answer", () => {
  test.each([200, 201, 202, 204])("%i is a delivery", async (status) => {
    const to = await receiver();
    to.behave("/", answerWith(status));
    expect(await sender().send(message(to.url()))).toMatchObject({ delivered: true, status, fault: null });
  });

  test.each([301, 302, 303, 307, 308])("%i is a failure, and is not followed", async (status) => {
    const to = await receiver();
    to.behave("/", (answer) => answer.writeHead(status, { Location: to.url("/elsewhere") }).end());
    expect(await sender().send(message(to.url()))).toMatchObject({
      delivered: false,
      status,
      fault: "redirect",
    });
    expect(to.received.map((got) => got.path)).toEqual(["/"]);
  });

  test.each([400, 401, 404, 410, 429, 500, 503])("%i is a failure", async (status) => {
    const to = await receiver();
    to.behave("/", answerWith(status, "why not"));
    expect(await sender().send(message(to.url()))).toEqual({
      delivered: false,
      status,
      fault: "status",
      answer: "why not",
    });
  });

  test("is kept to its first 500 characters, without what cannot be stored or must not be shown", async () => {
    const to = await receiver();
    to.behave(
      "/",
      answerWith(500, `a\u0000b\u001b[31m ${SECRET} sk_live_abc123 4242424242424242 ${"ž".repeat(5_000)}`),
    );
    const { answer } = await sender().send(message(to.url()));
    expect(answer).toHaveLength(500);
    expect(answer).toMatch(/^a b \[31m whsec_\[redacted\] sk_live_\[redacted\] \[digits redacted\] ž+$/);
  });

  test("is cut between characters", async () => {
    const to = await receiver();
    to.behave("/", answerWith(500, `x${"😀".repeat(400)}`));
    const { answer } = await sender().send(message(to.url()));
    expect(answer).toBe(`x${"😀".repeat(249)}`);
  });
});

describe("a try fails", () => {
  test("when nothing answers within the deadline", async () => {
    const to = await receiver();
    to.behave("/", () => undefined);
    const from = performance.now();
    expect(await sender({ timeoutMs: SHORT_MS }).send(message(to.url()))).toEqual({
      delivered: false,
      status: null,
      fault: "timeout",
      answer: null,
    });
    expect(performance.now() - from).toBeLessThan(SHORT_MS * 8);
  });

  test("when a 200 drips on without end, and what came is kept", async () => {
    const to = await receiver();
    to.behave("/", (answer) => {
      answer.writeHead(200).write("so far");
      const drip = setInterval(() => answer.write("."), 20);
      answer.on("close", () => clearInterval(drip));
    });
    const result = await sender({ timeoutMs: SHORT_MS }).send(message(to.url()));
    expect(result).toMatchObject({ delivered: false, status: 200, fault: "timeout" });
    expect(result.answer).toMatch(/^so far\.+$/);
  });

  test("when a 200 streams on without end, long before the deadline", async () => {
    const to = await receiver();
    to.behave("/", (answer) => {
      answer.writeHead(200);
      const more = () => {
        while (!answer.destroyed && answer.write(Buffer.alloc(16_384, "x")));
      };
      answer.on("drain", more);
      more();
    });
    const result = await sender({ timeoutMs: 20_000 }).send(message(to.url()));
    expect(result).toMatchObject({ delivered: false, status: 200, fault: "answer_too_long" });
  });

  test("when the connection is reset before an answer", async () => {
    const { url } = await rawServer((socket) => socket.on("data", () => socket.resetAndDestroy()));
    expect(await sender().send(message(url))).toMatchObject({ delivered: false, fault: "connection_lost" });
  });

  test("when the connection ends within a 200", async () => {
    const { url } = await rawServer((socket) =>
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")),
    );
    expect(await sender().send(message(url))).toMatchObject({
      delivered: false,
      status: 200,
      fault: "connection_lost",
      answer: "half",
    });
  });

  test.each([
    ["no HTTP", "220 mail.example.com ESMTP\r\n"],
    ["a head that is far too long", `HTTP/1.1 200 OK\r\n${"X-Long: 0123456789\r\n".repeat(5_000)}\r\n`],
  ])("when what comes is %s", async (_, text) => {
    const { url } = await rawServer((socket) => socket.on("data", () => socket.end(text)));
    expect(await sender().send(message(url))).toMatchObject({ delivered: false, fault: "unreadable_answer" });
  });

  test("when informational answers come without end", async () => {
    const { url } = await rawServer((socket) => {
      const drip = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 10);
      socket.on("close", () => clearInterval(drip));
    });
    expect(await sender({ timeoutMs: SHORT_MS }).send(message(url))).toMatchObject({ fault: "timeout" });
  });

  test("when nobody listens", async () => {
    const { url, server } = await rawServer(() => undefined);
    await new Promise((resolve) => server.close(resolve));
    expect(await sender().send(message(url))).toMatchObject({
      delivered: false,
      fault: "connection_refused",
    });
  });

  test("when the server speaks no TLS", async () => {
    const { url } = await rawServer((socket) =>
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\n")),
    );
    expect(await sender().send(message(url.replace("http:", "https:")))).toMatchObject({
      delivered: false,
      fault: "tls_failed",
    });
  });
});

describe("a name that is pointed elsewhere after it was registered", () => {
  const repointed = (...answers: readonly (readonly string[])[]) => {
    const left = [...answers];
    const last = answers.at(-1) ?? [];
    return sender({ allowPrivate: false, resolveName: async () => left.shift() ?? last });
  };

  test.each([
    ["to an address inside", ["127.0.0.1"]],
    ["to a public address and one inside", ["93.184.216.34", "127.0.0.1"]],
    ["to nowhere", []],
  ])("%s is refused at connection time, and nothing is connected to", async (_, then) => {
    const to = await receiver();
    const one = repointed(["93.184.216.34"], then);
    const url = `https://example.com:${to.port}/`;
    expect(await one.mayTarget(url)).toBe(true);
    expect(await one.send(message(url))).toEqual({
      delivered: false,
      status: null,
      fault: "address_refused",
      answer: null,
    });
    expect(to.connections).toBe(0);
  });

  test("is looked up once for a connection: the address that was checked is the one that is used", async () => {
    const to = await receiver();
    const asked: string[] = [];
    const one = sender({
      resolveName: async (name) => {
        asked.push(name);
        return asked.length === 1 ? ["127.0.0.1"] : ["203.0.113.1"];
      },
    });
    expect(await one.send(message(`http://receiver.test:${to.port}/`))).toMatchObject({ delivered: true });
    expect(asked).toEqual(["receiver.test"]);
    expect(to.received[0]?.headers.host).toBe(`receiver.test:${to.port}`);
  });

  test("whose look-up hangs fails at the deadline", async () => {
    const one = sender({ timeoutMs: SHORT_MS, resolveName: () => new Promise(() => undefined) });
    expect(await one.send(message("http://receiver.test/"))).toMatchObject({ fault: "timeout" });
  });
});

test("a receiver that switches protocols, or hangs up without a word, is a failed try and holds nothing", async () => {
  const answers = [
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n\r\n",
    "",
  ];
  for (const answer of answers) {
    const { url } = await rawServer((socket) => socket.once("data", () => socket.end(answer)));
    expect(await sender().send(message(url))).toMatchObject({ delivered: false });
  }
});
