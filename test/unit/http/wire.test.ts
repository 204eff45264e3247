import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { operations } from "./fake-operations.js";
import {
  holdCreate,
  INPUT,
  rawExchange,
  rawHead,
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
      expect(operations.createPayment.mock.calls[0]?.[3]).toBe("K");
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
