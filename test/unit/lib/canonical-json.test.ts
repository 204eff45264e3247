import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../src/lib/canonical-json.js";

describe("canonical JSON", () => {
  it("sorts names by code unit at every depth and keeps the order of lists", () => {
    expect(
      canonicalJson({ b: [2, 1], "10": 1, "9": 1, a: { z: 1, A: 2 }, é: 1, "\ud83d\ude00": 1, "\uffff": 1 }),
    ).toBe('{"10":1,"9":1,"a":{"A":2,"z":1},"b":[2,1],"é":1,"😀":1,"\uffff":1}');
  });

  it("writes numbers in their shortest form", () => {
    expect(canonicalJson([1e3, 1000.0, -0, 1e21, 0.1])).toBe("[1000,1000,0,1e+21,0.1]");
  });

  it("takes objects without a prototype, whose names may be any", () => {
    const pairs = Object.assign(Object.create(null) as object, { constructor: "c" });
    Object.defineProperty(pairs, "__proto__", { value: "p", enumerable: true });
    expect(canonicalJson(pairs)).toBe('{"__proto__":"p","constructor":"c"}');
  });

  it.each([
    ["undefined", { a: undefined }],
    ["NaN", [Number.NaN]],
    ["an infinite number", [Number.POSITIVE_INFINITY]],
    ["a bigint", [1n]],
    ["a date", [new Date(0)]],
    ["a map", new Map()],
  ])("throws for %s, which it would have to guess about", (_what, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });
});
