import type Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, created, type ErrorBody, send, stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeAll(async () => {
  sandbox = await startSandbox();
  stripe = stripeFor(sandbox);
});
afterAll(() => sandbox.stop());

async function confirmed(
  token: string,
  params: Stripe.PaymentIntentConfirmParams = {},
): Promise<Stripe.PaymentIntent> {
  return stripe.paymentIntents.confirm((await created(sandbox, token)).id, params);
}

describe("test payment methods", () => {
  it.each([
    "pm_card_visa",
    "pm_card_mastercard",
    "pm_card_amex",
    "pm_card_gb",
    "pm_card_createDispute",
    "pm_card_pendingRefund",
    "pm_card_refundFail",
    "pm_card_threeDSecureOptional",
  ])("%s pays", async (token) => {
    expect(await confirmed(token)).toMatchObject({ status: "succeeded", amount_received: 4200 });
  });

  it.each([
    ["pm_card_visa_chargeDeclined", "card_declined", "generic_decline", "try_again_later"],
    ["pm_card_chargeDeclined", "card_declined", "generic_decline", "try_again_later"],
    [
      "pm_card_visa_chargeDeclinedInsufficientFunds",
      "card_declined",
      "insufficient_funds",
      "try_again_later",
    ],
    ["pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card", "do_not_try_again"],
    ["pm_card_visa_chargeDeclinedStolenCard", "card_declined", "stolen_card", "do_not_try_again"],
    [
      "pm_card_visa_chargeDeclinedVelocityLimitExceeded",
      "card_declined",
      "card_velocity_exceeded",
      "try_again_later",
    ],
    ["pm_card_chargeDeclinedExpiredCard", "expired_card", undefined, "do_not_try_again"],
    ["pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", undefined, "confirm_card_data"],
    ["pm_card_chargeDeclinedProcessingError", "processing_error", undefined, "try_again_later"],
    ["pm_card_chargeCustomerFail", "card_declined", "generic_decline", "try_again_later"],
    ["pm_card_radarBlock", "card_declined", "fraudulent", undefined],
  ])("%s is declined with %s / %s / %s", async (token, code, declineCode, adviceCode) => {
    const made = await created(sandbox, token);
    const error = await thrown(stripe.paymentIntents.confirm(made.id));
    expect(error).toMatchObject({ type: "StripeCardError", statusCode: 402, code });
    // The SDK turns an absent decline code into an empty text.
    expect(error.decline_code).toBe(declineCode ?? "");
    expect(error.advice_code).toBe(adviceCode);
    expect(error.payment_intent).toMatchObject({ id: made.id, status: "requires_payment_method" });
    const { last_payment_error: last } = await stripe.paymentIntents.retrieve(made.id);
    expect([last?.code, last?.decline_code, last?.advice_code]).toEqual([code, declineCode, adviceCode]);
  });

  it("shows that Radar's block never reached the network", async () => {
    const error = await thrown(confirmed("pm_card_radarBlock"));
    const charge = await stripe.charges.retrieve(error.charge!);
    expect(charge.outcome).toMatchObject({ type: "blocked", network_status: "not_sent_to_network" });
  });

  it.each([
    "pm_card_authenticationRequired",
    "pm_card_authenticationRequiredOnSetup",
    "pm_card_authenticationRequiredSetupForOffSession",
    "pm_card_threeDSecure2Required",
    "pm_card_threeDSecureRequiredChargeDeclined",
  ])("%s waits for the customer", async (token) => {
    const waiting = await confirmed(token, { return_url: "https://shop.example/back" });
    expect(waiting).toMatchObject({ status: "requires_action", amount_received: 0, latest_charge: null });
    expect(waiting.next_action).toMatchObject({
      type: "redirect_to_url",
      redirect_to_url: { return_url: "https://shop.example/back" },
    });
    expect(waiting.next_action?.redirect_to_url?.url).toContain(sandbox.url);
  });

  it("hands the action to Stripe.js where there is no return URL", async () => {
    expect((await confirmed("pm_card_authenticationRequired")).next_action?.type).toBe("use_stripe_sdk");
  });

  it("declines what needs the customer when the customer is away or may not be asked", async () => {
    const away = await thrown(confirmed("pm_card_authenticationRequired", { off_session: true }));
    expect(away).toMatchObject({ statusCode: 402, code: "authentication_required" });
    const unasked = await thrown(
      confirmed("pm_card_threeDSecure2Required", { error_on_requires_action: true }),
    );
    expect(unasked).toMatchObject({ statusCode: 402, code: "authentication_required" });
    const setUp = await confirmed("pm_card_authenticationRequiredSetupForOffSession", { off_session: true });
    expect(setUp.status).toBe("succeeded");
  });

  it("does not know a token that Stripe does not have, nor another account's payment method", async () => {
    const other = await stripeFor(sandbox, "sk_test_somebodyelse").paymentIntents.create({
      amount: 4200,
      currency: "usd",
      payment_method: "pm_card_visa",
    });
    for (const method of ["pm_card_visa_chargeDeclinedTwice", "pm_1nobody", other.payment_method as string]) {
      const body = `amount=4200&currency=usd&payment_method=${method}`;
      const answer = await send(sandbox, { path: "/v1/payment_intents", body });
      expect(answer.status).toBe(400);
      expect(bodyOf<ErrorBody>(answer).error).toMatchObject({
        code: "resource_missing",
        param: "payment_method",
        message: `No such PaymentMethod: '${method}'`,
      });
    }
  });

  it("takes tokens as payment_method_data and no card numbers", async () => {
    const start = "/v1/payment_intents";
    const data = "amount=4200&currency=usd&payment_method_data[type]=card&payment_method_data[card]";
    expect((await send(sandbox, { path: start, body: `${data}[token]=tok_visa` })).status).toBe(200);
    expect((await send(sandbox, { path: start, body: `${data}[number]=4242424242424242` })).status).toBe(400);
  });
});
