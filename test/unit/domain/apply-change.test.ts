import { describe, expect, it } from "vitest";
import { applyChange } from "../../../src/domain/apply-change.js";
import type { AttemptState } from "../../../src/domain/attempt.js";
import type { AttemptEventType } from "../../../src/domain/attempt-machine.js";
import { attemptMachine } from "../../../src/domain/attempt-machine.js";
import { type Change, unchanged } from "../../../src/domain/charge-change.js";
import { PAYMENT_STATUSES } from "../../../src/domain/payment.js";
import type { PaymentEventType } from "../../../src/domain/payment-machine.js";
import { paymentMachine } from "../../../src/domain/payment-machine.js";
import { CHARGE_CALLS, EFFECT_CALLS } from "../../../src/domain/provider.js";
import { IllegalTransition } from "../../../src/domain/transition.js";
import { at, attemptIn, DECLINED, NEXT_ACTION, paymentWith, SEND_FENCE, viewIn } from "./charge-fixtures.js";
import { effectView } from "./effect-fixtures.js";

const unmoved: Change = {
  attemptEvents: [],
  attempt: unchanged(attemptIn("charge_created")),
  paymentEvent: null,
  payment: {},
  reason: "test",
  review: null,
  note: null,
  then: { type: "wait", ms: 1 },
};

const eventsOf = (machine: { readonly events: readonly string[] }) =>
  machine.events.filter((event) => event !== "*");
const ownEvents = (
  machine: { readonly states: Record<string, { readonly ownEvents: readonly string[] }> },
  state: string,
) => machine.states[state]?.ownEvents ?? [];
const CHARGE_STATES = Object.keys(attemptMachine.states) as AttemptState[];
const illegalAttemptEdges = CHARGE_STATES.flatMap((state) =>
  eventsOf(attemptMachine)
    .filter((event) => !ownEvents(attemptMachine, state).includes(event))
    .map((event) => ({ state, event: event as AttemptEventType })),
);
const illegalPaymentEdges = PAYMENT_STATUSES.flatMap((status) =>
  eventsOf(paymentMachine)
    .filter((event) => !ownEvents(paymentMachine, status).includes(event))
    .map((event) => ({ status, event: event as PaymentEventType })),
);
const illegalSends = CHARGE_STATES.flatMap((state) =>
  [...CHARGE_CALLS, ...EFFECT_CALLS]
    .filter((call) => {
      const event = `ABOUT_TO_${call.toUpperCase()}`;
      // A further round of a fence stays in `fencing`.
      if (state === "fencing" && call === "fence") return false;
      return !ownEvents(attemptMachine, state).includes(event);
    })
    .map((call) => ({ state, call })),
);

describe("a change that a machine has no edge for", () => {
  it.each(illegalAttemptEdges)("throws: $event of an attempt in $state", ({ state, event }) => {
    const change = { ...unmoved, attemptEvents: [event] };
    expect(() => applyChange(viewIn(state), change)).toThrow(IllegalTransition);
  });

  it.each(illegalPaymentEdges)("throws: $event of a payment that is $status", ({ status, event }) => {
    const view = viewIn("confirm_unknown", { payment: { status } });
    expect(() => applyChange(view, { ...unmoved, paymentEvent: event })).toThrow(IllegalTransition);
  });

  it.each(illegalSends)("throws: a $call about to be sent in $state", ({ state, call }) => {
    const change: Change = { ...unmoved, then: { type: "send", call } };
    expect(() => applyChange(viewIn(state), change)).toThrow(IllegalTransition);
  });
});

describe("a change that is applied", () => {
  it("takes the attempt along all its edges, and then into the send", () => {
    const change: Change = {
      ...unmoved,
      attemptEvents: ["OBJECT_KNOWN"],
      then: { type: "send", call: "confirm" },
    };
    expect(applyChange(viewIn("create_unknown"), change).attempt.state).toBe("confirming");
  });

  it("leaves the payment's row alone where neither its status nor its order id moves", () => {
    const view = viewIn("confirm_unknown");
    const { payment, paymentMoved } = applyChange(view, { ...unmoved, payment: { nextAction: NEXT_ACTION } });
    expect(paymentMoved).toBe(false);
    expect(payment).toEqual(
      view.payment.providerPaymentId === null
        ? { ...view.payment, providerPaymentId: "pi_own" }
        : view.payment,
    );
  });

  it("keeps the time of each call's first send, and sets it once", () => {
    const view = viewIn("charge_created", { afterMs: 7_000 });
    const sendConfirm: Change = { ...unmoved, then: { type: "send", call: "confirm" } };
    const first = applyChange(view, sendConfirm).attempt;
    expect(first.confirmFirstSentAt).toEqual(at(7_000));
    const again = applyChange(
      { ...view, attempt: { ...first, state: "confirm_unknown" }, now: at(9_000) },
      sendConfirm,
    );
    expect(again.attempt.confirmFirstSentAt).toEqual(at(7_000));
    expect(again.attempt.fenceFirstSentAt).toBeNull();
    expect(applyChange(view, { ...unmoved, then: SEND_FENCE }).attempt.fenceFirstSentAt).toEqual(at(7_000));
    const create = applyChange(viewIn("started", { afterMs: 3_000 }), {
      ...unmoved,
      then: { type: "send", call: "create" },
    });
    expect(create.attempt.createFirstSentAt).toEqual(at(3_000));
  });

  it.each(EFFECT_CALLS)("keeps the time of a %s's first send, of no other step, and sets it once", (call) => {
    const view = effectView(call, "started", { afterMs: 5_000 });
    const send: Change = { ...unmoved, then: { type: "send", call } };
    const first = applyChange(view, send).attempt;
    expect(first).toMatchObject({ state: "sending", effectFirstSentAt: at(5_000), createFirstSentAt: null });
    const unknown = { ...view, attempt: { ...first, state: "send_unknown" as const }, now: at(9_000) };
    expect(applyChange(unknown, send).attempt.effectFirstSentAt).toEqual(at(5_000));
    expect(applyChange(view, unmoved).attempt.effectFirstSentAt).toBeNull();
    expect(
      applyChange(viewIn("charge_created"), { ...unmoved, then: SEND_FENCE }).attempt.effectFirstSentAt,
    ).toBeNull();
  });

  it("never replaces an object id that is committed", () => {
    const change: Change = { ...unmoved, attempt: { ...unmoved.attempt, providerPaymentId: "pi_other" } };
    const { attempt, payment } = applyChange(viewIn("confirm_unknown"), change);
    expect(attempt.providerPaymentId).toBe("pi_own");
    expect(payment.providerPaymentId).toBe("pi_own");
  });

  it("records a fence that is about to be sent as one that must be asked about", () => {
    expect(applyChange(viewIn("charge_created"), { ...unmoved, then: SEND_FENCE }).attempt.unresolved).toBe(
      true,
    );
  });

  it("clears the failure of a payment whose money moved after all, and keeps it in every other case", () => {
    const payment = { status: "failed", failure: DECLINED } as const;
    const view = viewIn("fencing", { payment });
    expect(applyChange(view, { ...unmoved, paymentEvent: "SUCCEED" }).payment.failure).toBeNull();
    expect(applyChange(view, { ...unmoved, paymentEvent: "AUTHORIZE" }).payment.failure).toBeNull();
    expect(applyChange(view, { ...unmoved, paymentEvent: "REVIEW" }).payment.failure).toEqual(DECLINED);
    expect(applyChange(view, { ...unmoved, payment: { releaseOrderId: true } }).payment.failure).toEqual(
      DECLINED,
    );
  });

  it("writes amounts, what the customer must do and the time of the change", () => {
    const view = viewIn("confirming", {
      afterMs: 4_000,
      payment: { nextAction: NEXT_ACTION, amountCapturable: 1 },
    });
    const still = applyChange(view, { ...unmoved, paymentEvent: "REVIEW" }).payment;
    expect(still).toMatchObject({
      nextAction: NEXT_ACTION,
      amountCapturable: 1,
      amountCaptured: 0,
      updatedAt: at(4_000),
    });
    const change: Change = {
      ...unmoved,
      paymentEvent: "SUCCEED",
      payment: { nextAction: null, amountCapturable: 0, amountCaptured: 4200 },
    };
    expect(applyChange(view, change).payment).toMatchObject({
      nextAction: null,
      amountCapturable: 0,
      amountCaptured: 4200,
    });
  });

  it("frees an order id once: the second time there is nothing to write", () => {
    const release: Change = { ...unmoved, payment: { releaseOrderId: true } };
    const held = applyChange(viewIn("fencing", { payment: { status: "failed" } }), release);
    expect(held).toMatchObject({
      paymentMoved: true,
      payment: { holdsOrderId: false, version: 2, status: "failed" },
    });
    const view = { ...viewIn("fencing"), payment: paymentWith({ ...held.payment }) };
    expect(applyChange(view, release)).toMatchObject({ paymentMoved: false, payment: { version: 2 } });
  });
});
