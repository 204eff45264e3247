import type Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, created, type ErrorBody, send, stripeFor, TEST_KEY, thrown } from "./support.js";

const PUBLISHABLE = TEST_KEY.replace("sk_", "pk_");

let sandbox: Sandbox;
let stripe: Stripe;

beforeAll(async () => {
  sandbox = await startSandbox();
  stripe = stripeFor(sandbox);
});
afterAll(() => sandbox.stop());

function fromBrowser(made: Stripe.PaymentIntent, more = "", apiKey = PUBLISHABLE) {
  const body = `client_secret=${made.client_secret ?? ""}${more}`;
  return send(sandbox, { path: `/v1/payment_intents/${made.id}/confirm`, body, apiKey });
}

async function waiting(token = "pm_card_authenticationRequired"): Promise<Stripe.PaymentIntent> {
  const made = await created(sandbox, token);
  return stripe.paymentIntents.confirm(made.id, { return_url: "https://shop.example/back?order=17" });
}

describe("a confirm from the browser", () => {
  it("pays a declined object with another card", async () => {
    const made = await created(sandbox, "pm_card_visa_chargeDeclined");
    await thrown(stripe.paymentIntents.confirm(made.id));
    const answer = await fromBrowser(made, "&payment_method=pm_card_visa");
    expect(bodyOf(answer).status).toBe("succeeded");
    expect((await stripe.paymentIntents.retrieve(made.id)).status).toBe("succeeded");
    expect((await sandbox.control.getPaymentIntent(made.id)).charges.map((each) => each.status)).toEqual([
      "failed",
      "succeeded",
    ]);
  });

  it("pays an object that waited for 3D Secure with another card", async () => {
    const made = await waiting();
    expect(bodyOf(await fromBrowser(made, "&payment_method=pm_card_visa")).status).toBe("succeeded");
  });

  it("meets the same state guard", async () => {
    const made = await created(sandbox);
    await stripe.paymentIntents.cancel(made.id);
    const answer = await fromBrowser(made, "&payment_method=pm_card_visa");
    expect(answer.status).toBe(400);
    expect(bodyOf<ErrorBody>(answer).error.code).toBe("payment_intent_unexpected_state");
  });

  it("shows the browser neither metadata nor charge", async () => {
    const made = await created(sandbox, "pm_card_visa", "&metadata[secret]=1");
    const seen = bodyOf<Partial<Stripe.PaymentIntent>>(await fromBrowser(made));
    expect(seen.status).toBe("succeeded");
    expect(seen.metadata).toBeUndefined();
    expect(seen.latest_charge).toBeUndefined();
  });

  it("needs the object's own secret and the account's own key", async () => {
    const made = await created(sandbox);
    const stolen = { ...made, client_secret: `${made.id}_secret_guessed` };
    expect((await fromBrowser(stolen)).status).toBe(400);
    expect((await fromBrowser(made, "", "pk_test_stranger")).status).toBe(404);
    const path = `/v1/payment_intents/${made.id}/confirm`;
    expect((await send(sandbox, { path, apiKey: PUBLISHABLE })).status).toBe(400);
    expect((await stripe.paymentIntents.retrieve(made.id)).status).toBe("requires_confirmation");
  });

  it("is all that a publishable key may do, besides reading that object", async () => {
    const made = await created(sandbox);
    const read = `/v1/payment_intents/${made.id}?client_secret=${made.client_secret ?? ""}`;
    expect((await send(sandbox, { method: "GET", path: read, apiKey: PUBLISHABLE })).status).toBe(200);
    for (const path of [`/v1/payment_intents/${made.id}/cancel`, "/v1/payment_intents"]) {
      const answer = await send(sandbox, {
        path,
        body: `client_secret=${made.client_secret ?? ""}`,
        apiKey: PUBLISHABLE,
      });
      expect(bodyOf<ErrorBody>(answer).error.code).toBe("secret_key_required");
    }
  });

  it("can be done for the customer by the control API, declines included", async () => {
    const made = await created(sandbox, "pm_card_visa_chargeDeclined");
    const declined = await sandbox.control.confirmAsCustomer(made.id);
    expect(declined.payment_intent.status).toBe("requires_payment_method");
    const paid = await sandbox.control.confirmAsCustomer(made.id, { payment_method: "pm_card_visa" });
    expect(paid).toMatchObject({ payment_intent: { status: "succeeded" }, successful_charges: 1 });
    await expect(sandbox.control.confirmAsCustomer(made.id)).rejects.toThrow("already succeeded");
  });
});

describe("3D Secure", () => {
  it("is completed on the page that next_action leads to, which sends the customer back", async () => {
    const made = await waiting();
    const url = made.next_action?.redirect_to_url?.url ?? "";
    expect(await (await fetch(url)).text()).toContain("3D Secure");
    const form = {
      method: "POST",
      body: new URLSearchParams({ outcome: "complete" }),
      redirect: "manual",
    } as const;
    const answer = await fetch(url, form);
    expect(answer.status).toBe(303);
    const back = new URL(answer.headers.get("location") ?? "");
    expect(back.origin + back.pathname).toBe("https://shop.example/back");
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      order: "17",
      payment_intent: made.id,
      redirect_status: "succeeded",
    });
    expect(await stripe.paymentIntents.retrieve(made.id)).toMatchObject({
      status: "succeeded",
      next_action: null,
    });
    expect((await fetch(url, form)).status).toBe(409);
  });

  it("failed, leaves the object to another payment method and charges nothing", async () => {
    const made = await waiting();
    const failed = await sandbox.control.authenticate(made.id, "fail");
    expect(failed.payment_intent).toMatchObject({
      status: "requires_payment_method",
      next_action: null,
      last_payment_error: { code: "payment_intent_authentication_failure" },
    });
    expect(failed.charges).toEqual([]);
    await expect(sandbox.control.authenticate(made.id, "complete")).rejects.toThrow("does not wait");
  });

  it("completed, may still end in a decline", async () => {
    const made = await waiting("pm_card_threeDSecureRequiredChargeDeclined");
    const declined = await sandbox.control.authenticate(made.id, "complete");
    expect(declined.payment_intent).toMatchObject({
      status: "requires_payment_method",
      last_payment_error: { code: "card_declined" },
    });
  });

  it("completed for a manual capture, holds the amount", async () => {
    const made = await created(sandbox, "pm_card_authenticationRequired", "&capture_method=manual");
    await stripe.paymentIntents.confirm(made.id);
    const held = await sandbox.control.authenticate(made.id, "complete");
    expect(held.payment_intent).toMatchObject({ status: "requires_capture", amount_capturable: 4200 });
  });

  it("is not offered to whoever lacks the client secret", async () => {
    const made = await waiting();
    const url = `${sandbox.url}/_hosted/three_d_secure/${made.id}?client_secret=guessed`;
    expect((await fetch(url, { method: "POST", body: "outcome=complete" })).status).toBe(404);
    expect((await stripe.paymentIntents.retrieve(made.id)).status).toBe("requires_action");
  });
});
