import { describe, expect, it } from "vitest";
import { type EffectEventType, effectMachine } from "../../../src/domain/effect-machine.js";
import { EFFECT_CALLS } from "../../../src/domain/provider.js";
import { REFUND_STATUSES, type RefundStatus } from "../../../src/domain/refund.js";
import { type RefundEventType, refundMachine } from "../../../src/domain/refund-machine.js";
import {
  canRefund,
  IllegalTransition,
  nextAttemptState,
  nextRefundStatus,
  recoveryPointOf,
} from "../../../src/domain/transition.js";
import { refundStatus } from "../../../src/store/schema-refunds.js";
import { type Edges, ownEvents, pairs } from "./edge-tables.js";
import type { EffectState } from "./effect-fixtures.js";

/** What moves the attempt of a capture, cancel or refund. A changed edge is a change of the contract, and of this table. */
const EFFECT_EDGES: Edges<EffectState, EffectEventType> = {
  started: { ABOUT_TO_SEND: "sending", FOLLOW: "following", END: "completed" },
  sending: {
    REFUSED_UNEXECUTED: "started",
    OUTCOME_UNKNOWN: "send_unknown",
    FOLLOW: "following",
    END: "completed",
  },
  send_unknown: { ABOUT_TO_SEND: "sending", FOLLOW: "following", END: "completed" },
  following: { END: "completed" },
  completed: { END: "completed" },
};

const REFUND_EDGES: Edges<RefundStatus, RefundEventType> = {
  processing: { SUCCEED: "succeeded", FAIL: "failed", REVIEW: "needs_review" },
  needs_review: { SUCCEED: "succeeded", FAIL: "failed", PEND: "processing" },
  succeeded: { FAIL: "failed" },
  failed: { SUCCEED: "succeeded" },
};

// Every member is named once, so an event that is added to a type does not compile until it is here.
const EFFECT_EVENTS = Object.keys({
  ABOUT_TO_SEND: true,
  REFUSED_UNEXECUTED: true,
  OUTCOME_UNKNOWN: true,
  FOLLOW: true,
  END: true,
} satisfies Record<EffectEventType, true>) as EffectEventType[];
const REFUND_EVENTS = Object.keys({
  SUCCEED: true,
  FAIL: true,
  PEND: true,
  REVIEW: true,
} satisfies Record<RefundEventType, true>) as RefundEventType[];

const effectPairs = pairs(Object.keys(effectMachine.states), EFFECT_EVENTS, EFFECT_EDGES);
const refundPairs = pairs(Object.keys(refundMachine.states), REFUND_EVENTS, REFUND_EDGES);

describe.each(EFFECT_CALLS)("the machine of a %s", (kind) => {
  it.each(effectPairs.filter(({ to }) => to !== null))(
    "goes from $from by $event to $to",
    ({ from, event, to }) => {
      expect(nextAttemptState(kind, from, event)).toBe(to);
      expect(nextAttemptState(kind, from, event)).toBe(to);
    },
  );

  it.each(effectPairs.filter(({ to }) => to === null))("refuses $event in $from", ({ from, event }) => {
    expect(() => nextAttemptState(kind, from, event)).toThrow(IllegalTransition);
    expect(() => nextAttemptState(kind, from, event)).toThrow(`effect: no ${event} in ${from}`);
  });

  it.each(Object.keys(effectMachine.states))("knows no event in %s that this table lacks", (state) => {
    expect(ownEvents(effectMachine, state)).toEqual(Object.keys(EFFECT_EDGES[state as EffectState]).sort());
  });

  it("has no recovery point between the first and the last, and does not leave the last", () => {
    const states = Object.keys(effectMachine.states) as EffectState[];
    expect(states.filter((state) => recoveryPointOf(kind, state) === "completed")).toEqual(["completed"]);
    expect(states.filter((state) => recoveryPointOf(kind, state) === "charge_created")).toEqual([]);
    expect(Object.values(EFFECT_EDGES.completed)).toEqual(["completed"]);
  });

  it("sends nothing that is under way, that the provider has, or that has ended", () => {
    const sends = effectPairs.filter(({ event, to }) => event === "ABOUT_TO_SEND" && to !== null);
    expect(sends.map(({ from }) => from)).toEqual(["started", "send_unknown"]);
  });
});

describe("the refund machine", () => {
  it.each(refundPairs.filter(({ to }) => to !== null))(
    "goes from $from by $event to $to",
    ({ from, event, to }) => {
      expect(canRefund(from, event)).toBe(true);
      expect(nextRefundStatus(from, event)).toBe(to);
      expect(nextRefundStatus(from, event)).toBe(to);
    },
  );

  it.each(refundPairs.filter(({ to }) => to === null))("refuses $event in $from", ({ from, event }) => {
    expect(canRefund(from, event)).toBe(false);
    expect(() => nextRefundStatus(from, event)).toThrow(IllegalTransition);
    expect(() => nextRefundStatus(from, event)).toThrow(`refund: no ${event} in ${from}`);
  });

  it.each(Object.keys(refundMachine.states))("knows no event in %s that this table lacks", (state) => {
    expect(ownEvents(refundMachine, state)).toEqual(Object.keys(REFUND_EDGES[state as RefundStatus]).sort());
  });

  it("has the statuses of the type and of the database's enum, and begins in the one that an accept writes", () => {
    const states = Object.keys(refundMachine.states).sort();
    expect(states).toEqual([...REFUND_STATUSES].sort());
    expect(states).toEqual([...refundStatus.enumValues].sort());
    expect(refundMachine.config.initial).toBe("processing");
  });
});
