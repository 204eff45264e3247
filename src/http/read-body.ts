import type { IncomingMessage } from "node:http";
import { PawlError } from "../domain/errors.js";

export interface BodyLimits {
  readonly maxBytes: number;
  /** From the first look at the body to its last byte, however steadily it drips. */
  readonly timeoutMs: number;
}

/**
 * The whole body, at most `maxBytes` of it in memory. Throws PawlError body_too_large (declared or found),
 * request_timeout, or malformed_request where the connection ended first.
 */
export async function readBody(incoming: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const tooLarge = () =>
    new PawlError("body_too_large", `A request body has at most ${limits.maxBytes} bytes.`);
  if (Number(incoming.headers["content-length"] ?? 0) > limits.maxBytes) throw tooLarge();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (error: PawlError | null) => {
      clearTimeout(timer);
      incoming.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
      if (error === null) {
        resolve(Buffer.concat(chunks));
        return;
      }
      // Whatever still comes is thrown away by the server after the answer; an error must not go unheard meanwhile.
      incoming.on("error", () => undefined);
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limits.maxBytes) finish(tooLarge());
      else chunks.push(chunk);
    };
    const onEnd = () => finish(null);
    const onCut = () =>
      finish(new PawlError("malformed_request", "The connection ended before the body did."));
    const onTimeout = () =>
      finish(
        new PawlError("request_timeout", `The body did not arrive within ${limits.timeoutMs / 1000} s.`),
      );
    const timer = setTimeout(onTimeout, limits.timeoutMs);
    if (incoming.destroyed && !incoming.complete) onCut();
    else incoming.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
  });
}
