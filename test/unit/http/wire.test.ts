import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { operations } from "./fake-operations.js";
import {
  given,
  holdCreate,
  INPUT,
  rawExchange,
  rawHead,
  SECRET,
  STILL_PROCESSING,
  startApp,
  type TestServer,
} from "./harness.js";

vi.mock(
  "../../../src/operations/authenticate.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/create-payment.js",
  async () => (await import("./fake-operations.js")).operations,
);

const BODY_TIMEOUT_MS = 300;
const BODY = JSON.stringify(INPUT);
const JSON_HEADERS = ["Content-Type: application/json", `Content-Length: ${BODY.length}`];
const CLOSE = "Connection: close";

let app: TestServer;
beforeAll(async () => {
  app = await startApp({ requestBodyTimeoutMs: BODY_TIMEOUT_MS });
});
beforeEach(() => {
  operations.createPayment.mockReset().mockResolvedValue(STILL_PROCESSING);
});
afterAll(() => app.server.close(1_000));

function statusOf(received: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1]);
}
function codeOf(received: string): string | undefined {
  return /"code":"(\w+)"/.exec(received)?.[1];
}

describe("the key header on the wire", () => {
  it.each([
    ["two lines with the same value", ["Idempotency-Key: K", "Idempotency-Key: K"]],
    ["two lines with different values", ["Idempotency-Key: K", "Idempotency-Key: L"]],
    ["two lines in mixed case", ["idempotency-key: K", "IDEMPOTENCY-KEY: K"]],
    ["two quoted lines", ['Idempotency-Key: "K"', 'Idempotency-Key: "K"']],
    ["one joined line", ["Idempotency-Key: K, K"]],
    ["blanks", ["Idempotency-Key:   \t "]],
    ["nothing", ["Idempotency-Key:"]],
    ["bytes outside ASCII", ["Idempotency-Key: K\u00e9"]],
  ])("is invalid as %s", async (_what, lines) => {
    const received = await rawExchange(app.port, `${rawHead(...JSON_HEADERS, ...lines, CLOSE)}\r\n${BODY}`);
    expect(statusOf(received)).toBe(400);
    expect(codeOf(received)).toBe("idempotency_key_invalid");
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it.each(["Idempotency-Key: K", "iDEMPOTENCY-kEY:K", 'Idempotency-Key:   "K"  '])(
    "names K as %s",
    async (line) => {
      const received = await rawExchange(app.port, `${rawHead(...JSON_HEADERS, line, CLOSE)}\r\n${BODY}`);
      expect(statusOf(received)).toBe(202);
      expect(given().key).toBe("K");
    },
  );
});

describe("two credentials", () => {
  it("are none: nobody can say whose request it is", async () => {
    const received = await rawExchange(
      app.port,
      `${rawHead("Authorization: Bearer pawl_test_other", ...JSON_HEADERS, "Idempotency-Key: K", CLOSE)}\r\n${BODY}`,
    );
    expect(statusOf(received)).toBe(401);
  });
});

describe("a body on the wire", () => {
  const keyed = (...lines: string[]) =>
    rawHead("Idempotency-Key: K", "Content-Type: application/json", ...lines);

  it("is taken in chunks", async () => {
    const chunks = `7\r\n${BODY.slice(0, 7)}\r\n${(BODY.length - 7).toString(16)}\r\n${BODY.slice(7)}\r\n0\r\n\r\n`;
    const received = await rawExchange(
      app.port,
      `${keyed("Transfer-Encoding: chunked", CLOSE)}\r\n${chunks}`,
    );
    expect(statusOf(received)).toBe(202);
  });

  it("may have 65,536 bytes and not one more", async () => {
    for (const [size, status] of [
      [65_536, 202],
      [65_537, 413],
    ] as const) {
      const body = BODY.padEnd(size, " ");
      const received = await rawExchange(app.port, `${keyed(`Content-Length: ${size}`, CLOSE)}\r\n${body}`);
      expect(statusOf(received)).toBe(status);
    }
  });

  it("is refused by its declared length before it is read", async () => {
    const received = await rawExchange(app.port, `${keyed("Content-Length: 10000000000", CLOSE)}\r\n`);
    expect(statusOf(received)).toBe(413);
    expect(codeOf(received)).toBe("body_too_large");
  });

  it("is refused in chunks that grow beyond the limit, without all of them being read", async () => {
    const chunk = `4000\r\n${" ".repeat(0x4000)}\r\n`;
    const received = await rawExchange(
      app.port,
      `${keyed("Transfer-Encoding: chunked")}\r\n`,
      ...Array.from({ length: 5 }, () => chunk),
    );
    expect(statusOf(received)).toBe(413);
  });

  it("that drips too slowly is a 408, whatever its pace", async () => {
    const socket = connect(app.port, "127.0.0.1");
    const dripping = setInterval(() => socket.write(" "), 20);
    let received = "";
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      received += text;
    });
    // The server cuts the connection under the next drop.
    socket.on("error", () => undefined);
    socket.write(`${keyed("Content-Length: 60000")}\r\n`);
    await new Promise((resolve) => socket.on("close", resolve));
    clearInterval(dripping);
    expect(statusOf(received)).toBe(408);
    expect(codeOf(received)).toBe("request_timeout");
  });

  it("shorter than declared is a 408, and nothing was run", async () => {
    const received = await rawExchange(app.port, `${keyed(`Content-Length: ${BODY.length + 1}`)}\r\n${BODY}`);
    expect(statusOf(received)).toBe(408);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("longer than declared is a 400, and nothing was run", async () => {
    const received = await rawExchange(app.port, `${keyed("Content-Length: 10")}\r\n${BODY}`);
    expect(statusOf(received)).toBe(400);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it.each([
    ["a length that is no number", ["Content-Length: ten"]],
    ["a negative length", ["Content-Length: -5"]],
    ["two lengths", ["Content-Length: 5", "Content-Length: 6"]],
    ["a length and chunks", ["Content-Length: 5", "Transfer-Encoding: chunked"]],
  ])("with %s is a problem with status 400", async (_what, lines) => {
    const received = await rawExchange(app.port, `${keyed(...lines)}\r\n${BODY}`);
    expect(statusOf(received)).toBe(400);
    expect(received).toContain("application/problem+json");
    expect(codeOf(received)).toBe("malformed_request");
  });

  it("in a broken chunk is a 400", async () => {
    const received = await rawExchange(app.port, `${keyed("Transfer-Encoding: chunked")}\r\nzz\r\n`);
    expect(statusOf(received)).toBe(400);
  });

  it("without a content type is a 415", async () => {
    const head = rawHead("Idempotency-Key: K", `Content-Length: ${BODY.length}`, CLOSE);
    expect(statusOf(await rawExchange(app.port, `${head}\r\n${BODY}`))).toBe(415);
  });

  it("of a client that goes away is dropped, and the next client is served", async () => {
    const socket = connect(app.port, "127.0.0.1");
    socket.write(`${keyed("Content-Length: 1000")}\r\n{"amount"`);
    await vi.waitFor(() => expect(operations.authenticate).toHaveBeenCalled());
    socket.destroy();
    const received = await rawExchange(
      app.port,
      `${keyed(`Content-Length: ${BODY.length}`, CLOSE)}\r\n${BODY}`,
    );
    expect(statusOf(received)).toBe(202);
  });
});

describe("bytes that are no HTTP", () => {
  it("get a problem with status 400", async () => {
    const received = await rawExchange(app.port, "NONSENSE\r\n\r\n");
    expect(statusOf(received)).toBe(400);
    expect(codeOf(received)).toBe("malformed_request");
  });

  it("in headers of more than 16 KiB get a problem with status 400", async () => {
    const received = await rawExchange(app.port, `${rawHead(`X-Long: ${"x".repeat(20_000)}`)}\r\n`);
    expect(statusOf(received)).toBe(400);
    expect(received).toContain("16384 bytes");
  });

  it.each(["GET /v1/payments\\x HTTP/1.1", "GET /%zz HTTP/1.1", "GET //evil HTTP/1.1"])(
    "in a path are no 500: %s",
    async (line) => {
      const received = await rawExchange(app.port, `${line}\r\nHost: pawl\r\n${CLOSE}\r\n\r\n`);
      expect([400, 404]).toContain(statusOf(received));
    },
  );

  it("in the Host header get a problem with status 400", async () => {
    const received = await rawExchange(app.port, `GET /docs HTTP/1.1\r\nHost: a b/c\r\n${CLOSE}\r\n\r\n`);
    expect(statusOf(received)).toBe(400);
    expect(codeOf(received)).toBe("malformed_request");
  });

  it("behind a running request do not take the place of its answer", async () => {
    const request = `${rawHead(...JSON_HEADERS, "Idempotency-Key: K")}\r\n${BODY}`;
    const held = holdCreate();
    const received = rawExchange(app.port, request, "NONSENSE\r\n\r\n");
    await held.reached;
    held.answer(STILL_PROCESSING);
    expect(await received).toMatch(/^HTTP\/1\.1 202/);
  });
});

describe("a query", () => {
  it.each([Buffer.from("\u00fc"), Buffer.from([0xff])])(
    "in bytes outside ASCII is refused, not read as other characters",
    async (bytes) => {
      const end = ` HTTP/1.1\r\nHost: pawl\r\nAuthorization: Bearer ${SECRET}\r\n${CLOSE}\r\n\r\n`;
      const line = Buffer.concat([
        Buffer.from("GET /v1/payments?merchant_order_id="),
        bytes,
        Buffer.from(end),
      ]);
      const received = await rawExchange(app.port, line);
      expect(statusOf(received)).toBe(400);
      expect(received).toContain("application/problem+json");
    },
  );
});

describe("a request that Node would refuse without a word", () => {
  const problem = /^HTTP\/1\.1 400 [^]*X-Request-Id: (\w+)\r\n[^]*"request_id":"\1"/;
  const next = `${rawHead(...JSON_HEADERS, "Idempotency-Key: K", CLOSE)}\r\n${BODY}`;
  const headless = (version: string, ...lines: string[]) =>
    [`GET /docs HTTP/${version}`, ...lines, "", ""].join("\r\n");

  it.each([
    ["without Host", headless("1.1")],
    ["with two", headless("1.1", "Host: pawl", "Host: pawl")],
    ["with an expectation that nobody knows", headless("1.1", "Host: pawl", "Expect: fancy")],
    ["with one and a body", `${rawHead(...JSON_HEADERS, "Idempotency-Key: L", "Expect: fancy")}\r\n${BODY}`],
    ["without Host and with a body", `${rawHead(...JSON_HEADERS).replace("Host: pawl\r\n", "")}\r\n${BODY}`],
  ])("gets a problem, and the next one on the connection is served: %s", async (_what, request) => {
    const received = await rawExchange(app.port, request, next);
    expect(received).toMatch(problem);
    expect(received).toContain("application/problem+json");
    expect(codeOf(received)).toBe("malformed_request");
    expect(received.match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 400", "HTTP/1.1 202"]);
    expect(operations.createPayment).toHaveBeenCalledOnce();
    expect(given().key).toBe("K");
  });

  it.each([
    ["a length and chunks", ["Content-Length: 5", "Transfer-Encoding: chunked"]],
    ["two lengths", ["Content-Length: 5", "Content-Length: 6"]],
  ])("is not read on where nobody can say where it ends: %s", async (_what, lines) => {
    const head = rawHead("Content-Type: application/json", "Expect: fancy", ...lines);
    const received = await rawExchange(app.port, `${head}\r\n0\r\n\r\n`, next);
    expect(received.match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 400"]);
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(operations.createPayment).not.toHaveBeenCalled();
  });

  it("is answered with its own request id, and a HEAD without a body", async () => {
    const received = await rawExchange(
      app.port,
      "HEAD /docs HTTP/1.1\r\nX-Request-Id: mine\r\nConnection: close\r\n\r\n",
    );
    expect(received).toMatch(/^X-Request-Id: mine\r$/m);
    expect(received).toMatch(/\r\n\r\n$/);
  });

  it("is answered after the one before it on the same connection, whose answer stays whole", async () => {
    const first = `${rawHead(...JSON_HEADERS, "Idempotency-Key: K")}\r\n${BODY}`;
    const held = holdCreate();
    const received = rawExchange(app.port, first, headless("1.1", CLOSE));
    await held.reached;
    held.answer(STILL_PROCESSING);
    expect((await received).match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 202", "HTTP/1.1 400"]);
  });

  it.each([
    ["HTTP/1.0 without Host", headless("1.0"), 200],
    [
      "a body that waits to be asked for",
      `${rawHead(...JSON_HEADERS, "Idempotency-Key: K", CLOSE, "Expect: 100-continue")}\r\n${BODY}`,
      100,
    ],
  ])("is not %s", async (_what, request, status) => {
    const received = await rawExchange(app.port, request);
    expect(statusOf(received)).toBe(status);
    expect(received).not.toContain("problem+json");
  });
});
