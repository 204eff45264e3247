import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/lib/log.js";
import { acceptRow, type CreateRequest } from "../../../src/operations/accept-row.js";
import type { Deps } from "../../../src/operations/deps.js";
import { createStripeProvider } from "../../../src/providers/stripe/stripe-provider.js";
import { paymentInput } from "../../support/harness.js";

const provider = createStripeProvider({
  secretKey: "sk_test_unit",
  apiBase: "http://127.0.0.1:1",
  timeoutMs: 1_000,
  log: createLogger({ level: "silent" }),
});
const deps = {
  provider,
  installationSecret: "secret",
  account: { current: () => ({ type: "known", accountId: "acct_1", livemode: false }) },
} as unknown as Deps;

function request(input: Partial<ReturnType<typeof paymentInput>> = {}): CreateRequest {
  return {
    caller: { tenantId: "ten_1", keyId: "key_1", scopes: [], livemode: false },
    context: { requestId: "req_1", traceparent: null, signal: new AbortController().signal },
    operation: "payments.create",
    key: "key",
    fingerprint: "v1:0",
    wait: { waitMs: 0, explicit: false },
    input: paymentInput(input),
  };
}

describe("what an accept inserts", () => {
  it("has an attempt derived from key and run, so that lost rows meet the same provider key again", () => {
    const [one, same, next] = [
      acceptRow(deps, request(), 1),
      acceptRow(deps, request(), 1),
      acceptRow(deps, request(), 2),
    ];
    expect(one.attempt_id).toBe(same.attempt_id);
    expect(one.parameters).toBe(same.parameters);
    expect(one.payment_id).not.toBe(same.payment_id);
    expect(next.attempt_id).not.toBe(one.attempt_id);
  });

  it("shows the payment without its times, which are the database's", () => {
    const document = JSON.parse(acceptRow(deps, request(), 1).document) as Record<string, unknown>;
    expect(document).toMatchObject({ status: "processing", amount: 4200, amount_refundable: 0 });
    expect(document).not.toHaveProperty("created_at");
  });

  it("is refused where the provider cannot carry the amount exactly", () => {
    const kwd = request({ amount: 5_125, currency: "kwd" });
    expect(() => acceptRow(deps, kwd, 1)).toThrow(expect.objectContaining({ code: "amount_not_supported" }));
  });
});
