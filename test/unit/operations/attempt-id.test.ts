import { expect, test } from "vitest";
import { attemptIdOf } from "../../../src/operations/attempt-id.js";

const NAME = { tenantId: "ten_1", operation: "payments.create", key: "key-1" };

test("the same key meets the same attempt, on every process and after every restore", () => {
  // Written out: a change of the derivation would meet other provider keys than the ones already sent.
  expect(attemptIdOf("secret", NAME, 1)).toBe("att_8c922eaebe62520652cb870754833ffd");
});

test("another tenant, operation, key, run or installation is another attempt", () => {
  const others = [
    attemptIdOf("secret", NAME, 1),
    attemptIdOf("secret", NAME, 2),
    attemptIdOf("other", NAME, 1),
    attemptIdOf("secret", { ...NAME, tenantId: "ten_2" }, 1),
    attemptIdOf("secret", { ...NAME, operation: "payments.capture" }, 1),
    attemptIdOf("secret", { ...NAME, key: "key-2" }, 1),
    // Parts that run into each other must not be confused.
    attemptIdOf("secret", { ...NAME, tenantId: "ten_1payments", operation: ".create" }, 1),
  ];
  expect(new Set(others).size).toBe(others.length);
});
