import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import type { EffectCall } from "../../../src/domain/provider.js";
import {
  ABSENT,
  ASK_GET,
  BUDGET_MS,
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
  PROVIDER_REFUND_ID,
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
