import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactInteger, parseStrictJson, StrictJsonError } from "../../../src/lib/strict-json.js";

const DEPTH = 8;
/** Some 100 ms on an idle machine; what is quadratic takes minutes. */
const LINEAR_MS = 20_000;

function refusal(text: string): StrictJsonError {
  try {
    parseStrictJson(text, DEPTH);
  } catch (error) {
    if (error instanceof StrictJsonError) return error;
    throw error;
  }
  throw new Error(`taken: ${text.slice(0, 80)}`);
}

describe("strict JSON", () => {
  it("reads what JSON.parse reads, where all numbers are whole and names are not repeated", () => {
    const leaf = fc.oneof(
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\u0000")),
      fc.maxSafeInteger(),
      fc.boolean(),
      fc.constant(null),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("value"), { maxLength: 5 }),
        fc.dictionary(fc.string({ unit: "grapheme-ascii" }), tie("value"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, "\t"), (document, space) => {
        const text = JSON.stringify(document, null, space);
        expect(JSON.stringify(parseStrictJson(text, 20))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("refuses every text that JSON.parse refuses", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'{ } [ ] : , " \\ n t r u e 0 - 1 . 5 E +'.split(" "), " ") }),
        (text) => {
          let valid = true;
          try {
            JSON.parse(text);
          } catch {
            valid = false;
          }
          if (!valid) expect(() => parseStrictJson(text, 50)).toThrow(StrictJsonError);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["a repeated name", '{"amount":100,"amount":100000}', "/amount"],
    ["a name repeated behind an escape", '{"a":{"b/~":1,"\\u0062/~":2}}', "/a/b~1~0"],
    ["a repeated __proto__", '{"__proto__":1,"__proto__":2}', "/__proto__"],
    ["a lone high surrogate", '{"a":["x","\\ud800"]}', "/a/1"],
    ["a lone low surrogate", '{"a":"\\udc00x"}', "/a"],
    ["surrogates in the wrong order", '{"a":"\\ude00\\ud83d"}', "/a"],
    ["NUL in a value", '{"a":"x\\u0000"}', "/a"],
    ["NUL in a name", '{"a":{"x\\u0000":1}}', "/a"],
    ["a raw control character", '{"a":"x\ny"}', "/a"],
    ["an escape that JSON has not", '{"a":"\\x41"}', "/a"],
    ["a cut-off unicode escape", '{"a":"\\u12"}', "/a"],
    ["nesting beyond the bound", "[".repeat(DEPTH + 1), "/0".repeat(DEPTH)],
    ["more text after the end", "{} {}", ""],
    ["a leading zero", '{"a":01}', ""],
    ["a trailing comma", '{"a":1,}', ""],
    ["NaN", '{"a":NaN}', "/a"],
    ["a byte order mark", "\ufeff{}", ""],
    ["white space that JSON has not", "\u00a0{}", ""],
    ["nothing", "", ""],
  ])("refuses %s and says where", (_what, text, pointer) => {
    expect(refusal(text).pointer).toBe(pointer);
  });

  it("joins the two halves of an escaped pair", () => {
    expect(parseStrictJson('"\\ud83d\\ude00\\n\\/"', DEPTH)).toBe("😀\n/");
  });

  it("keeps __proto__ and constructor as names like any other", () => {
    const value = parseStrictJson('{"__proto__":{"polluted":1},"constructor":2}', DEPTH) as Record<
      string,
      unknown
    >;
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it.each([
    ["100,000 names", `{${Array.from({ length: 100_000 }, (_, at) => `"k${at}":1`).join(",")}}`, true],
    ["100,000 containers", "[".repeat(100_000), false],
    ["100,000 objects", '{"a":'.repeat(100_000), false],
    ["a million escapes", `"${"\\n".repeat(1_000_000)}"`, true],
    ["a million open quotes", '["",'.repeat(10) + '"\\"'.repeat(1_000_000), false],
    ["a number of a million digits", `[1${"0".repeat(1_000_000)}1]`, true],
    ["a fraction of a million zeros", `[1.${"0".repeat(1_000_000)}1]`, true],
  ])("answers %s in linear time", (_what, text, taken) => {
    const started = performance.now();
    if (taken) parseStrictJson(text, DEPTH);
    else expect(refusal(text)).toBeInstanceOf(StrictJsonError);
    expect(performance.now() - started).toBeLessThan(LINEAR_MS);
  });
});

describe("a number literal", () => {
  it.each([
    ["1000", 1000],
    ["1e3", 1000],
    ["1E+3", 1000],
    ["1000.0", 1000],
    ["0.001e6", 1000],
    ["100000e-2", 1000],
    ["0", 0],
    ["0.000", 0],
    ["0e999999999999", 0],
    ["-5", -5],
    ["9007199254740991", 9007199254740991],
    ["9007199254740991.000", 9007199254740991],
  ])("%s is the whole number %d", (literal, value) => {
    expect(exactInteger(literal)).toBe(value);
  });

  it.each([
    "10.5",
    "1e-1",
    "1000.00000000000000000000000001",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "1e400",
    "1e16",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "-0",
    "-0.0",
    "0.1",
  ])("%s is none that can be held exactly", (literal) => {
    expect(exactInteger(literal)).toBeNaN();
  });

  it("means what its digits say, whatever its spelling", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.nat(12), (whole, shift) => {
        const digits = whole.toString().padStart(shift + 1, "0");
        const point = digits.length - shift;
        const literal = `${digits.slice(0, point)}.${digits.slice(point)}0e${shift}`;
        expect(exactInteger(literal)).toBe(Number(whole));
      }),
    );
  });
});
