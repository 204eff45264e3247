import { describe, expect, it } from "vitest";
import { ATTEMPT_STATES, type AttemptState } from "../../../src/domain/attempt.js";
import { type AttemptEventType, attemptMachine } from "../../../src/domain/attempt-machine.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import { type PaymentEventType, paymentMachine } from "../../../src/domain/payment-machine.js";
import {
  canPayment,
  IllegalTransition,
  nextAttemptState,
  nextPaymentStatus,
  recoveryPointOf,
} from "../../../src/domain/transition.js";
import { attemptState, paymentStatus } from "../../../src/store/schema.js";

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
  authorized: {},
  succeeded: {},
  failed: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" },
  canceled: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" },
};

const ATTEMPT_EDGES: Edges<AttemptState, AttemptEventType> = {
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
  completed: {},
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
const ATTEMPT_EVENTS = Object.keys({
  ABOUT_TO_CREATE: true,
  ABOUT_TO_CONFIRM: true,
  ABOUT_TO_FENCE: true,
  REFUSED_UNEXECUTED: true,
  OUTCOME_UNKNOWN: true,
  OBJECT_KNOWN: true,
  FOLLOW: true,
  END: true,
} satisfies Record<AttemptEventType, true>) as AttemptEventType[];

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
const attemptPairs = pairs(Object.keys(attemptMachine.states), ATTEMPT_EVENTS, ATTEMPT_EDGES);

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

  it("leaves failed and canceled by a fact that money moved alone, and succeeded and authorized by nothing", () => {
    const commands: PaymentEventType[] = [
      "PEND",
      "REQUIRE_ACTION",
      "DECLINE",
      "REJECT",
      "CANCEL",
      "NOT_PERFORMED",
    ];
    for (const ended of ["failed", "canceled", "succeeded", "authorized"] as const) {
      expect(commands.filter((event) => canPayment(ended, event))).toEqual([]);
    }
  });

  it("has the statuses of the type and of the database's enum, and begins in the one that an accept writes", () => {
    const states = Object.keys(paymentMachine.states).sort();
    expect(states).toEqual([...PAYMENT_STATUSES].sort());
    expect(states).toEqual([...paymentStatus.enumValues].sort());
    expect(paymentMachine.config.initial).toBe("processing");
  });
});

describe("the attempt machine", () => {
  it.each(attemptPairs.filter(({ to }) => to !== null))(
    "goes from $from by $event to $to",
    ({ from, event, to }) => {
      expect(nextAttemptState(from, event)).toBe(to);
      expect(nextAttemptState(from, event)).toBe(to);
    },
  );

  it.each(attemptPairs.filter(({ to }) => to === null))("refuses $event in $from", ({ from, event }) => {
    expect(() => nextAttemptState(from, event)).toThrow(IllegalTransition);
    expect(() => nextAttemptState(from, event)).toThrow(`attempt: no ${event} in ${from}`);
  });

  it.each(Object.keys(attemptMachine.states))("knows no event in %s that this table lacks", (state) => {
    expect(ownEvents(attemptMachine, state)).toEqual(
      Object.keys(ATTEMPT_EDGES[state as AttemptState]).sort(),
    );
  });

  it("has the states of the type and of the database's enum, and begins in the one that an accept writes", () => {
    const states = Object.keys(attemptMachine.states).sort();
    expect(states).toEqual([...ATTEMPT_STATES].sort());
    expect(states).toEqual([...attemptState.enumValues].sort());
    expect(attemptMachine.config.initial).toBe("started");
  });

  it("comes to a recovery point and never goes back to an earlier one", () => {
    const order = ["started", "charge_created", "completed"];
    for (const { from, to } of attemptPairs) {
      if (to === null) continue;
      expect(order.indexOf(recoveryPointOf(to))).toBeGreaterThanOrEqual(order.indexOf(recoveryPointOf(from)));
    }
    expect(ATTEMPT_STATES.map((state) => [state, recoveryPointOf(state)])).toEqual([
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
      attemptPairs.find(({ from, event }) => from === "creating" && event === "ABOUT_TO_CREATE")?.to,
    ).toBeNull();
    expect(
      attemptPairs.find(({ from, event }) => from === "confirming" && event === "ABOUT_TO_CONFIRM")?.to,
    ).toBeNull();
  });
});

describe("a state that no machine has", () => {
  it("is an error and not a silent stay", () => {
    expect(() => nextAttemptState("lost" as AttemptState, "END")).toThrow();
    expect(() => nextPaymentStatus("lost" as PaymentStatus, "SUCCEED")).toThrow();
    expect(() => recoveryPointOf("lost" as AttemptState)).toThrow("lost");
  });
});
