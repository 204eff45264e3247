import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { PROBLEM_TYPE, problemDocument } from "../domain/documents.js";
import { ERROR_CODES, type ErrorCode } from "../domain/errors.js";
import { newId } from "../lib/ids.js";
import { headerLines, requestIdOf } from "./request-headers.js";

export interface Server {
  readonly port: number;
  /** Takes no more connections, lets running requests finish for `graceMs`, then ends what is left. */
  close(graceMs: number): Promise<void>;
}

const HEADERS_MAX_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
/** Headers and body together: the last resort behind the body's own deadline, which is a setting. */
const REQUEST_TIMEOUT_MS = 300_000;
/** Longer than the idle time-out of common proxies (60 s), so that it is they who end a connection. */
const KEEP_ALIVE_MS = 65_000;
const TIMEOUT_CHECK_MS = 1_000;
/** Time for the last bytes of a refusal to leave before the connection is cut. */
const LAST_WORDS_MS = 500;

type Fetch = (request: Request, env: never) => Response | Promise<Response>;

/** Serves on `host` and `port` (0: a free one). Resolves when it listens, rejects when it cannot. */
export async function serve(
  app: { fetch: Fetch },
  address: { readonly host: string; readonly port: number },
): Promise<Server> {
  const running = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  let closing = false;
  const answer = getRequestListener((request, env) => app.fetch(request, env as never), {
    // HTTP/1.0 clients may leave Host out.
    hostname: "localhost",
    errorHandler: () =>
      rawProblem("malformed_request", "The request line or the Host header cannot be read.").response(),
  });
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse, fault: string | null) => {
    running.add(outgoing);
    outgoing.on("close", () => running.delete(outgoing));
    if (closing) outgoing.setHeader("Connection", "close");
    if (fault === null) void answer(incoming, outgoing);
    else rawProblem("malformed_request", fault, requestIdOf(incoming)).end(outgoing);
  };
  const server = createServer(
    {
      maxHeaderSize: HEADERS_MAX_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // Node would answer without a body; what it would refuse is refused in `begin`.
      requireHostHeader: false,
    },
    (incoming: IncomingMessage, outgoing: ServerResponse) => begin(incoming, outgoing, faultOfHost(incoming)),
  );
  server.on("checkExpectation", (incoming: IncomingMessage, outgoing: ServerResponse) =>
    begin(incoming, outgoing, "Of all expectations only 100-continue is met."),
  );
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const pending = [...running].filter((outgoing) => outgoing.socket === socket);
    refuse(error, socket, pending);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: (graceMs) =>
      new Promise((resolve) => {
        closing = true;
        const force = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(force);
          resolve();
        });
        // Node ends connections that are idle between requests, but not those on which none has ever begun.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
        // A kept-alive connection would outlive its answer; this tells the client not to use it again.
        for (const outgoing of running) if (!outgoing.headersSent) outgoing.setHeader("Connection", "close");
      }),
  };
}

/**
 * Bytes that are no HTTP, or that came too slowly. Where an earlier request on the connection is still running, its
 * answer is the one that counts: a 400 in its place would make a client believe that nothing happened.
 */
function refuse(error: NodeJS.ErrnoException, socket: Socket, pending: readonly ServerResponse[]): void {
  const whole = pending.filter((outgoing) => outgoing.req.complete);
  if (whole.length > 0) {
    for (const outgoing of whole) if (!outgoing.headersSent) outgoing.setHeader("Connection", "close");
    return;
  }
  if (!socket.writable || error.code === "ECONNRESET" || pending.some((outgoing) => outgoing.headersSent)) {
    socket.destroy();
    return;
  }
  const problem =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? rawProblem("request_timeout", "The request did not arrive in time.")
      : rawProblem("malformed_request", malformed(error.code));
  socket.end(problem.bytes());
  setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
}

function malformed(code: string | undefined): string {
  return code === "HPE_HEADER_OVERFLOW"
    ? `The request's headers are longer than ${HEADERS_MAX_BYTES} bytes.`
    : "The request is not valid HTTP.";
}

/** RFC 9112 section 3.2: none in HTTP/1.1, or more than one, is a 400. Null: no fault. */
function faultOfHost(incoming: IncomingMessage): string | null {
  const { length } = headerLines(incoming, "host");
  if (length === 1 || (length === 0 && incoming.httpVersion === "1.0")) return null;
  return "A request has exactly one Host header.";
}

interface RawProblem {
  response(): Response;
  bytes(): string;
  /** What is still to come of the request is read and dropped: how long it is is known, and the next one follows. */
  end(outgoing: ServerResponse): void;
}

/** A problem for a request that never reached the app. */
function rawProblem(code: ErrorCode, detail: string, requestId = newId("req")): RawProblem {
  const { status } = ERROR_CODES[code];
  const body = JSON.stringify(problemDocument(code, detail, { requestId }));
  const headers = {
    "Content-Type": PROBLEM_TYPE,
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "Content-Length": String(Buffer.byteLength(body)),
  };
  return {
    response: () => new Response(body, { status, headers }),
    end: (outgoing) => outgoing.writeHead(status, headers).end(body),
    bytes: () =>
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        "Connection: close",
        "",
        body,
      ].join("\r\n"),
  };
}
