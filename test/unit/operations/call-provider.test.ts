import { describe, expect, it, vi } from "vitest";
import type { PaymentProvider, ProviderCall } from "../../../src/domain/provider.js";
import { askQuestion, sendCall } from "../../../src/operations/call-provider.js";
import { attemptIn, CHARGE_ID, viewIn } from "../domain/charge-fixtures.js";

const ANSWER = { type: "unknown" };

/** A provider whose every method answers the same; what it was called with is kept. */
function recorder() {
  const calls: { name: string; args: unknown[] }[] = [];
  const provider = new Proxy({} as PaymentProvider, {
    get: (_, name) =>
      vi.fn((...args: unknown[]) => {
        calls.push({ name: String(name), args });
        return Promise.resolve(ANSWER);
      }),
  });
  return { provider, calls };
}

const METHODS: readonly (readonly [ProviderCall, string, string, readonly unknown[]])[] = [
  ["create", "createCharge", "", ["{}"]],
  ["confirm", "confirmCharge", ":confirm", [CHARGE_ID, "{}"]],
  ["fence", "cancelCharge", ":fence", [CHARGE_ID]],
  ["capture", "captureCharge", "", [CHARGE_ID, "{}"]],
  ["cancel", "voidCharge", "", [CHARGE_ID, "{}"]],
  ["refund", "createRefund", "", ["{}"]],
];

describe("a send", () => {
  it.each(METHODS)(
    "of a %s goes out under the key of its attempt with the stored parameters",
    async (call, method, suffix, args) => {
      for (const unresolved of [false, true]) {
        const { provider, calls } = recorder();
        const view = viewIn("charge_created", { attempt: { unresolved, providerPaymentId: CHARGE_ID } });
        await sendCall(provider, view, call);
        const context = {
          idempotencyKey: `payment-attempt:${attemptIn("started").id}${suffix}`,
          // Each further fence is asked about first, so none of them is a blind one.
          resend: call === "fence" ? false : unresolved,
        };
        expect(calls).toEqual([{ name: method, args: [...args, context] }]);
      }
    },
  );

  it("about an object whose id is not known is a bug, and nothing goes out", () => {
    const { provider, calls } = recorder();
    expect(() => sendCall(provider, viewIn("started"), "confirm")).toThrow(/no provider object/);
    expect(() => askQuestion(provider, viewIn("started"), "get_refund")).toThrow(/no provider refund/);
    expect(calls).toEqual([]);
  });
});
