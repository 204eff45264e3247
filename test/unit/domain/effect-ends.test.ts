import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import { budgetIsOver } from "../../../src/domain/charge-change.js";
import type { Refund } from "../../../src/domain/refund.js";
import { KEY_LIFETIME_MS } from "./charge-fixtures.js";
import {
  chargeShown,
  EFFECT_CASES,
  type EffectCase,
  faults,
  refundShown,
  sendsNext,
} from "./effect-cases.js";

describe("the answer to", () => {
  const answered = (kind: EffectCase["kind"], type: "done" | "refused" | "not_performed") =>
    EFFECT_CASES.filter((one) => one.kind === kind && one.change.answer?.type === type);

  it("a capture is done exactly when the object is captured by the amount that was asked for", () => {
    const done = answered("capture", "done");
    expect(done.length).toBeGreaterThan(20);
    expect(
      faults(done, (one) => {
        const charge = chargeShown(one);
        return charge?.status !== "succeeded" || charge.amountCaptured !== one.view.attempt.amount;
      }),
    ).toEqual([]);
    expect(faults(done, ({ applied }) => applied.payment.status !== "succeeded")).toEqual([]);
  });

  it("a cancel is done exactly when the object is canceled", () => {
    const done = answered("cancel", "done");
    expect(done.length).toBeGreaterThan(20);
    expect(faults(done, (one) => chargeShown(one)?.status !== "canceled")).toEqual([]);
    expect(
      faults(
        done,
        ({ applied: { payment } }) => payment.status !== "canceled" && payment.status !== "failed",
      ),
    ).toEqual([]);
  });

  it("a refund is done exactly when the provider's has succeeded, by its whole amount", () => {
    const done = answered("refund", "done");
    expect(done.length).toBeGreaterThan(20);
    expect(
      faults(done, (one) => {
        const shown = refundShown(one);
        return shown?.status !== "succeeded" || shown.amount !== one.view.refund?.amount;
      }),
    ).toEqual([]);
    expect(faults(done, ({ applied }) => applied.refund?.status !== "succeeded")).toEqual([]);
  });

  it("any of them is not performed only where every send was refused before execution and the budget is over", () => {
    const proven = [
      ...answered("capture", "not_performed"),
      ...answered("cancel", "not_performed"),
      ...answered("refund", "not_performed"),
    ];
    expect(new Set(proven.map(({ kind }) => kind)).size).toBe(3);
    expect(
      faults(proven, (one) => {
        const isLate = budgetIsOver(one.view);
        // A send that has an answer, and an object that shows the effect, are not proofs of its absence.
        return (
          one.view.attempt.unresolved ||
          !isLate ||
          one.what === "send" ||
          one.view.attempt.state === "completed"
        );
      }),
    ).toEqual([]);
    expect(
      faults(proven, ({ applied }) => applied.refund !== null && applied.refund.status !== "failed"),
    ).toEqual([]);
  });

  it("a refund that is refused or not performed is a refund that has failed, with its reason", () => {
    const failed = [...answered("refund", "refused"), ...answered("refund", "not_performed")];
    expect(failed.length).toBeGreaterThan(20);
    expect(
      faults(failed, ({ applied }) => applied.refund?.status !== "failed" || applied.refund.failure === null),
    ).toEqual([]);
  });

  it("a capture or cancel that is refused leaves the payment as it is, or as the object shows it", () => {
    expect(
      faults([...answered("capture", "refused"), ...answered("cancel", "refused")], (one) => {
        const shown = chargeShown(one)?.status;
        const { status } = one.applied.payment;
        return status !== one.view.payment.status && status !== shown;
      }),
    ).toEqual([]);
  });
});

describe("a refund", () => {
  const cases = EFFECT_CASES.filter(({ kind }) => kind === "refund");

  it("has its amount reserved until it has failed, and counted as refunded while it has succeeded", () => {
    expect(
      faults(cases, ({ view, applied: { payment, refund } }) => {
        const before = view.refund;
        if (refund === null || before === null) return true;
        const reserved = (one: Refund) => (one.status === "failed" ? 0 : one.amount);
        const refunded = (one: Refund) => (one.status === "succeeded" ? one.amount : 0);
        const left = view.payment.amountCaptured - payment.refundReserved;
        return (
          payment.refundReserved - view.payment.refundReserved !== reserved(refund) - reserved(before) ||
          payment.amountRefunded - view.payment.amountRefunded !== refunded(refund) - refunded(before) ||
          payment.amountRefunded > payment.refundReserved ||
          left < 0
        );
      }),
    ).toEqual([]);
  });

  it("never gets a second key", () => {
    expect(
      faults(
        cases,
        ({ view, applied }) => providerKey(view.attempt, "refund") !== providerKey(applied.attempt, "refund"),
      ),
    ).toEqual([]);
    expect(faults(cases, (one) => sendsNext(one) && one.view.attempt.keySpent)).toEqual([]);
  });

  it("is never sent after its key's lifetime", () => {
    expect(
      faults(cases, (one) => {
        const since = one.view.attempt.effectFirstSentAt ?? one.view.attempt.createdAt;
        return sendsNext(one) && one.view.now.getTime() - since.getTime() >= KEY_LIFETIME_MS;
      }),
    ).toEqual([]);
  });

  it("keeps the provider's id once it is known, and never takes another's", () => {
    expect(
      faults(cases, (one) => {
        const before = one.view.refund?.providerRefundId ?? null;
        const after = one.applied.refund?.providerRefundId ?? null;
        if (before !== null) return after !== before;
        return after !== null && after !== refundShown(one)?.id;
      }),
    ).toEqual([]);
  });

  it("steps into needs_review only with a review, and takes no payment along", () => {
    expect(
      faults(cases, ({ view, change, applied: { refund, payment } }) => {
        const steps = refund?.status === "needs_review" && view.refund?.status !== "needs_review";
        const must = change.review !== null && view.refund?.status === "processing";
        return (steps && change.review === null) || (must && !steps) || payment.status !== "succeeded";
      }),
    ).toEqual([]);
  });
});

describe("a review of a capture, cancel or refund", () => {
  it("is opened where no machine may decide", () => {
    const reviews = new Set(
      EFFECT_CASES.flatMap(({ kind, change }) =>
        change.review === null ? [] : [`${kind}: ${change.review}`],
      ),
    );
    const common = [
      "outcome_unknown",
      "provider_account_changed",
      "provider_amount_mismatch",
      "provider_key_lifetime_over",
      "provider_object_foreign",
      "provider_object_missing",
    ];
    expect([...reviews].sort()).toEqual(
      [
        ...["cancel", "capture", "refund"].flatMap((kind) => common.map((reason) => `${kind}: ${reason}`)),
        "cancel: paid_after_end",
        "capture: paid_after_end",
        "refund: provider_key_spent",
      ].sort(),
    );
  });

  it("goes on beside the asking: the attempt waits and nothing has ended", () => {
    expect(
      faults(EFFECT_CASES, ({ change }) => change.review !== null && change.then.type !== "wait"),
    ).toEqual([]);
  });
});
