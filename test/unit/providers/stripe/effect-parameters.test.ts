import fc from "fast-check";
import Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EffectInput } from "../../../../src/domain/provider.js";
import { prepareEffectParameters } from "../../../../src/providers/stripe/effect-parameters.js";
import {
  ATTEMPT_ID,
  type Bench,
  EFFECTS,
  effectOf,
  FIRST_SEND,
  intent,
  json,
  RE_SEND,
  refund,
  reset,
  startBench,
  TENANT_ID,
} from "./scripted-stripe.js";

const REFERENCE = { attemptId: ATTEMPT_ID, tenantId: TENANT_ID };
const HEAD = { adapter_version: 1, api_version: Stripe.API_VERSION };
const EXPAND = ["latest_charge.balance_transaction"];

function prepared(input: EffectInput): Record<string, unknown> {
  const outcome = prepareEffectParameters(input, REFERENCE);
  if (!outcome.ok) throw new Error(outcome.detail);
  return JSON.parse(outcome.parameters) as Record<string, unknown>;
}

describe("the parameters of an effect", () => {
  it("name a capture's amount, whole or not", () => {
    expect(prepared(EFFECTS.capture)).toEqual({
      ...HEAD,
      capture: { amount_to_capture: 4200, expand: EXPAND },
    });
    expect(prepared({ ...EFFECTS.capture, amount: 600 })["capture"]).toMatchObject({
      amount_to_capture: 600,
    });
  });

  it("name a refund's amount, its object and two ids of ours, and nothing else", () => {
    expect(prepared(EFFECTS.refund)).toEqual({
      ...HEAD,
      refund: {
        payment_intent: "pi_1",
        amount: 1500,
        metadata: { payment_attempt_id: ATTEMPT_ID, tenant_id: TENANT_ID },
      },
    });
  });

  it.each(["duplicate", "fraudulent", "requested_by_customer"])("pass on the reason %s", (reason) => {
    expect(prepared({ ...EFFECTS.refund, reason })["refund"]).toMatchObject({ reason });
    expect(prepared({ ...EFFECTS.cancel, reason })["cancel"]).toEqual({ cancellation_reason: reason });
  });

  it("pass on that a cancel was abandoned, which no refund can be", () => {
    const reason = "abandoned";
    expect(prepared({ ...EFFECTS.cancel, reason })["cancel"]).toEqual({ cancellation_reason: reason });
    expect(prepared({ ...EFFECTS.refund, reason })["refund"]).not.toHaveProperty("reason");
  });

  it.each(["Ada changed her mind", "automatic", "expired", "expired_uncaptured_charge", "Duplicate", ""])(
    "keep a reason that is not Stripe's to ourselves: %s",
    (reason) => {
      expect(prepared({ ...EFFECTS.refund, reason })["refund"]).not.toHaveProperty("reason");
      expect(prepared({ ...EFFECTS.cancel, reason })["cancel"]).toEqual({});
    },
  );

  it("are in Stripe's unit", () => {
    const money = { amount: 500, currency: "ugx" };
    expect(prepared({ ...EFFECTS.capture, ...money })["capture"]).toMatchObject({
      amount_to_capture: 50_000,
    });
    expect(prepared({ ...EFFECTS.refund, ...money })["refund"]).toMatchObject({ amount: 50_000 });
  });

  it("are refused, about the amount, where Stripe cannot carry it exactly", () => {
    for (const currency of ["bhd", "jod", "kwd", "omr", "tnd"]) {
      for (const effect of [EFFECTS.capture, EFFECTS.refund]) {
        expect(prepareEffectParameters({ ...effect, amount: 5125, currency }, REFERENCE)).toMatchObject({
          ok: false,
          pointer: "/amount",
        });
        expect(prepareEffectParameters({ ...effect, amount: 5120, currency }, REFERENCE).ok).toBe(true);
      }
    }
  });

  it("are the same text for the same input", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999_999_999 }), fc.option(fc.string()), (amount, reason) => {
        const input = { ...EFFECTS.refund, amount, reason };
        const again = Object.fromEntries(Object.entries(input).reverse()) as unknown as typeof input;
        expect(prepareEffectParameters(again, REFERENCE)).toEqual(prepareEffectParameters(input, REFERENCE));
      }),
    );
  });
});

describe("on the wire, an effect", () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await startBench();
  });
  afterEach(() => bench.close());

  const sent = () =>
    bench.stripe.requests.map(({ method, path, headers, body }) => ({
      method,
      path,
      key: headers["idempotency-key"],
      version: headers["stripe-version"],
      body,
    }));

  it.each([
    [
      "capture",
      "/v1/payment_intents/pi_1/capture",
      "amount_to_capture=4200&expand[0]=latest_charge.balance_transaction",
    ],
    ["cancel", "/v1/payment_intents/pi_1/cancel", ""],
    [
      "refund",
      "/v1/refunds",
      `payment_intent=pi_1&amount=1500&metadata[payment_attempt_id]=${ATTEMPT_ID}&metadata[tenant_id]=${TENANT_ID}`,
    ],
  ] as const)("%s carries the same key, version and body in every send", async (call, path, body) => {
    const { provider, stripe } = bench;
    stripe.script(json(503, { error: { type: "api_error" } }), reset, json(200, intent()));
    const parameters = effectOf(provider, EFFECTS[call]);
    for (const context of [FIRST_SEND, RE_SEND, RE_SEND]) {
      if (call === "capture") await provider.captureCharge("pi_1", parameters, context);
      if (call === "cancel") await provider.voidCharge("pi_1", parameters, context);
      if (call === "refund") await provider.createRefund(parameters, context);
    }
    const key = FIRST_SEND.idempotencyKey;
    const one = { method: "POST", path, key, version: Stripe.API_VERSION, body };
    expect(sent()).toEqual([one, one, one]);
  });

  it("is sent as it was stored, also where another version of the adapter stored it", async () => {
    const { provider, stripe } = bench;
    const version = "2025-09-30.clover";
    const stored = (members: object) =>
      JSON.stringify({ adapter_version: 1, api_version: version, ...members });
    stripe.script(json(200, intent()));
    await provider.captureCharge("pi_1", stored({ capture: { amount_to_capture: 7 } }), FIRST_SEND);
    await provider.voidCharge("pi_1", stored({ cancel: { cancellation_reason: "abandoned" } }), FIRST_SEND);
    await provider.createRefund(stored({ refund: { payment_intent: "pi_1", amount: 9 } }), FIRST_SEND);
    expect(sent().map((each) => [each.version, each.body])).toEqual([
      [version, "amount_to_capture=7"],
      [version, "cancellation_reason=abandoned"],
      [version, "payment_intent=pi_1&amount=9"],
    ]);
  });

  it("of another kind, or of no adapter's, is not sent at all", async () => {
    const { provider, stripe } = bench;
    const capture = effectOf(provider, EFFECTS.capture);
    const texts = [
      capture,
      "{}",
      "null",
      "not json",
      '{"adapter_version":1,"api_version":"x","refund":null}',
    ];
    for (const parameters of texts) {
      await expect(provider.createRefund(parameters, FIRST_SEND)).rejects.toThrow();
      await expect(provider.voidCharge("pi_1", parameters, FIRST_SEND)).rejects.toThrow();
    }
    const future = capture.replace('"adapter_version":1', '"adapter_version":2');
    await expect(provider.captureCharge("pi_1", future, FIRST_SEND)).rejects.toThrow();
    expect(stripe.requests).toEqual([]);
  });

  it("takes a refund of the PaymentIntent that is meant", async () => {
    bench.stripe.script(json(200, refund()));
    const parameters = effectOf(bench.provider, EFFECTS.refund);
    expect(await bench.provider.createRefund(parameters, FIRST_SEND)).toMatchObject({ type: "refund" });
  });
});
