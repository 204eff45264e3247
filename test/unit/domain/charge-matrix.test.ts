import { describe, expect, it } from "vitest";
import { type Applied, applyChange } from "../../../src/domain/apply-change.js";
import type { Attempt, AttemptState } from "../../../src/domain/attempt.js";
import type { AttemptEventType } from "../../../src/domain/attempt-machine.js";
import { attemptMachine } from "../../../src/domain/attempt-machine.js";
import { afterLookup, afterSend } from "../../../src/domain/charge-answers.js";
import { budgetIsOver, type Change, type ChargeView } from "../../../src/domain/charge-change.js";
import { type AccountView, firstStep } from "../../../src/domain/charge-steps.js";
import type { EffectEventType } from "../../../src/domain/effect-machine.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import { paymentMachine } from "../../../src/domain/payment-machine.js";
import type { ChargeCall, ProviderCall } from "../../../src/domain/provider.js";
import { nextAttemptState } from "../../../src/domain/transition.js";
import {
  BUDGET_MS,
  HELD_LOOK_MS,
  KEY_LIFETIME_MS,
  LONGEST_WAIT_MS,
  OWN_ACCOUNT,
  REVIEW_AFTER_MS,
  UNKNOWN_ACCOUNT,
  viewIn,
} from "./charge-fixtures.js";
import { LOOKUP_OUTCOMES, SEND_OUTCOMES } from "./charge-outcomes.js";

type ChargeState = Exclude<AttemptState, "sending" | "send_unknown">;

/** The payment's statuses that go with a state of its attempt. From `following` on a capture or cancel moves it too. */
const STATUSES: Record<ChargeState, readonly PaymentStatus[]> = {
  started: ["processing", "needs_review"],
  creating: ["processing", "needs_review"],
  create_unknown: ["processing", "needs_review"],
  charge_created: ["processing", "needs_review"],
  confirming: ["processing", "needs_review"],
  confirm_unknown: ["processing", "needs_review"],
  following: PAYMENT_STATUSES,
  fencing: PAYMENT_STATUSES,
  completed: PAYMENT_STATUSES,
};
const SENDING: Partial<Record<AttemptState, ChargeCall>> = {
  creating: "create",
  confirming: "confirm",
  fencing: "fence",
};
const ASKING: Partial<Record<AttemptState, "find" | "get">> = {
  started: "find",
  create_unknown: "find",
  charge_created: "get",
  confirm_unknown: "get",
  following: "get",
  fencing: "get",
  completed: "get",
};
const ACCOUNTS: readonly AccountView[] = [
  OWN_ACCOUNT,
  UNKNOWN_ACCOUNT,
  { type: "known", accountId: "acct_other", livemode: false },
  { type: "known", accountId: "acct_own", livemode: true },
];
const TIMES_MS = [1_000, BUDGET_MS, KEY_LIFETIME_MS, REVIEW_AFTER_MS + 10_000];

interface Case {
  readonly view: ChargeView;
  readonly what: string;
  readonly change: Change;
}

/** Every view of a state: each status, time and mark that its row can have. */
function viewsIn(state: ChargeState): ChargeView[] {
  const doubts: Partial<Attempt>[] =
    state === "started"
      ? [{}]
      : [{}, { unresolved: true }, { unresolved: true, keySpent: true }, { waits: 7, providerAccount: null }];
  return STATUSES[state].flatMap((status) =>
    TIMES_MS.flatMap((afterMs) =>
      doubts.map((attempt) => viewIn(state, { attempt, payment: { status }, afterMs })),
    ),
  );
}

const views = (Object.keys(STATUSES) as ChargeState[]).flatMap(viewsIn);
const sends: Case[] = views.flatMap((view) => {
  const call = SENDING[view.attempt.state];
  if (call === undefined) return [];
  return SEND_OUTCOMES.map((outcome) => ({ view, what: call, change: afterSend(view, call, outcome) }));
});
const questions: Case[] = views.flatMap((view) => {
  const question = ASKING[view.attempt.state];
  if (question === undefined) return [];
  return LOOKUP_OUTCOMES.map((outcome) => ({
    view,
    what: question,
    change: afterLookup(view, question, outcome),
  }));
});
const firsts: Case[] = views.flatMap((view) =>
  ACCOUNTS.flatMap((account) =>
    [true, false].flatMap((markedNow) => {
      const step = firstStep(view, account, markedNow);
      return "type" in step || view.attempt.state === "completed"
        ? []
        : [{ view, what: "first", change: step }];
    }),
  ),
);
const all = [...sends, ...questions, ...firsts];
const applied = all.map((one): Case & { applied: Applied } => ({
  ...one,
  applied: applyChange(one.view, one.change),
}));

const told = ({ view, what, change }: Case) =>
  `${view.attempt.state} (${view.payment.status}) ${what}: ${change.note?.outcome ?? change.reason}`;
/** A completed attempt that is asked about on its own clock, also where it ended on the word of its row alone. */
const looksAgain = ({ view, change }: Case) =>
  (view.attempt.state === "completed" || change.attempt.unresolved) && change.then.type === "wait";
const faults = <One extends Case>(cases: readonly One[], isFault: (one: One) => boolean) =>
  cases.filter(isFault).map(told);

describe("in every state, for every answer", () => {
  it("there is a decision, and both machines allow it", () => {
    expect(sends.length).toBeGreaterThan(1_000);
    expect(questions.length).toBeGreaterThan(1_000);
    expect(firsts.length).toBeGreaterThan(100);
    expect(applied.length).toBe(all.length);
  });

  it("the attempt is completed exactly when there is nothing left to do, save where it was and is asked about", () => {
    expect(
      faults(
        applied,
        (one) =>
          (one.change.then.type === "end") !== (one.applied.attempt.state === "completed") &&
          !(one.applied.attempt.state === "completed" && looksAgain(one)),
      ),
    ).toEqual([]);
  });

  it("a send is recorded as about to happen, and an object's id is committed before its confirm or fence", () => {
    const expected: Partial<Record<ProviderCall, AttemptState>> = {
      create: "creating",
      confirm: "confirming",
      fence: "fencing",
    };
    expect(
      faults(applied, ({ change: { then }, applied: { attempt } }) => {
        if (then.type !== "send") return false;
        return (
          attempt.state !== expected[then.call] ||
          (then.call !== "create" && attempt.providerPaymentId === null)
        );
      }),
    ).toEqual([]);
  });

  it("no answer to a send leads straight to the same call again", () => {
    expect(faults(sends, ({ what, change: { then } }) => then.type === "send" && then.call === what)).toEqual(
      [],
    );
  });

  it("no create and no confirm goes out past the budget", () => {
    expect(
      faults(
        all,
        ({ view, change: { then } }) => budgetIsOver(view) && then.type === "send" && then.call !== "fence",
      ),
    ).toEqual([]);
  });

  it("no confirm goes out for a payment that has failed", () => {
    expect(
      faults(
        all,
        ({ view, change: { then } }) =>
          view.payment.status === "failed" && then.type === "send" && then.call !== "fence",
      ),
    ).toEqual([]);
  });

  it("an attempt at rest is in a state from which its next claim knows what to do without guessing", () => {
    const atRest = [
      "started",
      "create_unknown",
      "charge_created",
      "confirm_unknown",
      "following",
      "fencing",
      "completed",
    ];
    expect(
      faults(
        applied,
        ({ change: { then }, applied: { attempt } }) =>
          then.type !== "send" && !atRest.includes(attempt.state),
      ),
    ).toEqual([]);
  });

  it("a wait is a whole number of milliseconds, from 1 to 5 minutes, or to 6 hours while an authorisation stands", () => {
    expect(
      faults(applied, ({ change: { then }, applied: { payment, attempt } }) => {
        if (then.type !== "wait") return false;
        const stands = payment.status === "authorized" && attempt.waits === 0;
        const mostMs = stands ? HELD_LOOK_MS : LONGEST_WAIT_MS;
        return !Number.isInteger(then.ms) || then.ms < 1 || then.ms > mostMs;
      }),
    ).toEqual([]);
  });

  it("the order id is freed only at the end, of a payment that has failed or is canceled", () => {
    expect(
      faults(applied, ({ applied: { payment, attempt } }) => {
        if (payment.holdsOrderId) return false;
        return (
          attempt.state !== "completed" || (payment.status !== "failed" && payment.status !== "canceled")
        );
      }),
    ).toEqual([]);
  });

  it("the same key may be retried only where nothing was performed: no object, or one that is canceled", () => {
    expect(
      faults(applied, ({ view, change, applied: { payment } }) => {
        if (view.payment.status === "failed" || payment.failure?.retry !== "same_key") return false;
        const canceled = /object: canceled$|found: canceled$/.test(change.note?.outcome ?? "");
        return change.paymentEvent !== "NOT_PERFORMED" || !(canceled || payment.providerPaymentId === null);
      }),
    ).toEqual([]);
  });

  it("a payment that steps into needs_review has its review, and a review takes along a payment that is processing", () => {
    expect(
      faults(all, ({ view, change }) => {
        const steps = change.paymentEvent === "REVIEW";
        const must = change.review !== null && view.payment.status === "processing";
        return (steps && change.review === null) || (must && !steps);
      }),
    ).toEqual([]);
  });

  it("the payment is written exactly when a machine moved it or its order id was freed, one version up", () => {
    expect(
      faults(applied, ({ view, change, applied: { payment, paymentMoved } }) => {
        const freed = view.payment.holdsOrderId && !payment.holdsOrderId;
        const moved = change.paymentEvent !== null || freed;
        return paymentMoved !== moved || payment.version !== view.payment.version + (moved ? 1 : 0);
      }),
    ).toEqual([]);
  });
});

describe("the machines have no edge too many", () => {
  it("every edge of the attempt machine is taken by some decision, or by the claim", () => {
    const taken = new Set(["started ABOUT_TO_CREATE"]);
    for (const { view, change, applied: result } of applied) {
      let state = view.attempt.state;
      const step = (event: AttemptEventType | EffectEventType) => {
        taken.add(`${state} ${event}`);
        state = nextAttemptState("charge", state, event);
      };
      change.attemptEvents.forEach(step);
      if (change.then.type === "send" && state !== result.attempt.state) {
        step(`ABOUT_TO_${change.then.call.toUpperCase()}` as AttemptEventType);
      }
    }
    const edges = Object.entries(attemptMachine.states).flatMap(([state, node]) =>
      node.ownEvents.map((event) => `${state} ${event}`),
    );
    expect(edges.filter((edge) => !taken.has(edge))).toEqual([]);
  });

  it("every edge of the payment machine is taken by some decision", () => {
    const taken = new Set(
      all.map(({ view, change }) => `${view.payment.status} ${change.paymentEvent ?? ""}`),
    );
    const edges = Object.entries(paymentMachine.states).flatMap(([status, node]) =>
      node.ownEvents.map((event) => `${status} ${event}`),
    );
    expect(edges.filter((edge) => !taken.has(edge))).toEqual([]);
  });
});
