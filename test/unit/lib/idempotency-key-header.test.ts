import { describe, expect, it } from "vitest";
import { parseIdempotencyKey } from "../../../src/lib/idempotency-key-header.js";

const ALL_PRINTABLE = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at)).join("");

function quoted(key: string): string {
  return `"${key.replace(/[\\"]/g, "\\$&")}"`;
}

describe("the Idempotency-Key header", () => {
  it.each([
    "8e03978e-40d5-43e8-bc93-6894a57f9324",
    "a b",
    "K;x=1",
    'K"x"',
    "a\\b",
    ":YQ==:",
    "12",
    "k".repeat(255),
  ])("names the same key bare and quoted: %s", (key) => {
    expect(parseIdempotencyKey([key])).toEqual({ type: "key", key });
    expect(parseIdempotencyKey([quoted(key)])).toEqual({ type: "key", key });
  });

  it("takes every printable character in quotes", () => {
    expect(parseIdempotencyKey([quoted(ALL_PRINTABLE)])).toEqual({ type: "key", key: ALL_PRINTABLE });
  });

  it("is missing only where there is no line at all", () => {
    expect(parseIdempotencyKey([])).toEqual({ type: "missing" });
  });

  it.each([
    ["an empty line", [""]],
    ["blanks", ["   "]],
    ["an empty string", ['""']],
    ["quoted blanks", ['"  "']],
    ["256 characters", ["k".repeat(256)]],
    ["256 characters in quotes", [quoted("k".repeat(256))]],
    ["two lines with the same key", ["K", "K"]],
    ["two lines with different keys", ["K", "L"]],
    ["two lines joined", ["K, K"]],
    ["two lines joined without a space", ["K,L"]],
    ["two quoted lines joined", ['"K", "K"']],
    ["a quoted line joined to a bare one", ['"K",K']],
    ["an open quote", ['"K']],
    ["text after the string", ['"K"x']],
    ["parameters", ['"K";a=1']],
    ["an escape that strings have not", ['"a\\b"']],
    ["a character outside ASCII", ["K\u00e9"]],
    ["a no-break space", ["K\u00a0"]],
    ["a tab", ["a\tb"]],
    ["DEL", ["a\u007f"]],
  ])("is invalid, not missing and not cut: %s", (_what, lines) => {
    expect(parseIdempotencyKey(lines)).toMatchObject({ type: "invalid" });
  });

  it.each([
    "4242424242424242",
    "4242 4242 4242 4242",
    "4242-4242-4242-4242",
    "order-378282246310005",
    "retry 2 of 5555555555554444",
  ])("is invalid as what looks like a card number, bare and quoted: %s", (key) => {
    for (const line of [key, quoted(key)]) {
      const parsed = parseIdempotencyKey([line]);
      expect(parsed.type).toBe("invalid");
      expect(JSON.stringify(parsed)).toContain("card number");
      expect(JSON.stringify(parsed)).not.toContain(key);
    }
  });

  it.each([
    ["digits with a wrong check digit", "4242424242424241"],
    ["digits with a length that the network has not", "42424242424242"],
    ["digits of no network", "1000000000000008"],
    ["a time in milliseconds", "1796021861123"],
    ["a counter", "0000000000000000"],
    ["a UUID of digits", "42424242-4242-4242-8242-424242424242"],
    ["hexadecimal digits", "a4242424242424242"],
    ["more digits than a card has", "42424242424242424242"],
  ])("may be %s", (_what, key) => {
    expect(parseIdempotencyKey([key])).toEqual({ type: "key", key });
  });

  it("keeps apart two keys that agree in their first characters", () => {
    expect(parseIdempotencyKey([`${"k".repeat(254)}a`])).not.toEqual(
      parseIdempotencyKey([`${"k".repeat(254)}b`]),
    );
  });
});
