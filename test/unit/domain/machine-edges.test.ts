import { describe, expect, it } from "vitest";
import { ATTEMPT_STATES, type AttemptState } from "../../../src/domain/attempt.js";
import { type AttemptEventType, attemptMachine } from "../../../src/domain/attempt-machine.js";
import { effectMachine } from "../../../src/domain/effect-machine.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import { type PaymentEventType, paymentMachine } from "../../../src/domain/payment-machine.js";
import type { RefundStatus } from "../../../src/domain/refund.js";
import {
  canPayment,
  IllegalTransition,
  nextAttemptState,
  nextPaymentStatus,
  nextRefundStatus,
  recoveryPointOf,
} from "../../../src/domain/transition.js";
import { attemptState, paymentStatus } from "../../../src/store/schema.js";
import { type Edges, ownEvents, pairs } from "./edge-tables.js";

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
const paymentPairs = pairs(Object.keys(paymentMachine.states), PAYMENT_EVENTS, PAYMENT_EDGES);
const chargePairs = pairs(Object.keys(attemptMachine.states), CHARGE_EVENTS, CHARGE_EDGES);
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

describe("the attempts' machines", () => {
  it("have together the states of the type and of the database's enum, and begin in the one that an accept writes", () => {
    const states = [...new Set([attemptMachine, effectMachine].flatMap(({ states }) => Object.keys(states)))];
    expect(states.sort()).toEqual([...ATTEMPT_STATES].sort());
    expect(states.sort()).toEqual([...attemptState.enumValues].sort());
    expect(attemptMachine.config.initial).toBe("started");
    expect(effectMachine.config.initial).toBe("started");
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
