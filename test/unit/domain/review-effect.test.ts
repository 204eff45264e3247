import { describe, expect, it } from "vitest";
import type { ChargeView } from "../../../src/domain/charge-change.js";
import type { LookupOutcome } from "../../../src/domain/provider.js";
import { allowedResolutions, endOfReview } from "../../../src/domain/review.js";
import { decideAfterSend } from "../../../src/domain/review-decisions.js";
import {
  ABSENT,
  BUDGET_MS,
  CHARGE_ID,
  DECLINED,
  found,
  KEY_LIFETIME_MS,
  MISSING,
  object,
  SEND_CONFIRM,
  SEND_FENCE,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";
import { effectView, refundFound, refundMade, SEND_REFUND } from "./effect-fixtures.js";
import { answered, answeredSend, charge, instructed, refund } from "./review-scenes.js";

describe("mark_not_performed", () => {
  const mark = (view: ChargeView) => instructed(view, "mark_not_performed");
  const mismatch = { waitReason: "provider_key_mismatch" };

  it("of a charge without an object needs a complete list after the key's lifetime", () => {
    const old = charge("create_unknown", { afterMs: KEY_LIFETIME_MS, attempt: mismatch });
    const ended = answered(mark(old), "find", ABSENT);
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
      holdsOrderId: false,
    });
    const young = charge("create_unknown", { afterMs: KEY_LIFETIME_MS - 1, attempt: mismatch });
    expect(answered(mark(young), "find", ABSENT).change.instruction).toBe("returned");
  });

  it("of a charge with an object needs that to be canceled", () => {
    const fencing = (outcome: LookupOutcome) => answered(mark(charge("fencing")), "get", outcome);
    expect(fencing(found("canceled", { amount: 900 })).change.instruction).toBe("carried_out");
    for (const status of ["created", "authorized", "succeeded", "pending"] as const) {
      const shown = fencing(found(status, { amount: 900 }));
      expect(shown.change.instruction, status).toBe("returned");
      expect(shown.payment.status).toBe("needs_review");
    }
    expect(fencing(MISSING).change.instruction).toBe("returned");
  });

  it("never confirms: it is given back, and the machine goes on after it", () => {
    const shown = answered(mark(charge("confirm_unknown")), "get", found("created"));
    expect(shown.then.type).toBe("wait");
    expect(shown.change.instruction).toBe("returned");
    const alone = answered(charge("confirm_unknown"), "get", found("created"));
    expect(alone.then).toEqual(SEND_CONFIRM);
  });

  it("of a refund needs a complete list after the key's lifetime, and frees its amount and its key", () => {
    const ended = answered(mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS })), "find_refund", ABSENT);
    expect(ended.change).toMatchObject({ instruction: "carried_out", answer: { type: "not_performed" } });
    expect(ended.refund?.status).toBe("failed");
    expect(ended.payment.refundReserved).toBe(0);
    const young = answered(
      mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS - 1 })),
      "find_refund",
      ABSENT,
    );
    expect(young.refund?.status).toBe("needs_review");
    expect(young.change.instruction).toBe("returned");
    expect(young.then.type).toBe("wait");
  });

  it("of a refund that the list has is the provider's to say", () => {
    const view = mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS }));
    const made = answered(view, "find_refund", refundFound("succeeded"));
    expect(made.refund?.status).toBe("succeeded");
    expect(endOfReview(view, made.change)).toBe("fact");
  });

  it("of a capture ends it where the money is still held, and frees the payment for another", () => {
    const view = mark(effectView("capture", "send_unknown", { afterMs: KEY_LIFETIME_MS }));
    const ended = answered(view, "get", found("authorized"));
    expect(ended.change).toMatchObject({ instruction: "carried_out", answer: { type: "not_performed" } });
    expect(ended.payment).toMatchObject({ status: "authorized", openEffect: null });
  });

  describe("where the provider does not know the object any more", () => {
    const GONE = { afterMs: KEY_LIFETIME_MS, attempt: { waitReason: "provider_object_missing" } };
    const YOUNG = { ...GONE, afterMs: KEY_LIFETIME_MS - 1 };
    const takes = (view: ChargeView) =>
      allowedResolutions(view, "outcome_unknown").map((one) => one.resolution);

    it("of a charge takes a complete list without another, after the keys' lifetime, and is final", () => {
      const view = mark(charge("confirm_unknown", GONE));
      expect(takes(view)).toContain("mark_not_performed");
      const asks = answered(view, "get", MISSING);
      expect(asks.then).toEqual({ type: "ask", question: "find" });
      expect(asks.attempt.instruction).not.toBeNull();
      const ended = answered(asks.view, "find", ABSENT);
      expect(ended.change.instruction).toBe("carried_out");
      expect(ended.attempt.state).toBe("completed");
      expect(ended.payment).toMatchObject({
        status: "failed",
        failure: { code: "provider_object_missing", retry: "new_key" },
        holdsOrderId: true,
      });
    });

    it("of a charge is never possible while a key of ours may still bring it", () => {
      const view = charge("confirm_unknown", YOUNG);
      expect(takes(view)).not.toContain("mark_not_performed");
      expect(answered(mark(view), "get", MISSING).change.instruction).toBe("returned");
      expect(answered(mark(view), "find", ABSENT).change.instruction).toBe("returned");
    });

    it("of a charge is given back where there is another object with its marks", () => {
      const asks = answered(mark(charge("confirm_unknown", GONE)), "get", MISSING);
      const other = answered(asks.view, "find", found("succeeded", { id: "pi_second" }));
      expect(other.change.reason).toBe("mark_not_performed is not possible: provider_object_stray");
      expect(other.attempt.providerPaymentId).toBe(CHARGE_ID);
      expect(other.payment.status).toBe("needs_review");
      const unanswered503 = answered(asks.view, "find", unanswered("server_error"));
      expect(unanswered503.attempt.instruction).not.toBeNull();
    });

    it("of a charge that is found again is the fact's to end", () => {
      const view = mark(charge("confirm_unknown", GONE));
      const paid = answered(view, "get", found("succeeded"));
      expect(paid.payment.status).toBe("succeeded");
      expect(endOfReview(view, paid.change)).toBe("fact");
    });

    it("of a declined payment ends the closing of its object, and the payment stays failed and holds its order id", () => {
      const view = mark(viewIn("fencing", { ...GONE, payment: { status: "failed", failure: DECLINED } }));
      expect(takes(view)).toContain("mark_not_performed");
      const asks = answered(view, "get", MISSING);
      const ended = answered(asks.view, "find", ABSENT);
      expect(ended.attempt.state).toBe("completed");
      expect(ended.payment).toMatchObject({ status: "failed", failure: DECLINED, holdsOrderId: true });
    });

    it("of a charge waits for the capture in flight to be ended first", () => {
      const view = charge("following", { ...GONE, payment: { openEffect: "att_capture" } });
      expect(takes(view)).not.toContain("mark_not_performed");
    });

    it("of a refund takes its charge's complete list, and is final", () => {
      const made = { ...GONE, refund: { providerRefundId: "re_provider" } };
      const view = mark(refund("following", made));
      expect(takes(view)).toContain("mark_not_performed");
      const asks = answered(view, "get_refund", MISSING);
      expect(asks.then).toEqual({ type: "ask", question: "find_refund" });
      const ended = answered(asks.view, "find_refund", ABSENT);
      expect(ended.change).toMatchObject({
        instruction: "carried_out",
        answer: { type: "refused", code: "refund_failed" },
      });
      expect(ended.refund).toMatchObject({ status: "failed", failure: { retry: "new_key" } });
      expect(ended.payment.refundReserved).toBe(0);
      const young = refund("following", { ...made, afterMs: KEY_LIFETIME_MS - 1 });
      expect(takes(young)).not.toContain("mark_not_performed");
      expect(answered(mark(young), "get_refund", MISSING).change.instruction).toBe("returned");
    });

    it("of a capture ends it, and says nothing of the payment", () => {
      const view = mark(effectView("capture", "send_unknown", { afterMs: KEY_LIFETIME_MS }));
      const ended = answered(view, "get", MISSING);
      expect(ended.change).toMatchObject({ instruction: "carried_out", answer: { type: "not_performed" } });
      expect(ended.payment).toMatchObject({ status: "authorized", openEffect: null });
      const young = mark(effectView("capture", "send_unknown", { afterMs: KEY_LIFETIME_MS - 1 }));
      expect(answered(young, "get", MISSING).change.instruction).toBe("returned");
    });
  });
});

describe("adopt_provider_object of a refund", () => {
  const adopts = (view: ChargeView) => instructed(view, "adopt_provider_object");

  it("takes its own object whose marks were changed, and never another amount or another charge's", () => {
    const view = adopts(refund("following", { refund: { providerRefundId: "re_provider" } }));
    const marks = { attemptId: "att_other", tenantId: "ten_other" };
    const taken = answered(view, "get_refund", refundFound("succeeded", marks));
    expect(taken.change.instruction).toBe("carried_out");
    expect(taken.refund?.status).toBe("succeeded");
    for (const patch of [{ amount: 1 }, { chargeId: "pi_other" }, { id: "re_other" }]) {
      const other = answered(view, "get_refund", refundFound("succeeded", { ...marks, ...patch }));
      expect(other.change.instruction, JSON.stringify(patch)).toBe("returned");
      expect(other.refund?.status).toBe("needs_review");
    }
  });
});

describe("retry_same_key", () => {
  const retry = (view: ChargeView) => instructed(view, "retry_same_key");
  const spent = { keySpent: true };

  it("sends a refund with a spent key once more, after a list without it, and never past the key's lifetime", () => {
    const view = retry(refund("send_unknown", { attempt: spent }));
    const sends = answered(view, "find_refund", ABSENT);
    expect(sends.then).toEqual(SEND_REFUND);
    expect(sends.attempt).toMatchObject({
      state: "sending",
      fenceRound: 1,
      instruction: view.attempt.instruction,
    });
    expect(answered(view, "find_refund", unanswered("timeout")).then.type).toBe("wait");
    const old = retry(refund("send_unknown", { attempt: spent, afterMs: KEY_LIFETIME_MS }));
    expect(answered(old, "find_refund", ABSENT).change.instruction).toBe("returned");
  });

  it("closes the review with what the send brought", () => {
    const sends = answered(retry(refund("send_unknown", { attempt: spent })), "find_refund", ABSENT);
    const made = answeredSend(sends.view, "refund", refundMade("succeeded"));
    expect(made.change.instruction).toBe("carried_out");
    expect(made.refund?.status).toBe("succeeded");
  });

  it("has done what it could once it was sent, and stays while nothing could be sent", () => {
    const sends = answered(retry(refund("send_unknown", { attempt: spent })), "find_refund", ABSENT);
    const again = answeredSend(sends.view, "refund", unknown("stored_error", true));
    expect(again.change.reason).toBe("retry_same_key is not possible: stored_error");
    expect(again.attempt.instruction).toBeNull();
    expect(answered(again.view, "find_refund", ABSENT).change.review).toBe("provider_key_spent");
    const refused = answeredSend(sends.view, "refund", {
      type: "not_performed",
      reason: "unreachable",
      retryAfterMs: null,
      evidence: { httpStatus: null, code: null, requestId: null },
    });
    expect(refused.attempt.instruction).not.toBeNull();
  });

  it("of a charge is what the machine sends after the answer, within the budget alone", () => {
    const view = retry(charge("confirm_unknown"));
    const confirms = answered(view, "get", found("created"));
    expect(confirms.then).toEqual(SEND_CONFIRM);
    const paid = answeredSend(confirms.view, "confirm", object("succeeded"));
    expect(paid.change.instruction).toBe("carried_out");
    const lost = decideAfterSend(confirms.view, "confirm", unknown("timeout"));
    expect(lost.instruction).toBe("returned");
    const late = retry(charge("confirm_unknown", { afterMs: BUDGET_MS }));
    expect(answered(late, "get", found("created")).then).toEqual(SEND_FENCE);
  });
});
