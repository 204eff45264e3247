import { describe, expect, it } from "vitest";
import { ATTEMPT_STATES, type AttemptState } from "../../../src/domain/attempt.js";
import { type AttemptEventType, attemptMachine } from "../../../src/domain/attempt-machine.js";
import { type EffectEventType, effectMachine } from "../../../src/domain/effect-machine.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import { type PaymentEventType, paymentMachine } from "../../../src/domain/payment-machine.js";
import { EFFECT_CALLS } from "../../../src/domain/provider.js";
import { REFUND_STATUSES, type RefundStatus } from "../../../src/domain/refund.js";
import { type RefundEventType, refundMachine } from "../../../src/domain/refund-machine.js";
import {
  canPayment,
  canRefund,
  IllegalTransition,
  nextAttemptState,
  nextPaymentStatus,
  nextRefundStatus,
  recoveryPointOf,
} from "../../../src/domain/transition.js";
import { attemptState, paymentStatus } from "../../../src/store/schema.js";
import { refundStatus } from "../../../src/store/schema-refunds.js";

type Edges<State extends string, Event extends string> = Record<State, Partial<Record<Event, State>>>;

/** What moves a payment, and where to. A changed edge is a change of the contract, and of this table. */
const PAYMENT_EDGES: Edges<PaymentStatus, PaymentEventType> = {
  processing: {
    SUCCEED: "succeeded",
    AUTHORIZE: "authorized",
    REQUIRE_ACTION: "requires_action",
    DECLINE: "failed",
    REJECT: "failed",
    NOT_PERFORMED: "failed",
    CANCEL: "canceled",
    REVIEW: "needs_review",
  },
  requires_action: {
    SUCCEED: "succeeded",
    AUTHORIZE: "authorized",
    PEND: "processing",
    DECLINE: "failed",
    CANCEL: "canceled",
    REVIEW: "needs_review",
  },
  needs_review: {
    SUCCEED: "succeeded",
    AUTHORIZE: "authorized",
    REQUIRE_ACTION: "requires_action",
    PEND: "processing",
    DECLINE: "failed",
    REJECT: "failed",
    NOT_PERFORMED: "failed",
    CANCEL: "canceled",
  },
  authorized: { SUCCEED: "succeeded", CANCEL: "canceled", REVIEW: "needs_review" },
  succeeded: {},
  failed: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" },
  canceled: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" },
};

type ChargeState = Exclude<AttemptState, "sending" | "send_unknown">;
type EffectState = "started" | "sending" | "send_unknown" | "following" | "completed";

const CHARGE_EDGES: Edges<ChargeState, AttemptEventType> = {
  started: { ABOUT_TO_CREATE: "creating", OBJECT_KNOWN: "charge_created", END: "completed" },
  creating: {
    REFUSED_UNEXECUTED: "started",
    OUTCOME_UNKNOWN: "create_unknown",
    OBJECT_KNOWN: "charge_created",
    END: "completed",
  },
  create_unknown: { ABOUT_TO_CREATE: "creating", OBJECT_KNOWN: "charge_created", END: "completed" },
  charge_created: {
    ABOUT_TO_CONFIRM: "confirming",
    ABOUT_TO_FENCE: "fencing",
    FOLLOW: "following",
    END: "completed",
  },
  confirming: {
    REFUSED_UNEXECUTED: "charge_created",
    OUTCOME_UNKNOWN: "confirm_unknown",
    ABOUT_TO_FENCE: "fencing",
    FOLLOW: "following",
    END: "completed",
  },
  confirm_unknown: {
    ABOUT_TO_CONFIRM: "confirming",
    ABOUT_TO_FENCE: "fencing",
    FOLLOW: "following",
    END: "completed",
  },
  following: { ABOUT_TO_FENCE: "fencing", END: "completed" },
  fencing: { FOLLOW: "following", END: "completed" },
  completed: { ABOUT_TO_FENCE: "fencing", FOLLOW: "following", END: "completed" },
};

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
const PAYMENT_EVENTS = Object.keys({
  SUCCEED: true,
  AUTHORIZE: true,
  PEND: true,
  REQUIRE_ACTION: true,
  DECLINE: true,
  REJECT: true,
  CANCEL: true,
  NOT_PERFORMED: true,
  REVIEW: true,
} satisfies Record<PaymentEventType, true>) as PaymentEventType[];
const CHARGE_EVENTS = Object.keys({
  ABOUT_TO_CREATE: true,
  ABOUT_TO_CONFIRM: true,
  ABOUT_TO_FENCE: true,
  REFUSED_UNEXECUTED: true,
  OUTCOME_UNKNOWN: true,
  OBJECT_KNOWN: true,
  FOLLOW: true,
  END: true,
} satisfies Record<AttemptEventType, true>) as AttemptEventType[];
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

/** All pairs of a machine's states and events, with the target that the table has for it, or null. */
function pairs<State extends string, Event extends string>(
  states: readonly string[],
  events: readonly Event[],
  edges: Edges<State, Event>,
): { from: State; event: Event; to: State | null }[] {
  return states.flatMap((from) =>
    events.map((event) => ({ from: from as State, event, to: edges[from as State][event] ?? null })),
  );
}

const paymentPairs = pairs(Object.keys(paymentMachine.states), PAYMENT_EVENTS, PAYMENT_EDGES);
const chargePairs = pairs(Object.keys(attemptMachine.states), CHARGE_EVENTS, CHARGE_EDGES);
const effectPairs = pairs(Object.keys(effectMachine.states), EFFECT_EVENTS, EFFECT_EDGES);
const refundPairs = pairs(Object.keys(refundMachine.states), REFUND_EVENTS, REFUND_EDGES);

/** The events that the machine itself knows in a state: the walk above must not miss one. */
function ownEvents(
  machine: { states: Record<string, { ownEvents: readonly string[] }> },
  state: string,
): string[] {
  return [...(machine.states[state]?.ownEvents ?? [])].sort();
}

describe("the payment machine", () => {
  it.each(paymentPairs.filter(({ to }) => to !== null))(
    "goes from $from by $event to $to",
    ({ from, event, to }) => {
      expect(canPayment(from, event)).toBe(true);
      expect(nextPaymentStatus(from, event)).toBe(to);
      expect(nextPaymentStatus(from, event)).toBe(to);
    },
  );

  it.each(paymentPairs.filter(({ to }) => to === null))("refuses $event in $from", ({ from, event }) => {
    expect(canPayment(from, event)).toBe(false);
    expect(() => nextPaymentStatus(from, event)).toThrow(IllegalTransition);
    expect(() => nextPaymentStatus(from, event)).toThrow(`payment: no ${event} in ${from}`);
  });

  it.each(Object.keys(paymentMachine.states))("knows no event in %s that this table lacks", (state) => {
    expect(ownEvents(paymentMachine, state)).toEqual(
      Object.keys(PAYMENT_EDGES[state as PaymentStatus]).sort(),
    );
  });

  it("leaves failed and canceled by a fact that money moved alone, and succeeded by nothing", () => {
    const commands: PaymentEventType[] = [
      "PEND",
      "REQUIRE_ACTION",
      "DECLINE",
      "REJECT",
      "CANCEL",
      "NOT_PERFORMED",
    ];
    for (const ended of ["failed", "canceled", "succeeded"] as const) {
      expect(commands.filter((event) => canPayment(ended, event))).toEqual([]);
    }
    expect(PAYMENT_EVENTS.filter((event) => canPayment("succeeded", event))).toEqual([]);
  });

  it("leaves authorized for the capture, the release or a person alone: what is held becomes no question again", () => {
    expect(PAYMENT_EVENTS.filter((event) => canPayment("authorized", event))).toEqual([
      "SUCCEED",
      "CANCEL",
      "REVIEW",
    ]);
  });

  it("has the statuses of the type and of the database's enum, and begins in the one that an accept writes", () => {
    const states = Object.keys(paymentMachine.states).sort();
    expect(states).toEqual([...PAYMENT_STATUSES].sort());
    expect(states).toEqual([...paymentStatus.enumValues].sort());
    expect(paymentMachine.config.initial).toBe("processing");
  });
});

describe("the charge attempt's machine", () => {
  it.each(chargePairs.filter(({ to }) => to !== null))(
    "goes from $from by $event to $to",
    ({ from, event, to }) => {
      expect(nextAttemptState("charge", from, event)).toBe(to);
      expect(nextAttemptState("charge", from, event)).toBe(to);
    },
  );

  it.each(chargePairs.filter(({ to }) => to === null))("refuses $event in $from", ({ from, event }) => {
    expect(() => nextAttemptState("charge", from, event)).toThrow(IllegalTransition);
    expect(() => nextAttemptState("charge", from, event)).toThrow(`attempt: no ${event} in ${from}`);
  });

  it.each(Object.keys(attemptMachine.states))("knows no event in %s that this table lacks", (state) => {
    expect(ownEvents(attemptMachine, state)).toEqual(Object.keys(CHARGE_EDGES[state as ChargeState]).sort());
  });

  it("comes to a recovery point, and goes back to an earlier one only to look at a completed attempt again", () => {
    const order = ["started", "charge_created", "completed"];
    const back = chargePairs.filter(({ from, to }) => {
      if (to === null) return false;
      return order.indexOf(recoveryPointOf("charge", to)) < order.indexOf(recoveryPointOf("charge", from));
    });
    expect(back.map(({ from, event }) => `${from} ${event}`)).toEqual([
      "completed ABOUT_TO_FENCE",
      "completed FOLLOW",
    ]);
    const points = Object.keys(attemptMachine.states) as ChargeState[];
    expect(points.map((state) => [state, recoveryPointOf("charge", state)])).toEqual([
      ["started", "started"],
      ["creating", "started"],
      ["create_unknown", "started"],
      ["charge_created", "charge_created"],
      ["confirming", "charge_created"],
      ["confirm_unknown", "charge_created"],
      ["following", "charge_created"],
      ["fencing", "charge_created"],
      ["completed", "completed"],
    ]);
  });

  it("can send no call that may already be under way without an answer in between", () => {
    expect(
      chargePairs.find(({ from, event }) => from === "creating" && event === "ABOUT_TO_CREATE")?.to,
    ).toBeNull();
    expect(
      chargePairs.find(({ from, event }) => from === "confirming" && event === "ABOUT_TO_CONFIRM")?.to,
    ).toBeNull();
  });

  it("never creates or confirms again once the attempt is completed or followed", () => {
    for (const state of ["completed", "following", "fencing"] as const) {
      expect(Object.keys(CHARGE_EDGES[state])).not.toContain("ABOUT_TO_CREATE");
      expect(Object.keys(CHARGE_EDGES[state])).not.toContain("ABOUT_TO_CONFIRM");
    }
  });
});

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

describe("the attempts' machines", () => {
  it("have together the states of the type and of the database's enum, and begin in the one that an accept writes", () => {
    const states = [...new Set([attemptMachine, effectMachine].flatMap(({ states }) => Object.keys(states)))];
    expect(states.sort()).toEqual([...ATTEMPT_STATES].sort());
    expect(states.sort()).toEqual([...attemptState.enumValues].sort());
    expect(attemptMachine.config.initial).toBe("started");
    expect(effectMachine.config.initial).toBe("started");
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

describe("a state that no machine has", () => {
  it("is an error and not a silent stay", () => {
    expect(() => nextAttemptState("charge", "lost" as AttemptState, "END")).toThrow();
    expect(() => nextAttemptState("refund", "lost" as AttemptState, "END")).toThrow();
    expect(() => nextPaymentStatus("lost" as PaymentStatus, "SUCCEED")).toThrow();
    expect(() => nextRefundStatus("lost" as RefundStatus, "SUCCEED")).toThrow();
    expect(() => recoveryPointOf("charge", "lost" as AttemptState)).toThrow("lost");
  });

  it("is also one of the other kind: a charge is never sending, an effect never confirming", () => {
    expect(() => nextAttemptState("charge", "sending", "END")).toThrow();
    expect(() => nextAttemptState("capture", "confirming", "END")).toThrow();
    expect(() => recoveryPointOf("charge", "send_unknown")).toThrow("send_unknown");
    expect(() => recoveryPointOf("cancel", "fencing")).toThrow("fencing");
  });
});
