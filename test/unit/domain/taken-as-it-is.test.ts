import { describe, expect, it } from "vitest";
import { asked, END, found, viewIn } from "./charge-fixtures.js";
import { effectAsked, effectView } from "./effect-fixtures.js";

/** What a person has adopted with other money than was asked for is not doubted again, and nothing else is taken so. */
describe("a payment that shows other money than was asked for, as a person has taken it", () => {
  const taken = viewIn("completed", { payment: { status: "succeeded", amountCaptured: 3_000 } });

  it("is not doubted by a later look at the same", () => {
    const looked = asked(taken, "get", found("succeeded", { amount: 3_000, amountCaptured: 3_000 }));
    expect(looked.change.review).toBeNull();
    expect(looked.then).toEqual(END);
  });

  it.each([
    ["another currency", { amount: 3_000, amountCaptured: 3_000, currency: "eur" }],
    ["other money than it shows", { amount: 3_000, amountCaptured: 2_000 }],
  ])("is for a person again where the object shows %s", (_name, charge) => {
    expect(asked(taken, "get", found("succeeded", charge)).change.review).toBe("provider_amount_mismatch");
  });
});

describe("a payment that a person has taken though another holds its order id", () => {
  it.each(["succeeded", "authorized"] as const)("is not doubted by a later look: it stays %s", (status) => {
    const held = status === "authorized" ? { amountCapturable: 4_200 } : { amountCaptured: 4_200 };
    const captureMethod = status === "authorized" ? "manual" : "automatic";
    const view = viewIn("following", { payment: { status, captureMethod, holdsOrderId: false, ...held } });
    const looked = asked(view, "get", found(status));
    expect(looked.change.review).toBeNull();
    expect(looked.payment.status).toBe(status);
  });
});

describe("an object of another amount is for a person", () => {
  it("where the payment shows what was asked for", () => {
    const paid = viewIn("completed", { payment: { status: "succeeded", amountCaptured: 4_200 } });
    const charge = { amount: 5_000, amountCaptured: 4_200 };
    expect(asked(paid, "get", found("succeeded", charge)).change.review).toBe("provider_amount_mismatch");
  });

  it("where nobody has taken anything, and nothing is what was captured", () => {
    const open = viewIn("confirm_unknown");
    const looked = asked(open, "get", found("succeeded", { amountCaptured: 0 }));
    expect(looked.change.review).toBe("provider_amount_mismatch");
    expect(looked.payment.status).not.toBe("succeeded");
  });
});

describe("a capture or cancel whose object shows other money than the payment", () => {
  it.each([
    ["capture", { amount: 5_000 }],
    ["capture", { currency: "eur" }],
    ["cancel", { amount: 5_000 }],
    ["cancel", { currency: "eur" }],
  ] as const)("is for a person: %s, %o", (kind, charge) => {
    const looked = effectAsked(effectView(kind, "send_unknown"), "get", found("authorized", charge));
    expect(looked.change.review).toBe("provider_amount_mismatch");
    expect(looked.then.type).toBe("wait");
  });
});
