import currencyCodes from "currency-codes";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fromStripeAmount,
  LARGEST_STRIPE_AMOUNT,
  toStripeAmount,
} from "../../../../src/providers/stripe/currencies.js";

// Stripe's own lists (docs.stripe.com/currencies#zero-decimal, #three-decimal, #special-cases), kept here apart from
// the adapter's table. UGX is on Stripe's zero-decimal list too, and its special case is what the API wants.
const ZERO_DECIMAL = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split(" ");
const THREE_DECIMAL = "BHD JOD KWD OMR TND".split(" ");

const isoCurrencies = currencyCodes
  .codes()
  .map((code) => ({ code, digits: currencyCodes.code(code)!.digits }));
// 1,000 units of any currency: whole for every rule that Stripe has.
const thousandUnits = (digits: number) => 1000 * 10 ** digits;
const supported = isoCurrencies.filter(
  ({ code, digits }) => toStripeAmount(thousandUnits(digits), code.toLowerCase()).ok,
);

function stripeDecimals(code: string): number {
  return ZERO_DECIMAL.includes(code) ? 0 : THREE_DECIMAL.includes(code) ? 3 : 2;
}

describe("an amount on its way to Stripe", () => {
  it.each(supported)("in $code is Stripe's number of the same money", ({ code, digits }) => {
    expect(toStripeAmount(thousandUnits(digits), code.toLowerCase())).toEqual({
      ok: true,
      amount: 1000 * 10 ** stripeDecimals(code),
    });
  });

  it("covers the currencies of Stripe's lists and no other three-decimal one", () => {
    const codes = supported.map(({ code }) => code);
    expect(codes).toEqual(
      expect.arrayContaining([...ZERO_DECIMAL, ...THREE_DECIMAL, "ISK", "UGX", "USD", "EUR"]),
    );
    expect(supported.filter(({ digits }) => digits === 3).map(({ code }) => code)).toEqual(THREE_DECIMAL);
    expect(codes.length).toBeGreaterThan(130);
  });

  it.each([
    ["jpy", 500, 500],
    ["kwd", 5120, 5120],
    ["isk", 5, 500],
    ["ugx", 500, 50_000],
    ["mga", 500, 5],
    ["huf", 1045, 1045],
    ["twd", 80_045, 80_045],
  ])("in %s: %d is sent as %d", (currency, amount, sent) => {
    expect(toStripeAmount(amount, currency)).toEqual({ ok: true, amount: sent });
    expect(fromStripeAmount(sent, currency)).toBe(amount);
  });

  it.each(["bhd", "jod", "kwd", "omr", "tnd"])(
    "in %s is refused, not rounded, where its last digit is not 0",
    (currency) => {
      expect(toStripeAmount(5125, currency)).toMatchObject({ ok: false, pointer: "/amount" });
    },
  );

  it("in MGA is refused where it is no whole number of ariary", () => {
    expect(toStripeAmount(550, "mga")).toMatchObject({ ok: false, pointer: "/amount" });
  });

  it.each(["iqd", "lyd", "cup", "irr", "kpw", "xau", "xxx", "che", "clf", "stn", "std", "USD", ""])(
    "in %j, which Stripe does not take, names the currency",
    (currency) => {
      expect(toStripeAmount(1000, currency)).toMatchObject({ ok: false, pointer: "/currency" });
    },
  );

  it("is refused above twelve digits of Stripe's unit, and taken at them", () => {
    expect(toStripeAmount(LARGEST_STRIPE_AMOUNT, "usd")).toEqual({ ok: true, amount: 999_999_999_999 });
    expect(toStripeAmount(LARGEST_STRIPE_AMOUNT + 1, "usd")).toMatchObject({ ok: false, pointer: "/amount" });
    expect(toStripeAmount(9_999_999_999, "isk")).toEqual({ ok: true, amount: 999_999_999_900 });
    expect(toStripeAmount(10_000_000_000, "isk")).toEqual({
      ok: false,
      pointer: "/amount",
      detail: "Stripe takes at most 9999999999 in ISK.",
    });
  });

  it("comes back as it was, digit for digit, wherever Stripe can carry it", () => {
    const currencies = fc.constantFrom(...supported.map(({ code }) => code.toLowerCase()));
    fc.assert(
      fc.property(currencies, fc.integer({ min: 1, max: 999_999_999_999 }), (currency, amount) => {
        const sent = toStripeAmount(amount, currency);
        const back =
          sent.ok && Number.isSafeInteger(sent.amount) ? fromStripeAmount(sent.amount, currency) : null;
        expect(sent.ok ? back : sent.pointer).toBe(sent.ok ? amount : "/amount");
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an amount that Stripe shows", () => {
  it.each(["isk", "ugx"])("in %s is none of ours where it is no whole unit", (currency) => {
    expect(fromStripeAmount(550, currency)).toBeNull();
    expect(fromStripeAmount(500, currency)).toBe(5);
  });

  it("in a currency that is none of Stripe's is none of ours", () => {
    expect(fromStripeAmount(500, "xxx")).toBeNull();
  });
});
