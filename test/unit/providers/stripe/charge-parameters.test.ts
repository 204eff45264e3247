import fc from "fast-check";
import Stripe from "stripe";
import { afterEach, describe, expect, it } from "vitest";
import {
  prepareChargeParameters,
  readChargeParameters,
} from "../../../../src/providers/stripe/charge-parameters.js";
import {
  ATTEMPT_ID,
  type Bench,
  FIRST_SEND,
  intent,
  json,
  parametersOf,
  paymentInput,
  RE_SEND,
  reset,
  startBench,
  TENANT_ID,
} from "./scripted-stripe.js";

const REFERENCE = { attemptId: ATTEMPT_ID, tenantId: TENANT_ID };

function prepared(changes: Parameters<typeof paymentInput>[0] = {}): Record<string, unknown> {
  const outcome = prepareChargeParameters(paymentInput(changes), REFERENCE);
  if (!outcome.ok) throw new Error(outcome.detail);
  return JSON.parse(outcome.parameters) as Record<string, unknown>;
}

describe("the parameters of a charge", () => {
  it("are of both calls, and name the API version and every default that matters", () => {
    expect(prepared()).toEqual({
      adapter_version: 1,
      api_version: Stripe.API_VERSION,
      create: {
        amount: 4200,
        currency: "usd",
        payment_method: "pm_card_visa",
        capture_method: "automatic",
        confirmation_method: "automatic",
        allowed_payment_method_types: ["card"],
        metadata: { payment_attempt_id: ATTEMPT_ID, tenant_id: TENANT_ID },
      },
      confirm: { expand: ["latest_charge.balance_transaction"] },
    });
  });

  it("carry what was given, the descriptor as a card's suffix and the return address to the confirm alone", () => {
    const given = {
      capture_method: "manual",
      customer: "cus_1",
      description: "Two tickets",
      statement_descriptor: "TICKETS",
      return_url: "https://shop.example/back?order=17&a=b",
    } as const;
    const { create, confirm } = prepared(given);
    expect(create).toMatchObject({
      capture_method: "manual",
      customer: "cus_1",
      description: "Two tickets",
      statement_descriptor_suffix: "TICKETS",
    });
    expect(create).not.toHaveProperty("statement_descriptor");
    expect(create).not.toHaveProperty("return_url");
    expect(confirm).toEqual({
      return_url: given.return_url,
      expand: ["latest_charge.balance_transaction"],
    });
  });

  it("hold two ids of ours as metadata: nothing of the merchant's and nothing personal", () => {
    const { create } = prepared({ metadata: { email: "ada@example.com" }, merchant_order_id: "order-17" });
    expect((create as { metadata: unknown }).metadata).toEqual({
      payment_attempt_id: ATTEMPT_ID,
      tenant_id: TENANT_ID,
    });
    expect(JSON.stringify(create)).not.toMatch(/ada@example.com|order-17/);
  });

  it("are the same text for the same input", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 999_999_999_999 }),
        fc.option(fc.string()),
        (amount, description) => {
          const input = paymentInput({ amount, description });
          const again = { ...Object.fromEntries(Object.entries(input).reverse()) } as unknown as typeof input;
          expect(prepareChargeParameters(again, REFERENCE)).toEqual(
            prepareChargeParameters(input, REFERENCE),
          );
        },
      ),
    );
  });

  it("are in Stripe's unit", () => {
    expect(prepared({ amount: 500, currency: "ugx" })["create"]).toMatchObject({
      amount: 50_000,
      currency: "ugx",
    });
  });

  it("are refused where Stripe cannot carry the payment exactly", () => {
    const refusal = (amount: number, currency: string) =>
      prepareChargeParameters(paymentInput({ amount, currency }), REFERENCE);
    expect(refusal(5125, "kwd")).toMatchObject({ ok: false, pointer: "/amount" });
    expect(refusal(5125, "iqd")).toMatchObject({ ok: false, pointer: "/currency" });
  });

  it("are read only where this adapter wrote them", () => {
    const written = JSON.stringify(prepared());
    expect(readChargeParameters(written).create.amount).toBe(4200);
    for (const text of [
      "{}",
      written.replace('"adapter_version":1', '"adapter_version":2'),
      "null",
      "not json",
    ]) {
      expect(() => readChargeParameters(text)).toThrow();
    }
  });
});

describe("on the wire", () => {
  let bench: Bench;
  afterEach(() => bench.close());

  it("every send of a call carries the same key, version and body", async () => {
    bench = await startBench({
      replies: [json(503, { error: { type: "api_error" } }), reset, json(200, intent())],
    });
    const { provider, stripe } = bench;
    const parameters = parametersOf(provider, {
      return_url: "https://shop.example/?a=1&b=[2]",
      description: "größer €",
    });
    for (const context of [FIRST_SEND, RE_SEND, RE_SEND]) await provider.createCharge(parameters, context);
    const sent = stripe.requests.map(({ method, path, headers, body }) => ({
      method,
      path,
      key: headers["idempotency-key"],
      version: headers["stripe-version"],
      body,
    }));
    expect(sent[0]).toEqual({
      method: "POST",
      path: "/v1/payment_intents",
      key: FIRST_SEND.idempotencyKey,
      version: Stripe.API_VERSION,
      body:
        "amount=4200&currency=usd&payment_method=pm_card_visa&capture_method=automatic&confirmation_method=automatic" +
        "&allowed_payment_method_types[0]=card&description=gr%C3%B6%C3%9Fer%20%E2%82%AC" +
        `&metadata[payment_attempt_id]=${ATTEMPT_ID}&metadata[tenant_id]=${TENANT_ID}`,
    });
    expect(sent).toEqual([sent[0], sent[0], sent[0]]);
  });

  it("the confirm carries the return address and never the payment method", async () => {
    bench = await startBench({ replies: [json(200, intent({ status: "succeeded" }))] });
    const parameters = parametersOf(bench.provider, { return_url: "https://shop.example/back" });
    const key = { idempotencyKey: `${FIRST_SEND.idempotencyKey}:confirm`, resend: false };
    await bench.provider.confirmCharge("pi_1", parameters, key);
    const [request] = bench.stripe.requests;
    expect(request).toMatchObject({
      method: "POST",
      path: "/v1/payment_intents/pi_1/confirm",
      body: "return_url=https%3A%2F%2Fshop.example%2Fback&expand[0]=latest_charge.balance_transaction",
    });
    expect(request?.headers["idempotency-key"]).toBe(key.idempotencyKey);
  });

  it("the version stored at the accept is sent, also when the adapter's own has moved", async () => {
    bench = await startBench({ replies: [json(200, intent())] });
    const stored = parametersOf(bench.provider).replace(Stripe.API_VERSION, "2025-09-30.clover");
    await bench.provider.createCharge(stored, FIRST_SEND);
    await bench.provider.confirmCharge("pi_1", stored, FIRST_SEND);
    expect(bench.stripe.requests.map(({ headers }) => headers["stripe-version"])).toEqual([
      "2025-09-30.clover",
      "2025-09-30.clover",
    ]);
  });

  it("a text stored before the fee was asked for is sent as it is: its key would not take another parameter", async () => {
    bench = await startBench({ replies: [json(200, intent())] });
    const stored =
      '{"adapter_version":1,"api_version":"2026-10-28.endive","create":{"amount":4200,"currency":"usd"},' +
      '"confirm":{"return_url":"https://shop.example/back"}}';
    await bench.provider.confirmCharge("pi_1", stored, RE_SEND);
    await bench.provider.confirmCharge("pi_1", stored.replace(/"confirm":.*/, '"confirm":{}}'), RE_SEND);
    expect(bench.stripe.requests.map(({ body }) => body)).toEqual([
      "return_url=https%3A%2F%2Fshop.example%2Fback",
      "",
    ]);
  });

  it("the cancel carries its key and no parameters", async () => {
    bench = await startBench({ replies: [json(200, intent({ status: "canceled" }))] });
    await bench.provider.cancelCharge("pi_1", FIRST_SEND);
    expect(bench.stripe.requests[0]).toMatchObject({ path: "/v1/payment_intents/pi_1/cancel", body: "" });
    expect(bench.stripe.requests[0]?.headers["idempotency-key"]).toBe(FIRST_SEND.idempotencyKey);
  });

  it("nothing of the machine is told to Stripe beside the request", async () => {
    bench = await startBench({ replies: [json(200, intent())] });
    await bench.provider.createCharge(parametersOf(bench.provider), FIRST_SEND);
    await bench.provider.createCharge(parametersOf(bench.provider), FIRST_SEND);
    const headers = bench.stripe.requests[1]?.headers ?? {};
    expect(headers["x-stripe-client-telemetry"]).toBeUndefined();
    expect(String(headers["x-stripe-client-user-agent"])).not.toMatch(/platform|telemetry_id/);
  });

  it("an id is one segment of the path, whatever it holds", async () => {
    bench = await startBench({
      replies: [json(404, { error: { type: "invalid_request_error", code: "resource_missing" } })],
    });
    await bench.provider.getCharge("pi_1/../../charges?x=");
    expect(bench.stripe.requests[0]?.path).toBe(
      "/v1/payment_intents/pi_1%2F..%2F..%2Fcharges%3Fx%3D?expand[0]=latest_charge.balance_transaction",
    );
  });
});
