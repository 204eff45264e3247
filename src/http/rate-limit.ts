import { rateLimiter } from "hono-rate-limiter";
import { PawlError } from "../domain/errors.js";
import type { HttpContext, HttpEnv } from "./exchange.js";

const WINDOW_MS = 1000;

/** Counts one request of an API key; throws PawlError rate_limited for one too many within this second. */
export type RateLimit = (http: HttpContext, keyId: string) => Promise<void>;

/** Counted in this process alone: with several API processes, each grants the limit. Null: `perSecond` is 0, no limit. */
export function createRateLimit(perSecond: number): RateLimit | null {
  if (perSecond === 0) return null;
  // The middleware takes its key from the context alone, and a key is known only after authentication.
  const keyIds = new WeakMap<HttpContext, string>();
  const limiter = rateLimiter<HttpEnv>({
    windowMs: WINDOW_MS,
    limit: perSecond,
    standardHeaders: false,
    keyGenerator: (http) => keyIds.get(http) ?? "",
    handler: () => {
      throw new PawlError("rate_limited", `An API key may make ${perSecond} requests a second here.`, {
        retryAfterSeconds: WINDOW_MS / 1000,
      });
    },
  });
  return async (http, keyId) => {
    keyIds.set(http, keyId);
    await limiter(http, () => Promise.resolve());
  };
}
