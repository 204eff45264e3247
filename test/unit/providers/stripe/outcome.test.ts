import { describe, expect, it } from "vitest";
import { toProviderCharge } from "../../../../src/providers/stripe/outcome.js";
import { ATTEMPT_ID, intent, TENANT_ID } from "./scripted-stripe.js";

const DECLINE = {
  type: "card_error",
  code: "card_declined",
  decline_code: "insufficient_funds",
  advice_code: "try_again_later",
  message: "Your card has insufficient funds.",
};

describe("a PaymentIntent, read as a charge", () => {
  it("shows its money, mode and whose it is", () => {
    expect(toProviderCharge(intent({ status: "succeeded", amount_received: 4200 }))).toEqual({
      id: "pi_1",
      status: "succeeded",
      amount: 4200,
      currency: "usd",
      amountCapturable: 0,
      amountCaptured: 4200,
      livemode: false,
      attemptId: ATTEMPT_ID,
      tenantId: TENANT_ID,
      nextAction: null,
      failure: null,
      authorizedUntil: null,
      lapsed: false,
      fee: null,
    });
  });

  it.each([
    [{ status: "requires_confirmation" }, "created"],
    [{ status: "requires_payment_method", payment_method: null }, "created"],
    [{ status: "requires_payment_method", payment_method: null, last_payment_error: DECLINE }, "declined"],
    [{ status: "requires_payment_method" }, "unrecognized"],
    [{ status: "requires_action" }, "requires_action"],
    [{ status: "processing" }, "pending"],
    [{ status: "requires_capture", amount_capturable: 4200 }, "authorized"],
    [{ status: "succeeded" }, "succeeded"],
    [{ status: "canceled" }, "canceled"],
    [{ status: "canceled", last_payment_error: DECLINE }, "canceled"],
    [{ status: "requires_something_new" }, "unrecognized"],
  ])("%o is %s", (changes, status) => {
    expect(toProviderCharge(intent(changes))?.status).toBe(status);
  });

  it("takes a decline's reasons from its last error, redacted and short", () => {
    const message = "long ".repeat(200);
    const declined = (error: unknown) =>
      toProviderCharge(intent({ status: "requires_payment_method", last_payment_error: error }))?.failure;
    expect(declined(DECLINE)).toEqual({
      code: "card_declined",
      decline_code: "insufficient_funds",
      message: "Your card has insufficient funds.",
      advice_code: "try_again_later",
      retry: "new_key",
    });
    expect(declined({ message: "Card 4242 4242 4242 4242 failed" })?.message).toBe(
      "Card [digits redacted] failed",
    );
    expect(declined({ ...DECLINE, message })?.message).toHaveLength(500);
    expect(declined({})?.code).toBe("card_declined");
  });

  it("tells the customer's next step, and the client secret only where there is no address to go to", () => {
    const url = "https://hooks.stripe.com/3d_secure_2/authenticate";
    const redirect = {
      type: "redirect_to_url",
      redirect_to_url: { url, return_url: "https://shop.example/back" },
    };
    expect(
      toProviderCharge(intent({ status: "requires_action", next_action: redirect }))?.nextAction,
    ).toEqual({
      type: "redirect_to_url",
      redirect_url: url,
      client_secret: null,
    });
    const sdk = { type: "use_stripe_sdk", use_stripe_sdk: {} };
    expect(toProviderCharge(intent({ status: "requires_action", next_action: sdk }))?.nextAction).toEqual({
      type: "use_client_secret",
      redirect_url: null,
      client_secret: "pi_1_secret_scripted",
    });
  });

  it("keeps the client secret to itself in every other state", () => {
    const states = [
      "requires_confirmation",
      "requires_payment_method",
      "processing",
      "requires_capture",
      "succeeded",
    ];
    for (const status of states) {
      expect(JSON.stringify(toProviderCharge(intent({ status })))).not.toContain("secret");
    }
  });

  it("has no amount where one of its amounts is no whole number of our unit", () => {
    const odd = { currency: "isk", amount: 550, amount_received: 550, status: "succeeded" };
    expect(toProviderCharge(intent(odd))).toMatchObject({ amount: null, amountCaptured: 0, currency: "isk" });
    expect(toProviderCharge(intent({ ...odd, amount: 500 }))).toMatchObject({
      amount: null,
      amountCaptured: 0,
    });
  });

  const charge = (changes: object = {}) => ({
    id: "ch_1",
    object: "charge",
    status: "succeeded",
    payment_method_details: { type: "card", card: { capture_before: 1_796_000_000 } },
    balance_transaction: { id: "txn_1", object: "balance_transaction", fee: 152, currency: "eur" },
    ...changes,
  });

  it("says until when an authorisation holds, and only while it does", () => {
    const held = intent({ status: "requires_capture", latest_charge: charge() });
    expect(toProviderCharge(held)?.authorizedUntil).toEqual(new Date(1_796_000_000_000));
    const captured = intent({ status: "succeeded", latest_charge: charge() });
    expect(toProviderCharge(captured)?.authorizedUntil).toBeNull();
  });

  it("says what Stripe kept, in the currency of its balance and our unit", () => {
    const paid = (changes: object) => toProviderCharge(intent({ status: "succeeded", ...changes }))?.fee;
    expect(paid({ latest_charge: charge() })).toEqual({
      transactionId: "txn_1",
      amount: 152,
      currency: "eur",
    });
    const inShillings = { id: "txn_1", fee: 15_200, currency: "ugx" };
    expect(paid({ latest_charge: charge({ balance_transaction: inShillings }) })).toMatchObject({
      amount: 152,
      currency: "ugx",
    });
  });

  it.each([
    ["an id alone", { latest_charge: "ch_1" }],
    ["no charge", { latest_charge: null }],
    ["no such member", {}],
    ["the list of old versions", { charges: { object: "list", data: [] } }],
    ["a charge without details", { latest_charge: { id: "ch_1", payment_method_details: null } }],
    ["other details", { latest_charge: charge({ payment_method_details: {}, balance_transaction: null }) }],
    [
      "ids and texts",
      {
        latest_charge: charge({
          payment_method_details: { card: { capture_before: "soon" } },
          balance_transaction: "txn_1",
        }),
      },
    ],
    [
      "a fee that is none",
      {
        latest_charge: charge({
          payment_method_details: { card: {} },
          balance_transaction: { id: "txn_1", fee: "152", currency: "usd" },
        }),
      },
    ],
    [
      "a fee that our unit cannot show",
      {
        latest_charge: charge({
          payment_method_details: { card: null },
          balance_transaction: { id: "txn_1", fee: 152, currency: "isk" },
        }),
      },
    ],
  ])("knows neither from %s", (_what, changes) => {
    expect(toProviderCharge(intent({ status: "requires_capture", ...changes }))).toMatchObject({
      status: "authorized",
      authorizedUntil: null,
      fee: null,
    });
  });

  it.each([
    ["automatic", { latest_charge: "ch_1" }, true],
    ["expired", { latest_charge: "ch_1" }, true],
    ["automatic", { latest_charge: { id: "ch_1", status: "succeeded" } }, true],
    ["automatic", {}, true],
    ["automatic", { latest_charge: null }, false],
    ["automatic", { latest_charge: { id: "ch_1", status: "failed" } }, false],
    ["requested_by_customer", { latest_charge: "ch_1" }, false],
    ["abandoned", { latest_charge: "ch_1" }, false],
    ["void_invoice", { latest_charge: "ch_1" }, false],
    [null, { latest_charge: "ch_1" }, false],
  ])("canceled as %s, with %o: lapsed is %s", (reason, changes, lapsed) => {
    const canceled = intent({ status: "canceled", cancellation_reason: reason, ...changes });
    expect(toProviderCharge(canceled)?.lapsed).toBe(lapsed);
    const held = intent({ status: "requires_capture", cancellation_reason: reason, ...changes });
    expect(toProviderCharge(held)?.lapsed).toBe(false);
  });

  it("belongs to nobody where it carries no marks of ours", () => {
    for (const metadata of [{}, null, undefined, { payment_attempt_id: 7 }, { payment_attempt_id: "" }]) {
      expect(toProviderCharge(intent({ metadata }))).toMatchObject({ attemptId: null });
    }
  });

  it.each([
    ["nothing", null],
    ["a list", []],
    ["a text", "pi_1"],
    ["no id", intent({ id: undefined })],
    ["an empty id", intent({ id: "" })],
    ["no status", intent({ status: undefined })],
    ["no amount", intent({ amount: undefined })],
    ["an amount as text", intent({ amount: "4200" })],
    ["a fraction", intent({ amount: 42.5 })],
    ["a negative amount", intent({ amount_received: -1 })],
    ["no captured amount", intent({ amount_received: null })],
    ["no currency", intent({ currency: 840 })],
    ["no mode", intent({ livemode: "false" })],
  ])("is not made of %s", (_what, value) => {
    expect(toProviderCharge(value)).toBeNull();
  });
});

describe("a message of Stripe's", () => {
  it("is stored without half characters and control characters, which no database takes", () => {
    const message = `${"x".repeat(499)}\u{1f600} and more\u0000`;
    const charge = toProviderCharge(
      intent({ status: "requires_payment_method", last_payment_error: { ...DECLINE, message } }),
    );
    expect(charge?.failure?.message).toBe("x".repeat(499));
    const odd = { ...DECLINE, message: "a\u0000b\ud83dc" };
    const other = toProviderCharge(intent({ status: "requires_payment_method", last_payment_error: odd }));
    expect(other?.failure?.message).toBe("a b c");
  });
});
