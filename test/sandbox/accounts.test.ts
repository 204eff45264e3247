import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, created, type ErrorBody, send, stripeFor, TEST_KEY, thrown } from "./support.js";

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.stop());

const accountOf = async (key: string) => (await stripeFor(sandbox, key).accounts.retrieveCurrent()).id;

describe("API keys", () => {
  it.each([null, "", "nonsense", "sk_prod_abc", "sk_test_"])(
    "%j is a 401, and says so in Stripe's shape",
    async (apiKey) => {
      const answer = await send(sandbox, { method: "GET", path: "/v1/account", apiKey });
      expect(answer.status).toBe(401);
      expect(bodyOf<ErrorBody>(answer).error.type).toBe("invalid_request_error");
    },
  );

  it("never repeats an invalid key whole", async () => {
    const answer = await send(sandbox, {
      method: "GET",
      path: "/v1/account",
      apiKey: "sk-secret-that-is-no-key",
    });
    expect(answer.status).toBe(401);
    expect(answer.text).not.toContain("sk-secret-that-is-no-key");
  });

  it("are taken by Basic authentication too", async () => {
    const authorization = `Basic ${Buffer.from(`${TEST_KEY}:`).toString("base64")}`;
    const answer = await send(sandbox, {
      method: "GET",
      path: "/v1/account",
      apiKey: null,
      headers: { authorization },
    });
    expect(bodyOf<{ id: string }>(answer).id).toBe(await accountOf(TEST_KEY));
  });

  it("belong to an account that stays the same, until assigned to another", async () => {
    const first = await accountOf("sk_test_one");
    expect(first).toMatch(/^acct_/);
    expect(await accountOf("sk_test_one")).toBe(first);
    expect(await accountOf("rk_test_one")).toBe(first);
    expect(await accountOf("sk_test_rotated")).not.toBe(first);
    await sandbox.control.assignApiKey("sk_test_rotated", first);
    expect(await accountOf("sk_test_rotated")).toBe(first);
  });

  it("are refused once revoked", async () => {
    await sandbox.control.revokeApiKey("sk_test_lost");
    const error = await thrown(stripeFor(sandbox, "sk_test_lost").accounts.retrieveCurrent());
    expect(error).toMatchObject({ statusCode: 401, code: "api_key_expired" });
  });

  it("do not save a 401 under the idempotency key", async () => {
    const request = { path: "/v1/payment_intents", body: "amount=4200&currency=usd", key: "after-a-401" };
    expect((await send(sandbox, { ...request, apiKey: "sk_live" })).status).toBe(401);
    const answer = await send(sandbox, request);
    expect(answer.status).toBe(200);
    expect(answer.headers["idempotent-replayed"]).toBeUndefined();
  });
});

describe("another account's or mode's objects", () => {
  it("are not there", async () => {
    const made = await created(sandbox);
    for (const key of ["sk_test_stranger", TEST_KEY.replace("_test_", "_live_")]) {
      const stranger = stripeFor(sandbox, key);
      expect(await thrown(stranger.paymentIntents.retrieve(made.id))).toMatchObject({
        statusCode: 404,
        code: "resource_missing",
      });
      expect(await thrown(stranger.paymentIntents.confirm(made.id))).toMatchObject({ statusCode: 404 });
      expect((await stranger.paymentIntents.list()).data).toEqual([]);
    }
    expect((await stripeFor(sandbox).paymentIntents.retrieve(made.id)).status).toBe("requires_confirmation");
  });

  it("do not share idempotency keys", async () => {
    const request = { path: "/v1/payment_intents", body: "amount=4200&currency=usd", key: "shared" };
    const own = bodyOf(await send(sandbox, request));
    const other = await send(sandbox, { ...request, apiKey: "sk_test_stranger" });
    const live = await send(sandbox, { ...request, apiKey: TEST_KEY.replace("_test_", "_live_") });
    expect(new Set([own.id, bodyOf(other).id, bodyOf(live).id]).size).toBe(3);
    expect(bodyOf(live).livemode).toBe(true);
  });
});
