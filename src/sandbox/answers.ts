import type { Exchange } from "./exchange.js";
import type { Fault } from "./fault-rules.js";
import type { Result } from "./pipeline.js";

/** Sends what the request came to, unharmed. Does nothing where the caller has gone. */
export function sendResult(exchange: Exchange, result: Result): void {
  if (gone(exchange)) return;
  const text = JSON.stringify(result.body);
  exchange.entry.status = result.status;
  exchange.response.writeHead(result.status, headersOf(exchange, result, Buffer.byteLength(text)));
  exchange.response.end(text);
}

/** Cuts the connection without a byte of an answer. */
export function resetConnection(exchange: Exchange): void {
  exchange.cut = true;
  exchange.response.socket?.resetAndDestroy();
}

/** Sends a damaged answer. `result` is what the request came to, null where that is not known (yet). */
export function sendDamaged(exchange: Exchange, fault: Fault, result: Result | null): void {
  if (gone(exchange)) return;
  const status = fault.type === "html" ? fault.status : (result?.status ?? fault.status);
  const text = JSON.stringify(
    result?.body ?? { id: `pi_${exchange.requestId.slice(4)}`, object: "payment_intent" },
  );
  exchange.entry.status = status;
  const head = (contentType: string, length: number): void => {
    const headers = headersOf(exchange, result ?? { headers: {} }, length);
    exchange.response.writeHead(status, { ...headers, "content-type": contentType });
  };
  switch (fault.type) {
    case "garbage": {
      const bytes = Buffer.from(`\u0000\ufffd{"id": "pi_${exchange.requestId}" "object"`, "utf8");
      head("application/json", bytes.length);
      exchange.response.end(bytes);
      return;
    }
    case "empty":
      head("application/json", 0);
      exchange.response.end();
      return;
    case "html": {
      const page = `<html><head><title>${status}</title></head><body><h1>${status} Bad Gateway</h1></body></html>`;
      head("text/html", Buffer.byteLength(page));
      exchange.response.end(page);
      return;
    }
    case "cut_off": {
      const bytes = Buffer.from(text, "utf8");
      head("application/json", bytes.length);
      exchange.response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () =>
        resetConnection(exchange),
      );
      return;
    }
    case "drip":
      head("application/json", Buffer.byteLength(text));
      drip(exchange, Buffer.from(text, "utf8"), fault.interval_ms);
      return;
    default:
      throw new Error(`a fault of type ${fault.type} is no damaged answer`);
  }
}

function drip(exchange: Exchange, bytes: Buffer, intervalMs: number): void {
  let sent = 0;
  const timer = setInterval(() => {
    if (gone(exchange)) return clearInterval(timer);
    exchange.response.write(bytes.subarray(sent, sent + 1));
    sent += 1;
    if (sent < bytes.length) return;
    clearInterval(timer);
    exchange.response.end();
  }, intervalMs);
  exchange.response.once("close", () => clearInterval(timer));
}

function gone(exchange: Exchange): boolean {
  return exchange.response.destroyed || exchange.response.writableEnded;
}

function headersOf(
  exchange: Exchange,
  result: Pick<Result, "headers">,
  length: number,
): Record<string, string | number> {
  const headers: Record<string, string | number> = {
    "content-type": "application/json",
    "content-length": length,
    "request-id": exchange.requestId,
    "stripe-version": exchange.stripeVersion,
    ...result.headers,
  };
  if (exchange.idempotencyKey !== null && exchange.method === "POST") {
    headers["idempotency-key"] = exchange.idempotencyKey;
  }
  return headers;
}
