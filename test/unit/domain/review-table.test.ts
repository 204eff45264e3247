import { describe, expect, it } from "vitest";
import type { ChargeView, Question } from "../../../src/domain/charge-change.js";
import type { LookupOutcome, RefundLookupOutcome } from "../../../src/domain/provider.js";
import { endOfReview } from "../../../src/domain/review.js";
import { decideAfterLookup } from "../../../src/domain/review-decisions.js";
import { ABSENT, BUDGET_MS, found, KEY_LIFETIME_MS, MISSING, unanswered } from "./charge-fixtures.js";
import { refundFound } from "./effect-fixtures.js";
import {
  ASKED_EFFECT_STATES,
  ASKED_STATES,
  answered,
  chargeRows,
  effectRows,
  type Row,
} from "./review-scenes.js";

const AGES = [1_000, BUDGET_MS, KEY_LIFETIME_MS];
const STATUSES = [
  "created",
  "pending",
  "requires_action",
  "authorized",
  "succeeded",
  "declined",
  "canceled",
  "unrecognized",
] as const;
const PATCHES = [
  {},
  { amount: 900, amountCaptured: 900 },
  { amount: null },
  { currency: "eur" },
  { attemptId: "att_other" },
  { tenantId: "ten_other" },
  { livemode: true },
];
const CHARGES: readonly LookupOutcome[] = STATUSES.flatMap((status) =>
  PATCHES.map((patch) => found(status, patch)),
);
const NOWHERE: readonly LookupOutcome[] = [
  ABSENT,
  MISSING,
  unanswered("timeout"),
  unanswered("unauthorized"),
];
const REFUNDS: readonly RefundLookupOutcome[] = [
  ...(["pending", "succeeded", "failed", "unrecognized"] as const).flatMap((status) => [
    refundFound(status),
    refundFound(status, { amount: 900 }),
    refundFound(status, { attemptId: "att_other" }),
  ]),
  ABSENT,
  MISSING,
  unanswered("server_error"),
];

/** The question that such an attempt is asked about with. */
function questionFor({ attempt, refund: made }: ChargeView): Question {
  if (attempt.kind === "refund")
    return (made?.providerRefundId ?? null) === null ? "find_refund" : "get_refund";
  return attempt.providerPaymentId === null ? "find" : "get";
}

function answersTo({ attempt }: ChargeView): readonly (LookupOutcome | RefundLookupOutcome)[] {
  if (attempt.kind === "refund") return REFUNDS;
  return attempt.kind === "charge" ? [...CHARGES, ...NOWHERE] : [...CHARGES, ...NOWHERE.slice(1)];
}

const ROWS: readonly Row[] = [...chargeRows(ASKED_STATES, AGES), ...effectRows(ASKED_EFFECT_STATES, AGES)];

/** Every answer to every row, decided and applied. */
function* everyAnswer(only: (row: Row) => boolean = () => true) {
  for (const row of ROWS.filter(only)) {
    const question = questionFor(row.view);
    for (const outcome of answersTo(row.view)) {
      const { change, attempt, payment, refund: after } = answered(row.view, question, outcome);
      const status = outcome.type === "found" && "charge" in outcome ? outcome.charge.status : null;
      const shown = { ...row, outcome, status, change, attempt, payment, refund: after };
      yield { ...shown, label: `${row.name}: ${JSON.stringify(outcome)}` };
    }
  }
}

describe("whatever a person decided, in any state, and whatever the provider answers", () => {
  it("the change is a legal one, and the instruction goes with the end of the review", () => {
    let seen = 0;
    for (const { view, change, attempt, label } of everyAnswer()) {
      expect(attempt.instruction === null, label).toBe(endOfReview(view, change) !== null);
      seen += 1;
    }
    expect(seen).toBeGreaterThan(10_000);
  });

  it("nothing is given up or carried out while the provider does not answer", () => {
    for (const { view, outcome, change, label } of everyAnswer(
      ({ resolution }) => resolution !== "dismiss",
    )) {
      if (outcome.type !== "unanswered") continue;
      // An attempt that was refused all along may end by its row alone; that is the machine's own end.
      expect(change.instruction, label).toBeUndefined();
      expect(["send", "ask"], label).not.toContain(change.then.type);
      expect(view.attempt.instruction, label).not.toBeNull();
    }
  });

  it("a cancel never confirms, creates, captures or refunds", () => {
    for (const { change, label } of everyAnswer(({ resolution }) => resolution === "cancel_at_provider")) {
      if (change.then.type === "send") expect(change.then.call, label).toBe("fence");
    }
  });

  it("'not performed' comes only from an object that is canceled, or from a list or object after the key's lifetime", () => {
    for (const { view, change, outcome, status, label } of everyAnswer()) {
      const isSaid = change.paymentEvent === "NOT_PERFORMED" || change.answer?.type === "not_performed";
      if (!isSaid || change.instruction !== "carried_out") continue;
      const isOld = view.now.getTime() - view.attempt.createdAt.getTime() >= KEY_LIFETIME_MS;
      if (view.attempt.kind === "charge") {
        expect(status === "canceled" || (outcome.type === "absent" && isOld), label).toBe(true);
      } else {
        expect(isOld, label).toBe(true);
        expect(view.attempt.kind === "refund" ? outcome.type : "absent", label).toBe("absent");
        expect(["succeeded", "canceled", "unrecognized"], label).not.toContain(status);
      }
    }
  });

  it("money is taken only as it is at the provider, in the payment's currency, from an object that is ours", () => {
    for (const { view, outcome, change, payment, label } of everyAnswer()) {
      if (change.instruction !== "carried_out" || payment.amountCaptured === view.payment.amountCaptured)
        continue;
      if (outcome.type !== "found" || !("charge" in outcome)) throw new Error(label);
      const { charge: taken } = outcome;
      expect(payment.amountCaptured, label).toBe(taken.amountCaptured);
      expect(taken, label).toMatchObject({ currency: "usd", livemode: false, status: "succeeded" });
      if (view.attempt.kind === "charge") expect(taken.attemptId, label).toBe(view.attempt.id);
    }
  });

  it("a fact that the machine takes by itself comes first, and closes the review as a fact", () => {
    for (const { view, change, outcome, label, resolution } of everyAnswer()) {
      const alone = { ...view, attempt: { ...view.attempt, instruction: null } };
      const own = decideAfterLookup(alone, questionFor(view), outcome);
      if (endOfReview(alone, own) !== "fact") continue;
      const isOwnCancel = resolution === "cancel_at_provider" && view.attempt.state === "fencing";
      if (isOwnCancel && own.payment.releaseOrderId === true)
        expect(change.instruction, label).toBe("carried_out");
      else expect(change, label).toEqual(own);
    }
  });

  it("an object of other money than was asked for is never confirmed, captured or refunded", () => {
    for (const { outcome, change, label } of everyAnswer()) {
      const odd = outcome.type === "found" && "charge" in outcome && outcome.charge.amount !== 4200;
      if (odd && change.then.type === "send") expect(change.then.call, label).toBe("fence");
    }
  });
});
