import { describe, expect, it } from "vitest";
import { admit, type EffectRequest } from "../../../src/domain/admit-effect.js";
import { PAYMENT_STATUSES, type Payment, type PaymentStatus } from "../../../src/domain/payment.js";
import { DISPUTE_STATUSES } from "../../../src/domain/provider.js";
import { paymentWith } from "./charge-fixtures.js";

type Kind = EffectRequest["kind"];

/** The statuses that take each request. A changed line is a change of the contract. */
const TAKEN_IN: Record<Kind, readonly PaymentStatus[]> = {
  capture: ["authorized"],
  cancel: ["authorized", "requires_action"],
  refund: ["succeeded"],
};

/** What a payment in a status has of money; the refunds so far reserve 2000. */
const MONEY: Partial<Record<PaymentStatus, Partial<Payment>>> = {
  authorized: { amountCapturable: 4200 },
  succeeded: { amountCaptured: 4200, amountRefunded: 500, refundReserved: 2000 },
};

function payment(status: PaymentStatus, patch: Partial<Payment> = {}): Payment {
  return paymentWith({ status, ...MONEY[status], ...patch });
}

function request(kind: Kind, amount: number | null = null): EffectRequest {
  if (kind === "cancel") return { kind, reason: null };
  if (kind === "capture") return { kind, amount };
  return { kind, amount, reason: null, metadata: {} };
}

const cases = PAYMENT_STATUSES.flatMap((status) =>
  (["capture", "cancel", "refund"] as const).flatMap((kind) =>
    [null, "att_open"].map((openEffect) => ({ status, kind, openEffect })),
  ),
);

describe("a request for a payment", () => {
  it.each(cases)("that is $status: $kind with $openEffect in flight", ({ status, kind, openEffect }) => {
    const admission = admit(payment(status, { openEffect }), request(kind));
    if (!TAKEN_IN[kind].includes(status)) {
      expect(admission).toMatchObject({ type: "refused", code: "invalid_state", passing: false });
      expect(admission).toMatchObject({ detail: expect.stringContaining(`is ${status};`) as unknown });
    } else if (openEffect !== null && kind !== "refund") {
      // True later, so it is not stored: the key stays as it was.
      expect(admission).toMatchObject({ type: "refused", code: "operation_in_progress", passing: true });
    } else {
      expect(admission.type).toBe("admitted");
    }
  });

  it.each(["capture", "refund"] as const)("to %s asks for money, and a cancel does not", (kind) => {
    const status = kind === "capture" ? "authorized" : "succeeded";
    expect(admit(payment(status), request(kind))).toMatchObject({ amount: expect.any(Number) as unknown });
    expect(admit(payment("authorized"), request("cancel"))).toEqual({ type: "admitted", amount: null });
  });
});

describe("the amount of a capture", () => {
  it.each([
    { asked: null, admitted: 4200 },
    { asked: 1, admitted: 1 },
    { asked: 4199, admitted: 4199 },
    { asked: 4200, admitted: 4200 },
  ])("is all of the authorisation or the part that is asked for: $asked", ({ asked, admitted }) => {
    expect(admit(payment("authorized"), request("capture", asked))).toEqual({
      type: "admitted",
      amount: admitted,
    });
  });

  it("is never more than what is held", () => {
    expect(admit(payment("authorized"), request("capture", 4201))).toMatchObject({
      type: "refused",
      code: "amount_too_large",
      passing: false,
      detail: expect.stringContaining("4200") as unknown,
    });
  });

  it("is never nothing", () => {
    const empty = payment("authorized", { amountCapturable: 0 });
    expect(admit(empty, request("capture"))).toMatchObject({ type: "refused", code: "amount_too_large" });
  });

  it("that is too large for a state that takes none is refused for the state", () => {
    expect(admit(payment("succeeded"), request("capture", 9_999))).toMatchObject({ code: "invalid_state" });
    expect(admit(payment("authorized", { openEffect: "att_open" }), request("capture", 9_999))).toMatchObject(
      {
        code: "operation_in_progress",
      },
    );
  });
});

describe("the amount of a refund", () => {
  it.each([
    { asked: null, admitted: 2200 },
    { asked: 1, admitted: 1 },
    { asked: 2200, admitted: 2200 },
  ])("is what is left, or the part that is asked for: $asked", ({ asked, admitted }) => {
    expect(admit(payment("succeeded"), request("refund", asked))).toEqual({
      type: "admitted",
      amount: admitted,
    });
  });

  it("is never more than what was captured less all that is reserved, made or not", () => {
    expect(admit(payment("succeeded"), request("refund", 2201))).toMatchObject({
      type: "refused",
      code: "amount_too_large",
      passing: false,
      detail: expect.stringContaining("2200") as unknown,
    });
  });

  it.each([4200, 5000])("is never nothing: of 4200 captured, %i are reserved", (refundReserved) => {
    const empty = payment("succeeded", { refundReserved });
    for (const asked of [null, 1]) {
      expect(admit(empty, request("refund", asked))).toMatchObject({ code: "amount_too_large" });
    }
  });

  it("counts what was captured, not what was asked for", () => {
    const part = payment("succeeded", { amountCaptured: 1_000, refundReserved: 0 });
    expect(admit(part, request("refund"))).toEqual({ type: "admitted", amount: 1_000 });
  });

  it("of a payment that was paid does not wait for a capture or cancel whose end is being written", () => {
    const open = payment("succeeded", { openEffect: "att_open" });
    expect(admit(open, request("refund", 100)).type).toBe("admitted");
  });
});

describe("a refund of a disputed payment", () => {
  const disputed = (...statuses: readonly (typeof DISPUTE_STATUSES)[number][]) =>
    payment("succeeded", {
      disputes: statuses.map((status) => ({
        id: `dp_${status}`,
        status,
        amount: 4200,
        currency: "usd",
        reason: null,
      })),
    });

  it.each(DISPUTE_STATUSES)("is refused while the dispute may give the money back: %s", (status) => {
    const admission = admit(disputed(status), request("refund", 100));
    const holds = ["open", "under_review", "lost"].includes(status);
    expect(admission.type).toBe(holds ? "refused" : "admitted");
    if (holds) expect(admission).toMatchObject({ code: "invalid_state", passing: false });
  });

  it("is refused where one of several holds the money", () => {
    expect(admit(disputed("won", "open", "closed"), request("refund", 100)).type).toBe("refused");
  });
});
