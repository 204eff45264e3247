import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import {
  ABSENT,
  ASK_GET,
  BUDGET_MS,
  decline,
  END,
  found,
  later,
  object,
  replayedObject,
  unknown,
} from "./charge-fixtures.js";
import {
  EFFECT_AMOUNT,
  EFFECT_ID,
  effectAsked,
  effectSent,
  effectView,
  SEND_CANCEL,
  SEND_CAPTURE,
} from "./effect-fixtures.js";

const PART_CAPTURED = { amountCaptured: EFFECT_AMOUNT };
const DONE = { type: "done" };

describe("a capture", () => {
  it("that was declined leaves the authorisation as it is", () => {
    const declined = effectSent(effectView("capture", "sending"), decline());
    expect(declined.change.answer).toMatchObject({ type: "refused", code: "payment_declined" });
    expect(declined.payment).toMatchObject({
      status: "authorized",
      amountCapturable: 4200,
      openEffect: null,
    });
  });

  it("whose decline is replayed is looked at, since that describes the past", () => {
    const replayed = effectSent(effectView("capture", "sending"), decline(true));
    expect(replayed.then).toEqual(ASK_GET);
    expect(effectAsked(replayed.view, "get", found("succeeded", PART_CAPTURED)).change.answer).toEqual(DONE);
  });

  it("that is answered with a 2xx that shows no effect is asked about, and not sent again at once", () => {
    const odd = effectSent(effectView("capture", "sending"), object("authorized"));
    expect(odd.then.type).toBe("wait");
    expect(odd.attempt).toMatchObject({ state: "send_unknown", unresolved: true });
    const late = effectAsked(later(odd.view, BUDGET_MS), "get", found("authorized"));
    expect(late.change.answer).toBeUndefined();
    expect(late.then).toEqual(SEND_CAPTURE);
  });

  it("that a replayed 2xx speaks for is believed only from the object, and else gets the next key", () => {
    const replayed = effectSent(effectView("capture", "sending"), replayedObject("succeeded"));
    expect(replayed.then).toEqual(ASK_GET);
    expect(replayed.payment.status).toBe("authorized");
    const unseenYet = effectAsked(replayed.view, "get", found("authorized"));
    expect(unseenYet.then).toEqual(SEND_CAPTURE);
    expect(providerKey(unseenYet.attempt, "capture")).toBe(`payment-attempt:${EFFECT_ID}:capture-2`);
    expect(unseenYet.attempt.keySpent).toBe(false);
  });

  it("that finds it captured elsewhere is done where the amounts agree, and tells the truth where they do not", () => {
    const conflict = effectSent(effectView("capture", "sending"), unknown("state_conflict"));
    expect(conflict.then).toEqual(ASK_GET);
    const agrees = effectAsked(conflict.view, "get", found("succeeded", PART_CAPTURED));
    expect(agrees.change.answer).toEqual(DONE);
    const differs = effectAsked(conflict.view, "get", found("succeeded"));
    expect(differs.change.answer).toMatchObject({ type: "refused", code: "invalid_state" });
    expect(differs.change.answer).toMatchObject({ detail: expect.stringContaining("4200") as unknown });
    expect(differs.payment).toMatchObject({ status: "succeeded", amountCaptured: 4200, openEffect: null });
  });

  it("that comes after the authorisation has lapsed is refused for that, and the payment is canceled", () => {
    const conflict = effectSent(effectView("capture", "sending"), unknown("state_conflict"));
    const lapsed = effectAsked(conflict.view, "get", found("canceled", { lapsed: true }));
    expect(lapsed.change.answer).toMatchObject({ type: "refused", code: "authorization_expired" });
    expect(lapsed.payment).toMatchObject({
      status: "canceled",
      cancellationReason: "authorization_expired",
      holdsOrderId: false,
    });
    const canceled = effectAsked(conflict.view, "get", found("canceled"));
    expect(canceled.change.answer).toMatchObject({ type: "refused", code: "invalid_state" });
    expect(canceled.payment.cancellationReason).toBe("canceled_at_provider");
  });

  it("that is refused for the object's state, though the object shows nothing of it, does not spin", () => {
    const conflict = effectSent(effectView("capture", "sending"), unknown("state_conflict"));
    const asked = effectAsked(conflict.view, "get", found("authorized"));
    expect(asked.then.type).toBe("wait");
    expect(asked.attempt).toMatchObject({ state: "send_unknown", unresolved: false });
    expect(effectAsked(asked.view, "get", found("authorized")).then).toEqual(SEND_CAPTURE);
  });

  it("finds the payment moved by the charge's own look and still gets its answer", () => {
    const payment = { status: "succeeded", amountCapturable: 0, amountCaptured: EFFECT_AMOUNT } as const;
    const done = effectSent(
      effectView("capture", "sending", { payment }),
      object("succeeded", PART_CAPTURED),
    );
    expect(done.change).toMatchObject({ paymentEvent: null, answer: DONE });
    expect(done.payment).toMatchObject({ status: "succeeded", openEffect: null, version: 2 });
  });

  it("of another's object, or of other money, is a person's", () => {
    const view = effectView("capture", "send_unknown");
    const foreign = effectAsked(view, "get", found("succeeded", { tenantId: "ten_other" }));
    expect(foreign.change.review).toBe("provider_object_foreign");
    const other = effectAsked(view, "get", found("succeeded", { amount: 900 }));
    expect(other.change.review).toBe("provider_amount_mismatch");
    expect([foreign.payment.status, other.payment.status]).toEqual(["authorized", "authorized"]);
  });
});

describe("a cancel", () => {
  it("that finds the payment paid is refused, and the payment is adopted as paid", () => {
    const conflict = effectSent(effectView("cancel", "sending"), unknown("state_conflict"));
    const paid = effectAsked(conflict.view, "get", found("succeeded"));
    expect(paid.change.answer).toMatchObject({ type: "refused", code: "invalid_state" });
    expect(paid.payment).toMatchObject({ status: "succeeded", amountCaptured: 4200, openEffect: null });
  });

  it("is done where somebody else has canceled it, or it has lapsed", () => {
    const conflict = effectSent(effectView("cancel", "sending"), unknown("state_conflict"));
    expect(effectAsked(conflict.view, "get", found("canceled")).change.answer).toEqual(DONE);
    const lapsed = effectAsked(conflict.view, "get", found("canceled", { lapsed: true }));
    expect(lapsed.change.answer).toEqual(DONE);
    expect(lapsed.payment.cancellationReason).toBe("authorization_expired");
  });

  it("goes on for a payment whose customer has paid meanwhile, by hold, and for one that was declined", () => {
    const view = effectView("cancel", "send_unknown", { payment: { status: "requires_action" } });
    for (const status of ["authorized", "requires_action", "declined"] as const) {
      expect(effectAsked(view, "get", found(status)).then).toEqual(SEND_CANCEL);
    }
  });

  it("takes the next key once the last will only ever say its stored error", () => {
    const stored = effectSent(effectView("cancel", "sending"), unknown("stored_error", true));
    const again = effectAsked(stored.view, "get", found("authorized"));
    expect(again.then).toEqual(SEND_CANCEL);
    expect(providerKey(again.attempt, "cancel")).toBe(`payment-attempt:${EFFECT_ID}:cancel-2`);
  });
});

describe("a completed capture or cancel that is asked about again", () => {
  it("has nothing to add, whatever became of its object: that is for the charge's own look", () => {
    for (const kind of ["capture", "cancel"] as const) {
      for (const status of ["authorized", "succeeded", "canceled", "pending"] as const) {
        const look = effectAsked(effectView(kind, "completed"), "get", found(status));
        expect(look.then).toEqual(END);
        expect(look.change).toMatchObject({ note: null, review: null, paymentEvent: null });
        expect(look.paymentMoved).toBe(false);
      }
    }
  });

  it("forgets how long it was not answered: a silence of today is no unknown of weeks ago", () => {
    const attempt = { unknownSince: effectView("capture", "completed").attempt.createdAt, waits: 3 };
    for (const [kind, answer] of [
      ["capture", found("authorized")],
      ["refund", ABSENT],
    ] as const) {
      const refund = { status: "failed" } as const;
      const look = effectAsked(
        effectView(kind, "completed", { attempt, refund }),
        kind === "refund" ? "find_refund" : "get",
        answer,
      );
      expect(look.attempt).toMatchObject({ unknownSince: null, waits: 0, waitReason: null });
    }
  });
});
