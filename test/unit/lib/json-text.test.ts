import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ExactJson, jsonText } from "../../../src/lib/json-text.js";

describe("JSON with integers of any size", () => {
  it("is what JSON.stringify writes, for everything that it can write", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(jsonText(value as ExactJson)).toBe(JSON.stringify(value));
      }),
    );
  });

  it("has every integer digit for digit, wherever it stands", () => {
    fc.assert(
      fc.property(fc.bigInt(), (value) => {
        expect(jsonText(value)).toBe(value.toString());
        expect(jsonText({ a: [value, { b: value }] })).toBe(`{"a":[${value},{"b":${value}}]}`);
      }),
    );
    expect(jsonText(-9007199254740993n)).toBe("-9007199254740993");
  });
});
