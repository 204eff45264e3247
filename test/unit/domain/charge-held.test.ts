import { describe, expect, it } from "vitest";
import type { Payment } from "../../../src/domain/payment.js";
import type { ChargeStatus } from "../../../src/domain/provider.js";
import {
  ASK_GET,
  asked,
  at,
  claimed,
  END,
  found,
  HELD_LOOK_MS,
  KEY_LIFETIME_MS,
  NEXT_ACTION,
  SEND_FENCE,
  viewIn,
} from "./charge-fixtures.js";

const HELD: Partial<Payment> = {
  status: "authorized",
  captureMethod: "manual",
  amountCapturable: 4200,
};
const DAY_MS = 86_400_000;

describe("a charge that is held", () => {
  it.each([
    { name: "in an hour", untilMs: 3_600_000, waitMs: 3_601_000 },
    { name: "in a week", untilMs: 7 * DAY_MS, waitMs: HELD_LOOK_MS },
  ])("is looked at when it should lapse ($name), and every six hours until then", ({ untilMs, waitMs }) => {
    const view = viewIn("following", { payment: HELD, afterMs: DAY_MS });
    const look = asked(view, "get", found("authorized", { authorizedUntil: at(DAY_MS + untilMs) }));
    expect(look.then).toEqual({ type: "wait", ms: waitMs });
    expect(claimed(look.view).then).toEqual(ASK_GET);
    // Nothing new: no row in the timeline, and none written.
    expect([look.paymentMoved, look.change.note]).toEqual([false, null]);
  });

  it("is looked at soon, again and again, once it should have lapsed and has not", () => {
    const view = viewIn("following", { payment: HELD, afterMs: DAY_MS });
    const look = asked(view, "get", found("authorized", { authorizedUntil: at(DAY_MS - 1) }));
    expect(look.then).toEqual({ type: "wait", ms: 1_500 });
  });

  it("shows until when, from the first answer that says so", () => {
    const until = at(7 * DAY_MS);
    const view = viewIn("confirm_unknown", { payment: { captureMethod: "manual" } });
    const { payment } = asked(view, "get", found("authorized", { authorizedUntil: until }));
    expect(payment).toMatchObject({ status: "authorized", authorizedUntil: until, amountCapturable: 4200 });
  });

  it.each([
    { lapsed: true, reason: "authorization_expired" },
    { lapsed: false, reason: "canceled_at_provider" },
  ] as const)("and then released ends canceled, for $reason", ({ lapsed, reason }) => {
    const payment = { ...HELD, authorizedUntil: at(DAY_MS) };
    const gone = asked(
      viewIn("following", { payment, afterMs: DAY_MS }),
      "get",
      found("canceled", { lapsed }),
    );
    expect(gone.then).toEqual(END);
    expect(gone.payment).toMatchObject({
      status: "canceled",
      cancellationReason: reason,
      amountCapturable: 0,
      authorizedUntil: null,
      holdsOrderId: false,
      failure: null,
    });
  });

  it("and captured by somebody else, all or a part, has succeeded by what was captured", () => {
    for (const amountCaptured of [4200, 900]) {
      const view = viewIn("following", { payment: HELD });
      const captured = asked(view, "get", found("succeeded", { amountCaptured }));
      expect(captured.then).toEqual(END);
      expect(captured.payment).toMatchObject({ status: "succeeded", amountCaptured, amountCapturable: 0 });
    }
  });

  it("is no question of the customer's time or of the budget any more", () => {
    const view = viewIn("following", { payment: HELD, afterMs: 10 * KEY_LIFETIME_MS });
    expect(asked(view, "get", found("authorized")).then).toEqual({ type: "wait", ms: HELD_LOOK_MS });
  });
});

describe("a charge whose capture or cancel is in flight", () => {
  const open = { ...HELD, openEffect: "att_effect" };

  it.each(["following", "fencing"] as const)(
    "leaves it to that one to tell why the object is canceled: %s",
    (state) => {
      const seen = asked(viewIn(state, { payment: open }), "get", found("canceled"));
      expect(seen.then.type).toBe("wait");
      expect(seen.attempt).toMatchObject({ state, waitReason: "effect_in_flight" });
      expect(seen.paymentMoved).toBe(false);
      expect(seen.change.note).toBeNull();
    },
  );

  it("ends once that one has told", () => {
    const payment = { ...HELD, status: "canceled", amountCapturable: 0, holdsOrderId: false } as const;
    const closed = asked(viewIn("following", { payment }), "get", found("canceled"));
    expect(closed.then).toEqual(END);
    expect(closed.paymentMoved).toBe(false);
  });

  it("adopts that it is paid, and leaves the answer to the one in flight", () => {
    const paid = asked(viewIn("following", { payment: open }), "get", found("succeeded"));
    expect(paid.payment).toMatchObject({ status: "succeeded", openEffect: "att_effect" });
  });

  it("is canceled at the provider for the customer's sake too, and waits for that one's word", () => {
    const payment = { status: "requires_action", nextAction: NEXT_ACTION, openEffect: "att_effect" } as const;
    const late = asked(viewIn("following", { payment, afterMs: DAY_MS }), "get", found("requires_action"));
    expect(late.then).toEqual(SEND_FENCE);
    expect(late.payment).toMatchObject({ status: "requires_action", openEffect: "att_effect" });
  });
});

describe("an answer that says less than what is known", () => {
  const LESS: Record<"authorized" | "succeeded", readonly ChargeStatus[]> = {
    authorized: ["created", "pending", "requires_action", "declined", "unrecognized"],
    succeeded: [
      "created",
      "pending",
      "requires_action",
      "declined",
      "unrecognized",
      "authorized",
      "canceled",
    ],
  };
  const cases = (["authorized", "succeeded"] as const).flatMap((status) =>
    LESS[status].map((answer) => ({ status, answer })),
  );

  it.each(cases)("changes nothing of a payment that is $status: $answer", ({ status, answer }) => {
    for (const state of ["following", "fencing", "completed"] as const) {
      const view = viewIn(state, { payment: { status, amountCaptured: 4200 } });
      const old = asked(view, "get", found(answer));
      expect(old.then.type).toBe("wait");
      expect(old.attempt).toMatchObject({ state, waitReason: "provider_went_back" });
      expect(old.paymentMoved).toBe(false);
    }
  });
});

describe("a completed charge that is asked about again", () => {
  it("has nothing to add while its object says the same", () => {
    const view = viewIn("completed", { payment: { status: "succeeded", amountCaptured: 4200 } });
    expect(claimed(view).then).toEqual(ASK_GET);
    const same = asked(view, "get", found("succeeded"));
    expect(same.then).toEqual(END);
    expect([same.paymentMoved, same.change.note]).toEqual([false, null]);
  });

  it("adopts money that moved after the payment had ended, and closes what could still be paid", () => {
    const payment = { status: "failed" } as const;
    expect(asked(viewIn("completed", { payment }), "get", found("succeeded")).payment.status).toBe(
      "succeeded",
    );
    const held = asked(viewIn("completed", { payment }), "get", found("authorized"));
    expect([held.payment.status, held.attempt.state]).toEqual(["authorized", "following"]);
    expect(asked(viewIn("completed", { payment }), "get", found("declined")).then).toEqual(SEND_FENCE);
  });
});

describe("a hold that a person had to judge, and that the provider has released since", () => {
  it("is a payment that was canceled, and not one that never was: its key does not run again", () => {
    const view = viewIn("fencing", { payment: { ...HELD, status: "needs_review" } });
    const released = asked(view, "get", found("canceled"));
    expect(released.payment).toMatchObject({ status: "canceled", amountCapturable: 0, failure: null });
    expect(released.then).toEqual(END);
  });
});
