import { describe, expect, it } from "vitest";
import type { AttemptEventType } from "../../../src/domain/attempt-machine.js";
import { type EffectEventType, effectMachine } from "../../../src/domain/effect-machine.js";
import type { Refund } from "../../../src/domain/refund.js";
import { refundMachine } from "../../../src/domain/refund-machine.js";
import { nextAttemptState } from "../../../src/domain/transition.js";
import { LONGEST_WAIT_MS } from "./charge-fixtures.js";
import {
  chargeShown,
  EFFECT_CASES,
  EFFECT_FIRSTS,
  EFFECT_QUESTIONS,
  EFFECT_SENDS,
  type EffectCase,
  ends,
  faults,
  sendsNext,
  wasCompleted,
} from "./effect-cases.js";

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
      const refundEvent = change.refund?.event ?? null;
      if (refundEvent !== null) taken.add(`refund ${view.refund?.status ?? ""} ${refundEvent}`);
    }
    const edges = [effectMachine, refundMachine].flatMap(({ id, states }) =>
      Object.entries<{ readonly ownEvents: readonly string[] }>(states).flatMap(([state, { ownEvents }]) =>
        ownEvents.map((event) => `${id} ${state} ${event}`),
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
