import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import type { AttemptEventType } from "../../../src/domain/attempt-machine.js";
import { budgetIsOver } from "../../../src/domain/charge-change.js";
import { type EffectEventType, effectMachine } from "../../../src/domain/effect-machine.js";
import type { Refund } from "../../../src/domain/refund.js";
import { refundMachine } from "../../../src/domain/refund-machine.js";
import { nextAttemptState } from "../../../src/domain/transition.js";
import { KEY_LIFETIME_MS, LONGEST_WAIT_MS } from "./charge-fixtures.js";
import {
  EFFECT_CASES,
  EFFECT_FIRSTS,
  EFFECT_QUESTIONS,
  EFFECT_SENDS,
  type EffectCase,
} from "./effect-cases.js";

const MOST_SHOWN = 12;

const told = ({ kind, view, what, change }: EffectCase) =>
  `${kind} in ${view.attempt.state}, ${view.payment.status}/${view.refund?.status ?? "-"}, ${what}: ` +
  `${change.note?.outcome ?? change.reason} → ${change.then.type}`;
const faults = (cases: readonly EffectCase[], isFault: (one: EffectCase) => boolean) =>
  [...new Set(cases.filter(isFault).map(told))].slice(0, MOST_SHOWN);

const wasCompleted = ({ view }: EffectCase) => view.attempt.state === "completed";
const ends = ({ change }: EffectCase) => change.then.type === "end";
const sendsNext = ({ change }: EffectCase) => change.then.type === "send";

/** The object that an answer shows, where it is this attempt's own. */
function chargeShown({ outcome }: EffectCase) {
  return outcome !== null && "charge" in outcome ? outcome.charge : null;
}
function refundShown({ outcome }: EffectCase) {
  return outcome !== null && "refund" in outcome ? outcome.refund : null;
}

describe("in every state of a capture, cancel or refund, for every answer", () => {
  it("there is a decision, and all machines allow it", () => {
    expect(EFFECT_SENDS.length).toBeGreaterThan(10_000);
    expect(EFFECT_QUESTIONS.length).toBeGreaterThan(10_000);
    expect(EFFECT_FIRSTS.length).toBeGreaterThan(500);
  });

  it("the attempt is completed exactly when nothing is left to do, save where it was and is asked about", () => {
    expect(
      faults(
        EFFECT_CASES,
        (one) => ends(one) !== (one.applied.attempt.state === "completed") && !wasCompleted(one),
      ),
    ).toEqual([]);
    expect(
      faults(EFFECT_CASES, (one) => wasCompleted(one) && one.applied.attempt.state !== "completed"),
    ).toEqual([]);
  });

  it("every end has an answer for the key, and nothing else has one", () => {
    expect(
      faults(EFFECT_CASES, (one) => ends(one) && one.change.answer === undefined && !wasCompleted(one)),
    ).toEqual([]);
    expect(faults(EFFECT_CASES, (one) => !ends(one) && one.change.answer !== undefined)).toEqual([]);
  });

  it("no answer to a send leads straight to another send", () => {
    expect(faults(EFFECT_SENDS, sendsNext)).toEqual([]);
    expect(faults(EFFECT_FIRSTS, sendsNext)).toEqual([]);
  });

  it("a send is recorded as about to happen, for the object and under the account that it was accepted for", () => {
    expect(
      faults(EFFECT_CASES, (one) => {
        const { then } = one.change;
        if (then.type !== "send") return false;
        return then.call !== one.kind || one.applied.attempt.state !== "sending";
      }),
    ).toEqual([]);
  });

  it("nothing is sent of what has ended, or of what the provider has", () => {
    const sends = EFFECT_QUESTIONS.filter(sendsNext);
    expect(sends.length).toBeGreaterThan(50);
    expect(new Set(sends.map(({ view }) => view.attempt.state))).toEqual(
      new Set(["started", "send_unknown"]),
    );
  });

  it("a send whose outcome is unknown is asked about before any other", () => {
    expect(
      faults(EFFECT_SENDS, (one) => {
        const isUnknown = one.outcome?.type === "unknown";
        if (!isUnknown) return false;
        const { attempt } = one.applied;
        // The provider refused it for the object's state: this send is over, and says nothing of an earlier one.
        const refused = one.outcome.reason === "state_conflict" && !one.outcome.keySpent;
        return attempt.state !== "send_unknown" || (!attempt.unresolved && !refused);
      }),
    ).toEqual([]);
  });

  it("a 2xx that shows no effect leaves the outcome unknown, never proven to be without effect", () => {
    expect(
      faults(EFFECT_SENDS, (one) => {
        const shown = one.outcome?.type === "object" || one.outcome?.type === "refund";
        return shown &&
          !ends(one) &&
          one.change.then.type !== "send" &&
          one.applied.attempt.state !== "following"
          ? one.applied.attempt.state !== "send_unknown" || !one.applied.attempt.unresolved
          : false;
      }),
    ).toEqual([]);
  });

  it("a refused send leaves an earlier unknown one unknown", () => {
    expect(
      faults(EFFECT_SENDS, (one) => {
        if (one.outcome?.type !== "not_performed") return false;
        const { attempt } = one.applied;
        const before = one.view.attempt.unresolved;
        return attempt.unresolved !== before || attempt.state !== (before ? "send_unknown" : "started");
      }),
    ).toEqual([]);
  });

  it("an attempt at rest is in a state from which its next claim knows what to do without guessing", () => {
    expect(faults(EFFECT_CASES, (one) => !sendsNext(one) && one.applied.attempt.state === "sending")).toEqual(
      [],
    );
  });

  it("a wait is a whole number of milliseconds, from 1 to 5 minutes", () => {
    expect(
      faults(EFFECT_CASES, ({ change: { then } }) => {
        if (then.type !== "wait") return false;
        return !Number.isInteger(then.ms) || then.ms < 1 || then.ms > LONGEST_WAIT_MS;
      }),
    ).toEqual([]);
  });

  it("both machines have no edge too many: each is taken by some decision, or by the claim", () => {
    const taken = new Set(["effect started ABOUT_TO_SEND"]);
    for (const { kind, view, change } of EFFECT_CASES) {
      let state = view.attempt.state;
      const step = (event: AttemptEventType | EffectEventType) => {
        taken.add(`effect ${state} ${event}`);
        state = nextAttemptState(kind, state, event);
      };
      change.attemptEvents.forEach(step);
      if (change.then.type === "send") step("ABOUT_TO_SEND");
      if (change.refund?.event != null)
        taken.add(`refund ${view.refund?.status ?? ""} ${change.refund.event}`);
    }
    const edges = [effectMachine, refundMachine].flatMap((machine) =>
      Object.entries(machine.states).flatMap(([state, node]) =>
        (node.ownEvents as readonly string[]).map((event) => `${machine.id} ${state} ${event}`),
      ),
    );
    expect(edges.filter((edge) => !taken.has(edge))).toEqual([]);
  });
});

describe("the payment under a capture, cancel or refund", () => {
  it("is never moved out of succeeded", () => {
    expect(
      faults(
        EFFECT_CASES,
        ({ view, applied }) => view.payment.status === "succeeded" && applied.payment.status !== "succeeded",
      ),
    ).toEqual([]);
  });

  it("is free for the next capture or cancel exactly when this one has ended", () => {
    expect(
      faults(EFFECT_CASES, (one) => {
        const { view, applied } = one;
        const expected =
          ends(one) && view.payment.openEffect === view.attempt.id ? null : view.payment.openEffect;
        return applied.payment.openEffect !== expected;
      }),
    ).toEqual([]);
  });

  it("is written exactly when something of it moves, one version up, and the refund likewise", () => {
    const parts = ({ version: _, updatedAt: __, resolution: ___, ...rest }: EffectCase["view"]["payment"]) =>
      JSON.stringify(rest);
    const refundParts = ({ version: _, updatedAt: __, ...rest }: Refund) => JSON.stringify(rest);
    expect(
      faults(EFFECT_CASES, ({ view, applied: { payment, paymentMoved, refund, refundMoved } }) => {
        const step = paymentMoved ? 1 : 0;
        if (payment.version !== view.payment.version + step) return true;
        if (!paymentMoved && parts(payment) !== parts(view.payment)) return true;
        if (refund === null || view.refund === null) return refund !== view.refund || refundMoved;
        const differs = refundParts(refund) !== refundParts(view.refund);
        return refund.version !== view.refund.version + (refundMoved ? 1 : 0) || differs !== refundMoved;
      }),
    ).toEqual([]);
  });

  it("keeps its order id until its object can no longer charge", () => {
    expect(
      faults(EFFECT_CASES, (one) => {
        const { status, holdsOrderId } = one.applied.payment;
        if (holdsOrderId) return false;
        const isClosed = chargeShown(one)?.status === "canceled";
        return !isClosed || (status !== "canceled" && status !== "failed");
      }),
    ).toEqual([]);
  });

  it("shows nothing that can be captured once it is captured or released", () => {
    expect(
      faults(EFFECT_CASES, ({ change, applied: { payment } }) => {
        const released = change.paymentEvent === "SUCCEED" || change.paymentEvent === "CANCEL";
        return released && (payment.amountCapturable !== 0 || payment.authorizedUntil !== null);
      }),
    ).toEqual([]);
  });
});

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
