import { describe, expect, it } from "vitest";
import { checkedAmount, checkedCurrency } from "../../src/sandbox/currencies.js";
import { StripeFailure } from "../../src/sandbox/errors.js";

function refusal(act: () => unknown): StripeFailure {
  try {
    act();
  } catch (error) {
    if (error instanceof StripeFailure) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("amounts", () => {
  it.each([
    ["50", "usd"],
    ["99999999", "usd"],
    ["50", "jpy"],
    ["5120", "kwd"],
    ["30", "gbp"],
    ["500", "isk"],
    ["500", "ugx"],
    ["17550", "huf"],
    ["1055", "twd"],
  ])("%s %s is taken digit for digit", (text, currency) => {
    expect(checkedAmount(text, currency)).toBe(Number(text));
  });

  it.each([
    ["49", "usd", "amount_too_small"],
    ["29", "gbp", "amount_too_small"],
    ["49", "jpy", "amount_too_small"],
    ["17499", "huf", "amount_too_small"],
    ["100000000", "usd", "amount_too_large"],
    ["0", "usd", "parameter_invalid_integer"],
    ["-1", "usd", "parameter_invalid_integer"],
    ["10.5", "usd", "parameter_invalid_integer"],
    ["1e3", "usd", "parameter_invalid_integer"],
    ["", "usd", "parameter_invalid_integer"],
    ["5125", "kwd", "parameter_invalid_integer"],
    ["5125", "bhd", "parameter_invalid_integer"],
    ["5125", "jod", "parameter_invalid_integer"],
    ["5125", "omr", "parameter_invalid_integer"],
    ["5125", "tnd", "parameter_invalid_integer"],
    ["550", "isk", "parameter_invalid_integer"],
    ["550", "ugx", "parameter_invalid_integer"],
  ])("%s %s is refused with %s", (text, currency, code) => {
    const failure = refusal(() => checkedAmount(text, currency));
    expect(failure).toMatchObject({ status: 400, saved: false });
    expect(failure.error).toMatchObject({ type: "invalid_request_error", code, param: "amount" });
  });
});

describe("currencies", () => {
  it("are taken in any case and shown in lower case", () => {
    expect(checkedCurrency("UsD")).toBe("usd");
  });

  it.each(["xyz", "us", "usdt", "840", "usd ", ""])("%j is refused", (text) => {
    expect(refusal(() => checkedCurrency(text)).error.param).toBe("currency");
  });
});
