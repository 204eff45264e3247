import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import {
  ABSENT,
  BUDGET_MS,
  DECLINED,
  decline,
  END,
  later,
  rejection,
  unanswered,
  unknown,
} from "./charge-fixtures.js";
import {
  EFFECT_AMOUNT,
  effectAsked,
  effectClaimed,
  effectSent,
  effectView,
  FIND_REFUND,
  GET_REFUND,
  PROVIDER_REFUND_ID,
  refundFound,
  refundMade,
  SEND_REFUND,
} from "./effect-fixtures.js";

const OWN_ID = { refund: { providerRefundId: PROVIDER_REFUND_ID } };
const SUCCEEDED = { refund: { status: "succeeded", providerRefundId: PROVIDER_REFUND_ID } } as const;

describe("a refund that the provider has not decided yet", () => {
  it("is followed on its own clock, more and more seldom, without a row for every look", () => {
    const pending = effectSent(
      effectView("refund", "sending", { attempt: { waits: 5 } }),
      refundMade("pending"),
    );
    expect(pending.attempt).toMatchObject({ state: "following", waits: 0, unresolved: false });
    expect(pending.refund).toMatchObject({ status: "processing", providerRefundId: PROVIDER_REFUND_ID });
    expect(pending.then).toEqual({ type: "wait", ms: 1_500 });
    expect(pending.change.note).not.toBeNull();
    expect(effectClaimed(pending.view).then).toEqual(GET_REFUND);
    const look = effectAsked(pending.view, "get_refund", refundFound("pending"));
    expect(look.then).toEqual({ type: "wait", ms: 3_000 });
    expect(look.change.note).toBeNull();
    expect(look.refundMoved).toBe(false);
  });

  it("is not failed for its age, and ends as the provider says", () => {
    const view = effectView("refund", "following", { ...OWN_ID, afterMs: 30 * 86_400_000 });
    expect(effectAsked(view, "get_refund", refundFound("pending")).then.type).toBe("wait");
    const done = effectAsked(view, "get_refund", refundFound("succeeded"));
    expect(done.refund?.status).toBe("succeeded");
    const failed = effectAsked(view, "get_refund", refundFound("failed"));
    expect(failed.refund).toMatchObject({ status: "failed", failure: { code: "expired_or_canceled_card" } });
    expect(failed.change.answer).toMatchObject({ type: "refused", code: "refund_failed" });
    expect(failed.payment).toMatchObject({ refundReserved: 0, amountRefunded: 0 });
  });

  it("leaves a review that was opened beside it", () => {
    const view = effectView("refund", "send_unknown", { refund: { status: "needs_review" } });
    const pending = effectAsked(view, "find_refund", refundFound("pending"));
    expect(pending.refund?.status).toBe("processing");
    expect(pending.payment.refundReserved).toBe(EFFECT_AMOUNT);
  });
});

describe("a refund that has succeeded", () => {
  it("and fails later gives its amount back to what can be refunded, once", () => {
    const view = effectView("refund", "completed", SUCCEEDED);
    expect(effectClaimed(view).then).toEqual(GET_REFUND);
    const failed = effectAsked(view, "get_refund", refundFound("failed"));
    expect(failed.then).toEqual(END);
    expect(failed.refund).toMatchObject({ status: "failed", version: 2 });
    expect(failed.payment).toMatchObject({ amountRefunded: 0, refundReserved: 0, version: 2 });
    const again = effectAsked(failed.view, "get_refund", refundFound("failed"));
    expect([again.refundMoved, again.paymentMoved, again.then.type]).toEqual([false, false, "end"]);
    expect(again.change.note).toBeNull();
  });

  it("is not made pending again by an answer of before", () => {
    const old = effectAsked(
      effectView("refund", "completed", SUCCEEDED),
      "get_refund",
      refundFound("pending"),
    );
    expect(old.refund?.status).toBe("succeeded");
    expect(old.then.type).toBe("wait");
    expect(old.attempt.waitReason).toBe("provider_went_back");
  });

  it("is as it was where the provider says the same", () => {
    const same = effectAsked(
      effectView("refund", "completed", SUCCEEDED),
      "get_refund",
      refundFound("succeeded"),
    );
    expect([same.refundMoved, same.paymentMoved, same.change.note]).toEqual([false, false, null]);
  });
});

describe("a refund that failed", () => {
  it("and that the provider turns out to have made counts again", () => {
    const view = effectView("refund", "completed", { refund: { status: "failed", failure: DECLINED } });
    const made = effectAsked(view, "find_refund", refundFound("succeeded"));
    expect(made.refund).toMatchObject({
      status: "succeeded",
      failure: null,
      providerRefundId: PROVIDER_REFUND_ID,
    });
    expect(made.payment).toMatchObject({ amountRefunded: EFFECT_AMOUNT, refundReserved: EFFECT_AMOUNT });
  });
});

describe("a refund whose answer is in doubt", () => {
  it("is found by the attempt's id, and from then on asked for by its own", () => {
    const view = effectView("refund", "send_unknown");
    expect(effectClaimed(view).then).toEqual(FIND_REFUND);
    const seen = effectAsked(view, "find_refund", refundFound("unrecognized"));
    expect(seen.refund?.providerRefundId).toBe(PROVIDER_REFUND_ID);
    expect(seen.then.type).toBe("wait");
    expect(effectClaimed(seen.view).then).toEqual(GET_REFUND);
  });

  it("and that is replayed is fetched before it is believed, by the id that the replay tells", () => {
    const replay = effectSent(effectView("refund", "sending"), refundMade("succeeded", {}, true));
    expect(replay.then).toEqual(GET_REFUND);
    expect(replay.refund).toMatchObject({ status: "processing", providerRefundId: PROVIDER_REFUND_ID });
    expect(effectClaimed(replay.view).then).toEqual(GET_REFUND);
    expect(effectAsked(replay.view, "get_refund", refundFound("failed")).refund?.status).toBe("failed");
  });

  it("and whose key has said its last word is never sent under another: a person decides", () => {
    const stored = effectSent(effectView("refund", "sending"), unknown("stored_error", true));
    expect(stored.then).toEqual(FIND_REFUND);
    const absent = effectAsked(stored.view, "find_refund", ABSENT);
    expect(absent.change.review).toBe("provider_key_spent");
    expect(absent.then.type).toBe("wait");
    expect(absent.refund?.status).toBe("needs_review");
    expect(absent.payment.refundReserved).toBe(EFFECT_AMOUNT);
    expect(providerKey(absent.attempt, "refund")).toBe(providerKey(stored.attempt, "refund"));
    // The list shows it after all: a fact ends what a person was asked.
    const found = effectAsked(absent.view, "find_refund", refundFound("succeeded"));
    expect(found.refund?.status).toBe("succeeded");
  });

  it("is sent again under its one key while that lasts, however long the budget is over", () => {
    const view = effectView("refund", "send_unknown", { afterMs: 100 * BUDGET_MS });
    const again = effectAsked(view, "find_refund", ABSENT);
    expect(again.then).toEqual(SEND_REFUND);
    expect(again.attempt.fenceRound).toBe(1);
  });

  it("is not ended by silence", () => {
    const silent = effectAsked(
      effectView("refund", "send_unknown", { afterMs: BUDGET_MS }),
      "find_refund",
      unanswered("unreachable"),
    );
    expect(silent.then.type).toBe("wait");
    expect(silent.change.answer).toBeUndefined();
  });
});

describe("a refund that the provider refuses", () => {
  it("since less is left there, is too large: its one send had no effect", () => {
    const conflict = effectSent(effectView("refund", "sending"), unknown("state_conflict"));
    expect(conflict.then).toEqual(FIND_REFUND);
    const absent = effectAsked(conflict.view, "find_refund", ABSENT);
    expect(absent.change.answer).toMatchObject({ type: "refused", code: "amount_too_large" });
    expect(absent.refund).toMatchObject({ status: "failed", failure: { code: "amount_too_large" } });
    expect(absent.payment.refundReserved).toBe(0);
  });

  it("since less is left there, is not said to have failed while an earlier send of it is unknown", () => {
    const view = effectView("refund", "sending", { attempt: { unresolved: true } });
    const conflict = effectSent(view, unknown("state_conflict"));
    const absent = effectAsked(conflict.view, "find_refund", ABSENT);
    expect(absent.then.type).toBe("wait");
    expect(absent.refund?.status).toBe("processing");
    const made = effectAsked(conflict.view, "find_refund", refundFound("succeeded"));
    expect(made.change.answer).toEqual({ type: "done" });
  });

  it("since its holder disputes the payment, is refused for the payment's state", () => {
    for (const code of ["charge_disputed", "refund_disputed_payment"]) {
      const disputed = { ...rejection(), failure: { ...DECLINED, code } } as ReturnType<typeof rejection>;
      const refused = effectSent(effectView("refund", "sending"), disputed);
      expect(refused.change.answer).toMatchObject({ type: "refused", code: "invalid_state" });
      expect(refused.change.answer).toMatchObject({ detail: expect.stringContaining("disputed") as unknown });
      expect(refused.refund?.status).toBe("failed");
    }
  });

  it("by a decline, has failed; by one that is replayed or after an unknown, is looked for first", () => {
    const declined = effectSent(effectView("refund", "sending"), decline());
    expect(declined.change.answer).toMatchObject({ type: "refused", code: "payment_declined" });
    expect(declined.refund).toMatchObject({ status: "failed", failure: DECLINED });
    const unresolved = effectView("refund", "sending", { attempt: { unresolved: true } });
    for (const unsure of [
      effectSent(unresolved, decline()),
      effectSent(effectView("refund", "sending"), decline(true)),
    ]) {
      expect(unsure.then).toEqual(FIND_REFUND);
      expect(unsure.refund?.status).toBe("processing");
    }
  });
});

describe("a refund that cannot be this one", () => {
  it.each([
    { name: "of another attempt", patch: { attemptId: "att_other" }, review: "provider_object_foreign" },
    { name: "of another tenant", patch: { tenantId: "ten_other" }, review: "provider_object_foreign" },
    { name: "of another charge", patch: { chargeId: "pi_other" }, review: "provider_object_foreign" },
    { name: "of another amount", patch: { amount: 1 }, review: "provider_amount_mismatch" },
    { name: "of no whole amount", patch: { amount: null }, review: "provider_amount_mismatch" },
    { name: "in another currency", patch: { currency: "eur" }, review: "provider_amount_mismatch" },
  ])("is shown to a person: $name", ({ patch, review }) => {
    const odd = effectSent(effectView("refund", "sending"), refundMade("succeeded", patch));
    expect(odd.change.review).toBe(review);
    expect(odd.refund).toMatchObject({ status: "needs_review", providerRefundId: null });
    expect(odd.payment.amountRefunded).toBe(0);
    expect(odd.attempt.state).toBe("send_unknown");
  });

  it("takes one that was made without our marks, of the right charge and money, for ours by its id", () => {
    const view = effectView("refund", "following", OWN_ID);
    const bare = refundFound("succeeded", { attemptId: null, tenantId: null, chargeId: null });
    expect(effectAsked(view, "get_refund", bare).refund?.status).toBe("succeeded");
  });
});

describe("the time of a refund's first send", () => {
  it("is what its key's lifetime is counted from, not the last one", () => {
    const lost = effectSent(effectView("refund", "sending"), unknown("timeout"));
    const again = effectAsked(later(lost.view, 3_600_000), "find_refund", ABSENT);
    expect(again.attempt.effectFirstSentAt).toEqual(lost.attempt.effectFirstSentAt);
  });
});
