import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createStripeProvider } from "../../../../src/providers/stripe/stripe-provider.js";
import {
  type Bench,
  json,
  type Reply,
  recordingLogger,
  reset,
  SECRET_KEY,
  startBench,
  text,
} from "./scripted-stripe.js";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const account: Reply = json(200, { id: "acct_1", object: "account" });
const error = (code?: string) => ({ error: { type: "invalid_request_error", ...(code ? { code } : {}) } });

function providerWith(secretKey: string, apiBase: string | null = null) {
  return createStripeProvider({ secretKey, apiBase, timeoutMs: 1_000, log: recordingLogger().log });
}

describe("the account of the key", () => {
  it("is asked for once, however many want to know", async () => {
    bench.stripe.script(account);
    const { provider } = bench;
    const known = { type: "known", accountId: "acct_1" };
    expect(await Promise.all([provider.account(), provider.account()])).toEqual([known, known]);
    expect(await provider.account()).toEqual(known);
    expect(bench.stripe.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /v1/account"]);
  });

  it.each([
    ["401", json(401, error()), "unauthorized"],
    ["429", json(429, error("rate_limit")), "rate_limited"],
    ["409", json(409, error()), "refused"],
    ["500", json(500, { error: { type: "api_error" } }), "server_error"],
    ["a reset", reset, "connection_lost"],
    ["a 403 that is not Stripe's", text(403, "<html>Forbidden</html>"), "unreadable"],
    ["an answer without an id", json(200, { object: "account" }), "unreadable"],
  ])("stays unknown after %s, and is asked for again", async (_what, reply, reason) => {
    bench.stripe.script(reply, account);
    expect(await bench.provider.account()).toEqual({ type: "unanswered", reason });
    expect(await bench.provider.account()).toEqual({ type: "known", accountId: "acct_1" });
  });

  it.each([403, 404, 400])(
    "is the key itself where a restricted key may not read it (%d)",
    async (status) => {
      bench.stripe.script(json(status, error("more_permissions_required")));
      const identity = `key_${bench.provider.credentialDigest.slice(0, 16)}`;
      expect(await bench.provider.account()).toEqual({ type: "known", accountId: identity });
      expect(identity).toMatch(/^key_[0-9a-f]{16}$/);
    },
  );
});

describe("the provider", () => {
  it("knows its mode from the key's prefix", () => {
    expect(providerWith("sk_live_1").livemode).toBe(true);
    expect(providerWith("rk_live_1").livemode).toBe(true);
    expect(providerWith("sk_test_1").livemode).toBe(false);
    expect(providerWith("sk_test_sk_live_1").livemode).toBe(false);
  });

  it("has a digest of its key that is stable, its own and not that of the bare key", () => {
    const digest = providerWith(SECRET_KEY).credentialDigest;
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(providerWith(SECRET_KEY).credentialDigest).toBe(digest);
    expect(providerWith("sk_test_other").credentialDigest).not.toBe(digest);
    expect(createHash("sha256").update(SECRET_KEY).digest("hex")).not.toBe(digest);
  });

  it("sends the key as a bearer token to the base address it was given", async () => {
    bench.stripe.script(account);
    await bench.provider.account();
    expect(bench.stripe.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${SECRET_KEY}`,
      host: new URL(bench.stripe.base).host,
    });
  });

  it.each([
    "ftp://127.0.0.1",
    "http://127.0.0.1/v1",
    "http://user:pw@127.0.0.1",
    "http://127.0.0.1/?a=1",
    "127.0.0.1:80",
  ])("refuses %s as a base address", (apiBase) => {
    expect(() => providerWith(SECRET_KEY, apiBase)).toThrow();
  });

  it.each(["http://127.0.0.1:12111", "http://127.0.0.1:12111/", "https://stripe.test", "http://[::1]:12111"])(
    "takes %s as a base address",
    (apiBase) => {
      expect(providerWith(SECRET_KEY, apiBase).name).toBe("stripe");
    },
  );

  it("throws for parameters that it never stored, before anything is sent", async () => {
    const context = { idempotencyKey: "k", resend: false };
    await expect(bench.provider.createCharge("{}", context)).rejects.toThrow();
    await expect(bench.provider.confirmCharge("pi_1", "{}", context)).rejects.toThrow();
    expect(bench.stripe.requests).toEqual([]);
  });
});
