import { data as reference } from "currency-codes";
import { describe, expect, it } from "vitest";
import { minorUnitDigits, normalizeCurrency } from "../../../src/domain/currency.js";

/** Codes of the reference (list one of 2024-06-25) that have been withdrawn since. */
const WITHDRAWN = new Set(["ANG", "CUC", "BGN"]);
/** Codes without a minor unit: metals, bond units, drawing rights, tests. */
const UNCOUNTABLE = /^X(?:A[GU]|B[A-D]|DR|P[DT]|SU|TS|UA|XX)$/;

describe("the active currencies", () => {
  it("have the minor units of ISO 4217's list one", () => {
    const active = reference.filter(({ code }) => !WITHDRAWN.has(code) && !UNCOUNTABLE.test(code));
    expect(active.length).toBeGreaterThan(150);
    expect(active.filter(({ code, digits }) => minorUnitDigits(code.toLowerCase()) !== digits)).toEqual([]);
  });

  it.each(["usd", "USD", "uSd"])("are taken in any case: %s", (code) => {
    expect(normalizeCurrency(code)).toBe("usd");
  });

  it.each([
    "",
    "US",
    "USDT",
    "xyz",
    "840",
    "usd ",
    " usd",
    "xxx",
    "xts",
    "xau",
    "dem",
    "hrk",
    "ang",
    "\u212Awd",
    "ÜSD",
    "__proto__",
  ])("do not include %j", (code) => {
    expect(normalizeCurrency(code)).toBeNull();
  });

  it("include the guilder that came after the list", () => {
    expect(normalizeCurrency("XCG")).toBe("xcg");
    expect(minorUnitDigits("xcg")).toBe(2);
  });
});
