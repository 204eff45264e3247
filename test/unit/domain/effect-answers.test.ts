import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import type { EffectCall } from "../../../src/domain/provider.js";
import {
  ABSENT,
  ASK_GET,
  BUDGET_MS,
  decline,
  END,
  found,
  KEY_LIFETIME_MS,
  later,
  MISSING,
  notPerformed,
  OWN_ACCOUNT,
  object,
  REVIEW_AFTER_MS,
  rejection,
  replayedObject,
  UNKNOWN_ACCOUNT,
  unanswered,
  unknown,
} from "./charge-fixtures.js";
import {
  EFFECT_AMOUNT,
  EFFECT_ID,
  effectAsked,
  effectClaimed,
  effectSent,
  effectView,
  FIND_REFUND,
  GET_REFUND,
  PROVIDER_REFUND_ID,
  refundFound,
  refundMade,
  SEND_CANCEL,
  SEND_CAPTURE,
  SEND_REFUND,
} from "./effect-fixtures.js";

const PART_CAPTURED = { amountCaptured: EFFECT_AMOUNT };
const DONE = { type: "done" };
const question = (kind: EffectCall) => (kind === "refund" ? "find_refund" : "get");
const unseen = (kind: EffectCall) => (kind === "refund" ? ABSENT : found("authorized"));

describe("the usual way", () => {
  it("of a capture: one send, the part is captured and the rest released", () => {
    const view = effectView("capture", "sending");
    expect(effectClaimed(view, OWN_ACCOUNT, true).then).toEqual(SEND_CAPTURE);
    const done = effectSent(view, object("succeeded", PART_CAPTURED));
    expect(done.then).toEqual(END);
    expect(done.change.answer).toEqual(DONE);
    expect(done.payment).toMatchObject({
      status: "succeeded",
      amountCaptured: EFFECT_AMOUNT,
      amountCapturable: 0,
      authorizedUntil: null,
      openEffect: null,
      holdsOrderId: true,
    });
  });

  it("of a cancel: one send, nothing can be captured any more and the order id is free", () => {
    const view = effectView("cancel", "sending");
    expect(effectClaimed(view, OWN_ACCOUNT, true).then).toEqual(SEND_CANCEL);
    const done = effectSent(view, object("canceled"));
    expect(done.change.answer).toEqual(DONE);
    expect(done.payment).toMatchObject({
      status: "canceled",
      cancellationReason: "requested",
      amountCapturable: 0,
      openEffect: null,
      holdsOrderId: false,
    });
  });

  it("of a cancel for a payment that waits for its customer: nothing must be done any more", () => {
    const payment = { status: "requires_action", amountCapturable: 0 } as const;
    const done = effectSent(effectView("cancel", "sending", { payment }), object("canceled"));
    expect(done.payment).toMatchObject({
      status: "canceled",
      nextAction: null,
      cancellationReason: "requested",
    });
  });

  it("of a refund: one send, its amount counts as refunded and stays reserved", () => {
    const view = effectView("refund", "sending");
    expect(effectClaimed(view, OWN_ACCOUNT, true).then).toEqual(SEND_REFUND);
    const done = effectSent(view, refundMade("succeeded"));
    expect(done.change.answer).toEqual(DONE);
    expect(done.refund).toMatchObject({
      status: "succeeded",
      providerRefundId: PROVIDER_REFUND_ID,
      version: 2,
    });
    expect(done.payment).toMatchObject({
      status: "succeeded",
      amountRefunded: EFFECT_AMOUNT,
      refundReserved: EFFECT_AMOUNT,
      version: 2,
    });
  });
});

describe.each(["capture", "cancel", "refund"] as const)("a %s", (kind) => {
  const send = { type: "send", call: kind };

  it("whose answer is lost is asked about, and sent again under the same key where it is not seen", () => {
    const lost = effectSent(effectView(kind, "sending"), unknown("timeout"));
    expect(lost.then.type).toBe("wait");
    expect(lost.attempt).toMatchObject({ state: "send_unknown", unresolved: true });
    const look = effectClaimed(lost.view);
    expect(look.then).toEqual(kind === "refund" ? FIND_REFUND : ASK_GET);
    const again = effectAsked(look.view, question(kind), unseen(kind));
    expect(again.then).toEqual(send);
    expect(again.attempt).toMatchObject({ state: "sending", unresolved: true });
    expect(providerKey(again.attempt, kind)).toBe(`payment-attempt:${EFFECT_ID}`);
  });

  it("whose worker died about to send is asked about before anything is sent", () => {
    const left = effectClaimed(effectView(kind, "sending"), OWN_ACCOUNT, false);
    expect(left.attempt).toMatchObject({
      state: "send_unknown",
      unresolved: true,
      waitReason: "worker_lost",
    });
    expect(left.then.type).toBe("ask");
    expect(left.change.note).toMatchObject({ kind: "send", call: kind, outcome: "unknown: worker_lost" });
  });

  it("that was refused before execution is simply claimed again, and has failed when the budget is over", () => {
    const refused = effectSent(effectView(kind, "sending"), notPerformed("unreachable"));
    expect(refused.attempt).toMatchObject({ state: "started", unresolved: false, unknownSince: null });
    const late = effectAsked(later(refused.view, BUDGET_MS), question(kind), unseen(kind));
    expect(late.then).toEqual(END);
    expect(late.change.answer).toEqual({ type: "not_performed" });
    expect(late.payment.openEffect).toBeNull();
  });

  it("that was refused after an unknown send is as unknown as before", () => {
    const view = effectView(kind, "sending", { attempt: { unresolved: true } });
    const refused = effectSent(view, notPerformed("rate_limited", 9_000));
    expect(refused.attempt).toMatchObject({ state: "send_unknown", unresolved: true });
    expect(refused.then).toEqual({ type: "wait", ms: 9_000 });
    const late = effectAsked(later(refused.view, BUDGET_MS), question(kind), unseen(kind));
    expect(late.then).toEqual(send);
  });

  it("that is unknown past its key's lifetime is a person's, and still asked about", () => {
    const view = effectView(kind, "send_unknown", { afterMs: KEY_LIFETIME_MS });
    const stuck = effectAsked(view, question(kind), unseen(kind));
    expect(stuck.change.review).toBe("provider_key_lifetime_over");
    expect(stuck.then.type).toBe("wait");
    expect(stuck.attempt.state).toBe("send_unknown");
    expect(stuck.change.answer).toBeUndefined();
  });

  it("whose outcome is unknown for a day opens a review beside the asking", () => {
    const view = effectView(kind, "send_unknown", { afterMs: REVIEW_AFTER_MS });
    const silent = effectAsked(view, question(kind), unanswered("timeout"));
    expect(silent.change.review).toBe("outcome_unknown");
    expect(silent.then.type).toBe("wait");
    // The payment is as it was: nothing of its own is in doubt.
    expect(silent.payment.status).toBe(view.payment.status);
    expect(silent.refund?.status ?? "needs_review").toBe("needs_review");
  });

  it("of an object that is missing is never taken for absent", () => {
    const missing = effectAsked(effectView(kind, "send_unknown"), question(kind), MISSING);
    expect(missing.change.review).toBe("provider_object_missing");
    expect(missing.then.type).toBe("wait");
  });

  it("of another account sends nothing and asks nothing", () => {
    const other = { type: "known", accountId: "acct_other", livemode: false } as const;
    for (const state of ["started", "sending", "send_unknown", "completed"] as const) {
      const barred = effectClaimed(effectView(kind, state), other, false);
      expect(barred.change.review).toBe("provider_account_changed");
      expect(barred.then.type).toBe("wait");
    }
  });

  it("of an account known by its credential alone is asked about under a rotated one, and never sent first", () => {
    const rotated = { type: "known", accountId: "key_new", livemode: false } as const;
    expect(effectClaimed(effectView(kind, "started"), rotated).then.type).toBe("ask");
    const left = effectClaimed(effectView(kind, "sending"), rotated);
    expect(left.then.type).toBe("ask");
    expect(left.attempt.state).toBe("send_unknown");
  });

  it("waits while the account is not known, and a send that was about to happen is unknown then", () => {
    const idle = effectClaimed(effectView(kind, "started"), UNKNOWN_ACCOUNT);
    expect([idle.then.type, idle.attempt.state]).toEqual(["wait", "started"]);
    const marked = effectClaimed(effectView(kind, "sending"), UNKNOWN_ACCOUNT);
    expect(marked.attempt).toMatchObject({ state: "send_unknown", unresolved: true });
    const over = effectClaimed(effectView(kind, "started", { afterMs: BUDGET_MS }), UNKNOWN_ACCOUNT);
    expect(over.change.answer).toEqual({ type: "not_performed" });
  });

  it("that the request itself was wrong for ends without effect", () => {
    const rejected = effectSent(effectView(kind, "sending"), rejection());
    expect(rejected.change.answer).toMatchObject({ type: "refused", code: "payment_rejected" });
    expect(rejected.payment.status).toBe(effectView(kind, "sending").payment.status);
    expect(rejected.refund?.status ?? "failed").toBe("failed");
    expect(rejected.payment.refundReserved).toBe(0);
  });
});

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
      const look = effectAsked(effectView(kind, "completed", { attempt, refund }), question(kind), answer);
      expect(look.attempt).toMatchObject({ unknownSince: null, waits: 0, waitReason: null });
    }
  });
});
