import { describe, expect, it } from "vitest";
import type { ChargeView } from "../../../src/domain/charge-change.js";
import { endOfReview } from "../../../src/domain/review.js";
import {
  ABSENT,
  ASK_GET,
  at,
  BUDGET_MS,
  CHARGE_ID,
  DECLINED,
  END,
  found,
  MISSING,
  object,
  SEND_FENCE,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";
import { effectView } from "./effect-fixtures.js";
import { answered, answeredSend, charge, instructed } from "./review-scenes.js";

describe("adopt_provider_object", () => {
  const adopt = (view: ChargeView, name: string | null = null) =>
    instructed(view, "adopt_provider_object", name);

  it.each(["succeeded", "authorized"] as const)(
    "takes money that moved after the end though another payment holds the order id (%s), and for good",
    (status) => {
      const view = adopt(charge("completed", { payment: { holdsOrderId: false, failure: DECLINED } }));
      const taken = answered(view, "get", found(status));
      expect(taken.change.instruction).toBe("carried_out");
      expect(taken.payment).toMatchObject({ status, holdsOrderId: false, failure: null });
      const again = answered(taken.view, "get", found(status));
      expect(again.change.review).toBeNull();
      expect(again.payment.status).toBe(status);
    },
  );

  it("takes less money than was asked for, and the next look finds nothing wrong with it", () => {
    const short = { amountCaptured: 900 };
    const taken = answered(adopt(charge("confirm_unknown")), "get", found("succeeded", short));
    expect(taken.change.instruction).toBe("carried_out");
    expect(taken.payment).toMatchObject({ status: "succeeded", amount: 4200, amountCaptured: 900 });
    expect(taken.then).toEqual(END);
    expect(answered(taken.view, "get", found("succeeded", short)).change.review).toBeNull();
    expect(answered(taken.view, "get", found("succeeded", { amountCaptured: 800 })).change.review).toBe(
      "provider_amount_mismatch",
    );
  });

  it("takes an object whose marker was changed only where the person names it", () => {
    const foreign = found("succeeded", { attemptId: "att_other", tenantId: "ten_other" });
    expect(answered(adopt(charge("confirm_unknown")), "get", foreign).change).toMatchObject({
      instruction: "returned",
      reason: "adopt_provider_object is not possible: provider_object_foreign",
    });
    const named = answered(adopt(charge("confirm_unknown"), CHARGE_ID), "get", foreign);
    expect(named.payment).toMatchObject({ status: "succeeded", amountCaptured: 4200 });
    const otherMode = found("succeeded", { attemptId: "att_other", livemode: true });
    expect(answered(adopt(charge("confirm_unknown"), CHARGE_ID), "get", otherMode).payment.status).toBe(
      "needs_review",
    );
  });

  it.each([
    ["another currency", found("succeeded", { currency: "eur" }), "provider_amount_mismatch"],
    ["an amount that is none of ours", found("succeeded", { amount: null }), "provider_amount_mismatch"],
    ["a hold of another amount", found("authorized", { amount: 900 }), "provider_amount_mismatch"],
    ["an unpaid object of another amount", found("created", { amount: 900 }), "provider_amount_mismatch"],
    ["no object", MISSING, "provider_object_missing"],
  ] as const)("is given back for %s, with what was in its way", (_, outcome, why) => {
    const shown = answered(adopt(charge("confirm_unknown")), "get", outcome);
    expect(shown.change).toMatchObject({
      instruction: "returned",
      reason: `adopt_provider_object is not possible: ${why}`,
    });
    expect(shown.payment.status).toBe("needs_review");
    expect(shown.then.type).toBe("wait");
  });

  it("takes a canceled object of another amount as the end: nothing can charge it any more", () => {
    const ended = answered(adopt(charge("confirm_unknown")), "get", found("canceled", { amount: 900 }));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
      holdsOrderId: false,
    });
  });

  it("commits the object that the person named, where it was made for this attempt", () => {
    const view = adopt(
      charge("create_unknown", { attempt: { waitReason: "provider_key_mismatch" } }),
      "pi_named",
    );
    const taken = answered(view, "get", found("succeeded", { id: "pi_named" }));
    expect(taken.attempt).toMatchObject({ state: "completed", providerPaymentId: "pi_named" });
    expect(taken.payment.status).toBe("succeeded");
  });

  it.each([
    ["no marker", { attemptId: null, tenantId: null }, "provider_object_foreign"],
    ["another attempt's marker", { attemptId: "att_other" }, "provider_object_foreign"],
    ["another tenant's marker", { tenantId: "ten_other" }, "provider_object_foreign"],
    ["another mode", { livemode: true }, "provider_object_foreign"],
    ["another currency", { currency: "eur" }, "provider_amount_mismatch"],
  ] as const)("does not take a named object with %s", (_, patch, why) => {
    const view = adopt(
      charge("create_unknown", { attempt: { waitReason: "provider_key_mismatch" } }),
      "pi_named",
    );
    const shown = answered(view, "get", found("succeeded", { id: "pi_named", ...patch }));
    expect(shown.change.reason).toBe(`adopt_provider_object is not possible: ${why}`);
    expect(shown.attempt).toMatchObject({
      state: "create_unknown",
      providerPaymentId: null,
      instruction: null,
    });
    expect(shown.payment).toMatchObject({ status: "needs_review", amountCaptured: 0 });
  });

  it("takes another amount only on the word of a person who has seen it", () => {
    const mismatch = { attempt: { waitReason: "provider_key_mismatch" } };
    const other = found("succeeded", { id: "pi_named", amount: 900, amountCaptured: 900 });
    const decidedFor = (reason: string) =>
      instructed(charge("create_unknown", mismatch), "adopt_provider_object", "pi_named", reason);
    const unseen = answered(decidedFor("provider_key_mismatch"), "get", other);
    expect(unseen.change).toMatchObject({
      instruction: "returned",
      reason: "adopt_provider_object is not possible: found since: provider_amount_mismatch",
      review: "provider_amount_mismatch",
    });
    expect(unseen.payment).toMatchObject({ status: "needs_review", amountCaptured: 0 });
    const seen = answered(decidedFor("provider_amount_mismatch"), "get", other);
    expect(seen.payment).toMatchObject({ status: "succeeded", amountCaptured: 900 });
    expect(seen.attempt.providerPaymentId).toBe("pi_named");
    const ended = charge("completed", { payment: { holdsOrderId: false, failure: DECLINED } });
    const early = instructed(ended, "adopt_provider_object", null, "outcome_unknown");
    expect(answered(early, "get", found("succeeded")).change.review).toBe("paid_after_end");
    const late = instructed(ended, "adopt_provider_object", null, "paid_after_end");
    expect(answered(late, "get", found("succeeded")).change.instruction).toBe("carried_out");
  });

  it("is given back where the named object is not there", () => {
    const view = adopt(charge("create_unknown"), "pi_named");
    expect(answered(view, "get", MISSING).change.instruction).toBe("returned");
    expect(answered(view, "get", unanswered("timeout")).attempt.instruction).not.toBeNull();
  });

  it("takes what a capture of another amount took", () => {
    const view = adopt(effectView("capture", "send_unknown"));
    const taken = answered(view, "get", found("succeeded", { amount: 900, amountCaptured: 900 }));
    expect(taken.change.instruction).toBe("carried_out");
    expect(taken.payment).toMatchObject({ status: "succeeded", amountCaptured: 900, openEffect: null });
  });
});

describe("cancel_at_provider", () => {
  const cancel = (view: ChargeView, name: string | null = null) =>
    instructed(view, "cancel_at_provider", name);

  it("sends the fence where the machine alone would confirm again, and ends when it reads canceled", () => {
    const view = cancel(charge("confirm_unknown"));
    const fenced = answered(view, "get", found("created"));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({ state: "fencing", instruction: view.attempt.instruction });
    const sent = answeredSend(fenced.view, "fence", object("canceled"));
    expect(sent.then).toEqual(ASK_GET);
    const ended = answered(sent.view, "get", found("canceled"));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
  });

  it("of a payment that waited for its customer says who asked for it", () => {
    const waiting = viewIn("following", { payment: { status: "requires_action" } });
    const fenced = answered(cancel(waiting), "get", found("requires_action"));
    expect(fenced.then).toEqual(SEND_FENCE);
    const sent = answeredSend(fenced.view, "fence", object("canceled"));
    const ended = answered(sent.view, "get", found("canceled"));
    expect(ended.payment).toMatchObject({ status: "canceled", cancellationReason: "requested" });
    const elsewhere = answered(cancel(waiting), "get", found("canceled"));
    expect(elsewhere.payment).toMatchObject({ cancellationReason: "canceled_at_provider" });
    expect(elsewhere.change.instruction).toBeUndefined();
  });

  it("adopts what was paid before the cancel came", () => {
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created"));
    const refused = answeredSend(fenced.view, "fence", unknown("state_conflict"));
    const paid = answered(refused.view, "get", found("succeeded"));
    expect(endOfReview(refused.view, paid.change)).toBe("fact");
    expect(paid.payment.status).toBe("succeeded");
  });

  it("commits and cancels an object of another amount that only the list knew", () => {
    const fenced = answered(cancel(charge("create_unknown")), "find", found("created", { amount: 900 }));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({ state: "fencing", providerPaymentId: CHARGE_ID });
    const sent = answeredSend(fenced.view, "fence", object("canceled", { amount: 900 }));
    const ended = answered(sent.view, "get", found("canceled", { amount: 900 }));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment.status).toBe("failed");
  });

  it.each(["find", "get"] as const)("cancels an object of another amount, named or not (%s)", (question) => {
    const name = question === "get" ? CHARGE_ID : null;
    const other = found("created", { amount: 900 });
    const fenced = answered(cancel(charge("create_unknown"), name), question, other);
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({ state: "fencing", providerPaymentId: CHARGE_ID });
    const sent = answeredSend(fenced.view, "fence", object("canceled", { amount: 900 }));
    const ended = answered(sent.view, "get", found("canceled", { amount: 900 }));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment.status).toBe("failed");
    // The provider tells of its cancel afterwards: no review opens for what has ended.
    const told = answered(ended.view, "get", found("canceled", { amount: 900, attemptId: "att_other" }));
    expect(told.change).toMatchObject({ review: null, then: END });
    const paid = answered(ended.view, "get", found("succeeded", { amount: 900 }));
    expect(paid.change.review).toBe("paid_after_end");
  });

  it("never touches a named object of another attempt, or the attempt's own in place of the one that was named", () => {
    const other = answered(
      cancel(charge("create_unknown"), CHARGE_ID),
      "get",
      found("created", { attemptId: "att_other" }),
    );
    expect(other.change.reason).toBe("cancel_at_provider is not possible: provider_object_foreign");
    const since = answered(cancel(charge("confirm_unknown"), "pi_named"), "get", found("created"));
    expect(since.change.reason).toBe("cancel_at_provider is not possible: provider_object_other");
    expect(since.then.type).toBe("wait");
  });

  it("releases a hold that came after the end and whose order id is another's", () => {
    const view = cancel(charge("completed", { payment: { holdsOrderId: false, failure: DECLINED } }));
    const fenced = answered(view, "get", found("authorized"));
    expect(fenced.then).toEqual(SEND_FENCE);
    const sent = answeredSend(fenced.view, "fence", object("canceled"));
    expect(answered(sent.view, "get", found("canceled")).change.instruction).toBe("carried_out");
  });

  it("is given back where the cancel was answered and the object stands, so that it is not sent for ever", () => {
    const odd = { amount: 900 };
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created", odd));
    const sent = answeredSend(fenced.view, "fence", object("created", odd));
    const stands = answered(sent.view, "get", found("created", odd));
    expect(stands.change.reason).toBe("cancel_at_provider is not possible: cancel_without_effect");
    expect(stands.then.type).toBe("wait");
  });

  it("is sent again where the cancel itself got no answer", () => {
    const odd = { amount: 900 };
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created", odd));
    const lost = answeredSend(fenced.view, "fence", unknown("timeout"));
    expect(lost.then.type).toBe("wait");
    expect(answered(lost.view, "get", found("created", odd)).then).toEqual(SEND_FENCE);
  });

  it("is given back where the object is paid and cannot simply be shown", () => {
    const paid = answered(cancel(charge("confirm_unknown")), "get", found("succeeded", { amount: 900 }));
    expect(paid.change.reason).toBe("cancel_at_provider is not possible: provider_object_succeeded");
    expect(paid.payment.status).toBe("needs_review");
  });

  it("never touches an object with another's marker that the person did not name", () => {
    const foreign = found("created", { attemptId: "att_other" });
    expect(answered(cancel(charge("confirm_unknown")), "get", foreign).change.instruction).toBe("returned");
    expect(answered(cancel(charge("confirm_unknown"), CHARGE_ID), "get", foreign).then).toEqual(SEND_FENCE);
  });

  it("waits for the budget's end where there is nothing to cancel yet, and creates nothing", () => {
    const waits = answered(cancel(charge("create_unknown")), "find", ABSENT);
    expect(waits.then.type).toBe("wait");
    expect(waits.attempt.instruction).not.toBeNull();
    const over = answered({ ...waits.view, now: at(BUDGET_MS) }, "find", ABSENT);
    expect(over.payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
  });
});
