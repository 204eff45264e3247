import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { fingerprint } from "../../../src/lib/fingerprint.js";

const input = { amount: 10, currency: "usd", metadata: { b: "1", a: "2" } };

describe("a fingerprint", () => {
  it("never changes for a request, since stored ones must match for as long as keys live", () => {
    const text = '["v1","payments.create",[],{"amount":10,"currency":"usd","metadata":{"a":"2","b":"1"}}]';
    const digest = createHash("sha256").update(text).digest("hex");
    expect(fingerprint("payments.create", [], input)).toBe(`v1:${digest}`);
  });

  it("is the same for another order of names", () => {
    const other = { metadata: { a: "2", b: "1" }, currency: "usd", amount: 10 };
    expect(fingerprint("payments.create", [], other)).toBe(fingerprint("payments.create", [], input));
  });

  it("differs with the operation, the ids in the path and their order, and any value", () => {
    const prints = [
      fingerprint("payments.create", [], input),
      fingerprint("payments.capture", [], input),
      fingerprint("payments.create", ["pay_1"], input),
      fingerprint("payments.create", ["pay_1", "re_1"], input),
      fingerprint("payments.create", ["re_1", "pay_1"], input),
      fingerprint("payments.create", [], { ...input, amount: 11 }),
      fingerprint("payments.create", [], { ...input, metadata: {} }),
    ];
    expect(new Set(prints).size).toBe(prints.length);
  });
});
