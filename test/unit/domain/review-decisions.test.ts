import { describe, expect, it } from "vitest";
import { applyChange } from "../../../src/domain/apply-change.js";
import type { ChargeView, Question } from "../../../src/domain/charge-change.js";
import { REVIEW_RESOLUTIONS } from "../../../src/domain/instruction.js";
import type { LookupOutcome, RefundLookupOutcome } from "../../../src/domain/provider.js";
import { endOfReview } from "../../../src/domain/review.js";
import { decideAfterLookup, decideAfterSend, decideFirst } from "../../../src/domain/review-decisions.js";
import {
  ABSENT,
  ASK_FIND,
  ASK_GET,
  at,
  BUDGET_MS,
  CHARGE_ID,
  DECLINED,
  decided,
  END,
  found,
  KEY_LIFETIME_MS,
  MISSING,
  OWN_ACCOUNT,
  object,
  SEND_CONFIRM,
  SEND_FENCE,
  UNKNOWN_ACCOUNT,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";
import { effectView, FIND_REFUND, refundFound, refundMade, SEND_REFUND } from "./effect-fixtures.js";
import {
  ASKED_EFFECT_STATES,
  ASKED_STATES,
  answered,
  answeredSend,
  CHARGE_STATES,
  charge,
  chargeRows,
  effectRows,
  instructed,
  type Row,
  refund,
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
  if (attempt.kind === "refund") return made?.providerRefundId == null ? "find_refund" : "get_refund";
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

describe("the first step with an instruction", () => {
  it.each(REVIEW_RESOLUTIONS.filter((resolution) => resolution !== "dismiss"))(
    "is a question, in every state, and never a send (%s)",
    (resolution) => {
      for (const state of CHARGE_STATES) {
        const view = instructed(viewIn(state), resolution);
        const step = decideFirst(view, OWN_ACCOUNT, false);
        const then = "type" in step ? step : step.then;
        expect(then, state).toEqual(view.attempt.providerPaymentId === null ? ASK_FIND : ASK_GET);
        if (!("type" in step)) applyChange(view, step);
      }
      for (const state of ["started", "sending", "send_unknown"] as const) {
        const view = instructed(refund(state), resolution);
        const step = decideFirst(view, OWN_ACCOUNT, false);
        expect("type" in step ? step : step.then, state).toEqual(FIND_REFUND);
      }
    },
  );

  it("is a question where the claim has marked a send: nothing of it went out", () => {
    const view = instructed(viewIn("creating"), "cancel_at_provider");
    const step = decideFirst(view, OWN_ACCOUNT, true);
    if ("type" in step) throw new Error("a step without a change");
    expect(applyChange(view, step).attempt).toMatchObject({ state: "started", unresolved: false });
    expect(step.then).toEqual(ASK_FIND);
    const marked = instructed(refund("sending"), "adopt_provider_object");
    const other = decideFirst(marked, OWN_ACCOUNT, true);
    if ("type" in other) throw new Error("a step without a change");
    expect(applyChange(marked, other).attempt.state).toBe("started");
    expect(other.then).toEqual(FIND_REFUND);
  });

  it("waits for the account, with the instruction kept", () => {
    const view = instructed(charge("confirm_unknown"), "adopt_provider_object");
    for (const account of [
      UNKNOWN_ACCOUNT,
      { type: "known", accountId: "acct_other", livemode: false } as const,
    ]) {
      const step = decideFirst(view, account, false);
      if ("type" in step) throw new Error("a step without a change");
      expect(step.then.type).toBe("wait");
      expect(applyChange(view, step).attempt.instruction).not.toBeNull();
    }
  });

  it("asks about the object that the person named, by its id, where the attempt has none", () => {
    const view = instructed(charge("create_unknown"), "adopt_provider_object", "pi_named");
    expect(decideFirst(view, OWN_ACCOUNT, false)).toEqual(ASK_GET);
    expect(
      decideFirst(instructed(charge("creating"), "adopt_provider_object", "pi_named"), OWN_ACCOUNT, false),
    ).toMatchObject({
      attemptEvents: ["OUTCOME_UNKNOWN"],
      then: ASK_GET,
    });
  });
});

describe("dismiss", () => {
  const dismissed = (view: ChargeView) => {
    const step = decideFirst(instructed(view, "dismiss"), OWN_ACCOUNT, false);
    if ("type" in step) throw new Error("a step without a change");
    return decided(instructed(view, "dismiss"), step);
  };

  it("asks nothing and leaves a completed attempt with nothing to do", () => {
    const view = viewIn("completed", {
      payment: { status: "succeeded" },
      attempt: { waitReason: "provider_amount_mismatch" },
    });
    const { change, attempt, then, paymentMoved } = dismissed(view);
    expect(change.instruction).toBe("carried_out");
    expect(attempt).toMatchObject({
      state: "completed",
      waitReason: null,
      unknownSince: null,
      instruction: null,
    });
    expect(then).toEqual(END);
    expect(paymentMoved).toBe(false);
  });

  it("ends the charge's attempt of a payment that was captured", () => {
    const { attempt, then } = dismissed(viewIn("following", { payment: { status: "succeeded" } }));
    expect(attempt.state).toBe("completed");
    expect(then).toEqual(END);
  });

  it("lets an attempt with work left go on with it", () => {
    const held = dismissed(viewIn("following", { payment: { status: "authorized" } }));
    expect(held.change.instruction).toBe("carried_out");
    expect(held.then).toEqual(ASK_GET);
    expect(held.attempt.state).toBe("following");
  });

  it("is given back where the payment has come to wait for a person meanwhile", () => {
    expect(dismissed(charge("completed")).change.instruction).toBe("returned");
    expect(dismissed(refund("completed")).change.instruction).toBe("returned");
    expect(dismissed(effectView("capture", "send_unknown")).change.instruction).toBe("returned");
  });

  it("closes nothing where the step needs a person by itself", () => {
    const view = instructed(viewIn("following", { payment: { status: "authorized" } }), "dismiss");
    const step = decideFirst(view, { type: "known", accountId: "acct_other", livemode: false }, false);
    expect(step).toMatchObject({ review: "provider_account_changed", paymentEvent: "REVIEW" });
    expect("instruction" in step).toBe(false);
  });
});

describe("adopt_provider_object", () => {
  const adopt = (view: ChargeView, name: string | null = null) =>
    instructed(view, "adopt_provider_object", name);

  it.each(["succeeded", "authorized"] as const)(
    "takes money that moved after the end though another payment holds the order id (%s), and for good",
    (status) => {
      const view = adopt(charge("completed", { payment: { holdsOrderId: false, failure: DECLINED } }));
      const taken = answered(view, "get", found(status));
      expect(taken.change.instruction).toBe("carried_out");
      expect(taken.payment).toMatchObject({ status, holdsOrderId: false, failure: null });
      const again = answered(taken.view, "get", found(status));
      expect(again.change.review).toBeNull();
      expect(again.payment.status).toBe(status);
    },
  );

  it("takes less money than was asked for, and the next look finds nothing wrong with it", () => {
    const short = { amountCaptured: 900 };
    const taken = answered(adopt(charge("confirm_unknown")), "get", found("succeeded", short));
    expect(taken.change.instruction).toBe("carried_out");
    expect(taken.payment).toMatchObject({ status: "succeeded", amount: 4200, amountCaptured: 900 });
    expect(taken.then).toEqual(END);
    expect(answered(taken.view, "get", found("succeeded", short)).change.review).toBeNull();
    expect(answered(taken.view, "get", found("succeeded", { amountCaptured: 800 })).change.review).toBe(
      "provider_amount_mismatch",
    );
  });

  it("takes an object whose marker was changed only where the person names it", () => {
    const foreign = found("succeeded", { attemptId: "att_other", tenantId: "ten_other" });
    expect(answered(adopt(charge("confirm_unknown")), "get", foreign).change).toMatchObject({
      instruction: "returned",
      reason: "adopt_provider_object is not possible: provider_object_foreign",
    });
    const named = answered(adopt(charge("confirm_unknown"), CHARGE_ID), "get", foreign);
    expect(named.payment).toMatchObject({ status: "succeeded", amountCaptured: 4200 });
    const otherMode = found("succeeded", { attemptId: "att_other", livemode: true });
    expect(answered(adopt(charge("confirm_unknown"), CHARGE_ID), "get", otherMode).payment.status).toBe(
      "needs_review",
    );
  });

  it.each([
    ["another currency", found("succeeded", { currency: "eur" }), "provider_amount_mismatch"],
    ["an amount that is none of ours", found("succeeded", { amount: null }), "provider_amount_mismatch"],
    ["a hold of another amount", found("authorized", { amount: 900 }), "provider_amount_mismatch"],
    ["an unpaid object of another amount", found("created", { amount: 900 }), "provider_amount_mismatch"],
    ["no object", MISSING, "provider_object_missing"],
  ] as const)("is given back for %s, with what was in its way", (_, outcome, why) => {
    const shown = answered(adopt(charge("confirm_unknown")), "get", outcome);
    expect(shown.change).toMatchObject({
      instruction: "returned",
      reason: `adopt_provider_object is not possible: ${why}`,
    });
    expect(shown.payment.status).toBe("needs_review");
    expect(shown.then.type).toBe("wait");
  });

  it("takes a canceled object of another amount as the end: nothing can charge it any more", () => {
    const ended = answered(adopt(charge("confirm_unknown")), "get", found("canceled", { amount: 900 }));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
      holdsOrderId: false,
    });
  });

  it("commits the object that the person named, where it was made for this attempt", () => {
    const view = adopt(
      charge("create_unknown", { attempt: { waitReason: "provider_key_mismatch" } }),
      "pi_named",
    );
    const taken = answered(view, "get", found("succeeded", { id: "pi_named" }));
    expect(taken.attempt).toMatchObject({ state: "completed", providerPaymentId: "pi_named" });
    expect(taken.payment.status).toBe("succeeded");
  });

  it.each([
    ["no marker", { attemptId: null, tenantId: null }, "provider_object_foreign"],
    ["another attempt's marker", { attemptId: "att_other" }, "provider_object_foreign"],
    ["another tenant's marker", { tenantId: "ten_other" }, "provider_object_foreign"],
    ["another mode", { livemode: true }, "provider_object_foreign"],
    ["another amount", { amount: 900 }, "provider_amount_mismatch"],
    ["another currency", { currency: "eur" }, "provider_amount_mismatch"],
  ] as const)("does not take a named object with %s", (_, patch, why) => {
    const view = adopt(
      charge("create_unknown", { attempt: { waitReason: "provider_key_mismatch" } }),
      "pi_named",
    );
    const shown = answered(view, "get", found("succeeded", { id: "pi_named", ...patch }));
    expect(shown.change.reason).toBe(`adopt_provider_object is not possible: ${why}`);
    expect(shown.attempt).toMatchObject({
      state: "create_unknown",
      providerPaymentId: null,
      instruction: null,
    });
    expect(shown.payment).toMatchObject({ status: "needs_review", amountCaptured: 0 });
  });

  it("is given back where the named object is not there", () => {
    const view = adopt(charge("create_unknown"), "pi_named");
    expect(answered(view, "get", MISSING).change.instruction).toBe("returned");
    expect(answered(view, "get", unanswered("timeout")).attempt.instruction).not.toBeNull();
  });

  it("takes what a capture of another amount took", () => {
    const view = adopt(effectView("capture", "send_unknown"));
    const taken = answered(view, "get", found("succeeded", { amount: 900, amountCaptured: 900 }));
    expect(taken.change.instruction).toBe("carried_out");
    expect(taken.payment).toMatchObject({ status: "succeeded", amountCaptured: 900, openEffect: null });
  });
});

describe("cancel_at_provider", () => {
  const cancel = (view: ChargeView, name: string | null = null) =>
    instructed(view, "cancel_at_provider", name);

  it("sends the fence where the machine alone would confirm again, and ends when it reads canceled", () => {
    const view = cancel(charge("confirm_unknown"));
    const fenced = answered(view, "get", found("created"));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({ state: "fencing", instruction: view.attempt.instruction });
    const sent = answeredSend(fenced.view, "fence", object("canceled"));
    expect(sent.then).toEqual(ASK_GET);
    const ended = answered(sent.view, "get", found("canceled"));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
  });

  it("adopts what was paid before the cancel came", () => {
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created"));
    const refused = answeredSend(fenced.view, "fence", unknown("state_conflict"));
    const paid = answered(refused.view, "get", found("succeeded"));
    expect(endOfReview(refused.view, paid.change)).toBe("fact");
    expect(paid.payment.status).toBe("succeeded");
  });

  it("commits and cancels an object of another amount that only the list knew", () => {
    const fenced = answered(cancel(charge("create_unknown")), "find", found("created", { amount: 900 }));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({ state: "fencing", providerPaymentId: CHARGE_ID });
    const sent = answeredSend(fenced.view, "fence", object("canceled", { amount: 900 }));
    const ended = answered(sent.view, "get", found("canceled", { amount: 900 }));
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment.status).toBe("failed");
  });

  it("releases a hold that came after the end and whose order id is another's", () => {
    const view = cancel(charge("completed", { payment: { holdsOrderId: false, failure: DECLINED } }));
    const fenced = answered(view, "get", found("authorized"));
    expect(fenced.then).toEqual(SEND_FENCE);
    const sent = answeredSend(fenced.view, "fence", object("canceled"));
    expect(answered(sent.view, "get", found("canceled")).change.instruction).toBe("carried_out");
  });

  it("is given back where the cancel was answered and the object stands, so that it is not sent for ever", () => {
    const odd = { amount: 900 };
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created", odd));
    const sent = answeredSend(fenced.view, "fence", object("created", odd));
    const stands = answered(sent.view, "get", found("created", odd));
    expect(stands.change.reason).toBe("cancel_at_provider is not possible: cancel_without_effect");
    expect(stands.then.type).toBe("wait");
  });

  it("is sent again where the cancel itself got no answer", () => {
    const odd = { amount: 900 };
    const fenced = answered(cancel(charge("confirm_unknown")), "get", found("created", odd));
    const lost = answeredSend(fenced.view, "fence", unknown("timeout"));
    expect(lost.then.type).toBe("wait");
    expect(answered(lost.view, "get", found("created", odd)).then).toEqual(SEND_FENCE);
  });

  it("is given back where the object is paid and cannot simply be shown", () => {
    const paid = answered(cancel(charge("confirm_unknown")), "get", found("succeeded", { amount: 900 }));
    expect(paid.change.reason).toBe("cancel_at_provider is not possible: provider_object_succeeded");
    expect(paid.payment.status).toBe("needs_review");
  });

  it("never touches an object with another's marker that the person did not name", () => {
    const foreign = found("created", { attemptId: "att_other" });
    expect(answered(cancel(charge("confirm_unknown")), "get", foreign).change.instruction).toBe("returned");
    expect(answered(cancel(charge("confirm_unknown"), CHARGE_ID), "get", foreign).then).toEqual(SEND_FENCE);
  });

  it("waits for the budget's end where there is nothing to cancel yet, and creates nothing", () => {
    const waits = answered(cancel(charge("create_unknown")), "find", ABSENT);
    expect(waits.then.type).toBe("wait");
    expect(waits.attempt.instruction).not.toBeNull();
    const over = answered({ ...waits.view, now: at(BUDGET_MS) }, "find", ABSENT);
    expect(over.payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
  });
});

describe("mark_not_performed", () => {
  const mark = (view: ChargeView) => instructed(view, "mark_not_performed");
  const mismatch = { waitReason: "provider_key_mismatch" };

  it("of a charge without an object needs a complete list after the key's lifetime", () => {
    const old = charge("create_unknown", { afterMs: KEY_LIFETIME_MS, attempt: mismatch });
    const ended = answered(mark(old), "find", ABSENT);
    expect(ended.change.instruction).toBe("carried_out");
    expect(ended.payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
      holdsOrderId: false,
    });
    const young = charge("create_unknown", { afterMs: KEY_LIFETIME_MS - 1, attempt: mismatch });
    expect(answered(mark(young), "find", ABSENT).change.instruction).toBe("returned");
  });

  it("of a charge with an object needs that to be canceled", () => {
    const fencing = (outcome: LookupOutcome) => answered(mark(charge("fencing")), "get", outcome);
    expect(fencing(found("canceled", { amount: 900 })).change.instruction).toBe("carried_out");
    for (const status of ["created", "authorized", "succeeded", "pending"] as const) {
      const shown = fencing(found(status, { amount: 900 }));
      expect(shown.change.instruction, status).toBe("returned");
      expect(shown.payment.status).toBe("needs_review");
    }
    expect(fencing(MISSING).change.instruction).toBe("returned");
  });

  it("never confirms: it is given back, and the machine goes on after it", () => {
    const shown = answered(mark(charge("confirm_unknown")), "get", found("created"));
    expect(shown.then.type).toBe("wait");
    expect(shown.change.instruction).toBe("returned");
    const alone = answered(charge("confirm_unknown"), "get", found("created"));
    expect(alone.then).toEqual(SEND_CONFIRM);
  });

  it("of a refund needs a complete list after the key's lifetime, and frees its amount and its key", () => {
    const ended = answered(mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS })), "find_refund", ABSENT);
    expect(ended.change).toMatchObject({ instruction: "carried_out", answer: { type: "not_performed" } });
    expect(ended.refund?.status).toBe("failed");
    expect(ended.payment.refundReserved).toBe(0);
    const young = answered(
      mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS - 1 })),
      "find_refund",
      ABSENT,
    );
    expect(young.refund?.status).toBe("needs_review");
    expect(young.change.instruction).toBe("returned");
    expect(young.then.type).toBe("wait");
  });

  it("of a refund that the list has is the provider's to say", () => {
    const view = mark(refund("send_unknown", { afterMs: KEY_LIFETIME_MS }));
    const made = answered(view, "find_refund", refundFound("succeeded"));
    expect(made.refund?.status).toBe("succeeded");
    expect(endOfReview(view, made.change)).toBe("fact");
  });

  it("of a capture ends it where the money is still held, and frees the payment for another", () => {
    const view = mark(effectView("capture", "send_unknown", { afterMs: KEY_LIFETIME_MS }));
    const ended = answered(view, "get", found("authorized"));
    expect(ended.change).toMatchObject({ instruction: "carried_out", answer: { type: "not_performed" } });
    expect(ended.payment).toMatchObject({ status: "authorized", openEffect: null });
    expect(answered(view, "get", MISSING).change.instruction).toBe("returned");
  });
});

describe("retry_same_key", () => {
  const retry = (view: ChargeView) => instructed(view, "retry_same_key");
  const spent = { keySpent: true };

  it("sends a refund with a spent key once more, after a list without it, and never past the key's lifetime", () => {
    const view = retry(refund("send_unknown", { attempt: spent }));
    const sends = answered(view, "find_refund", ABSENT);
    expect(sends.then).toEqual(SEND_REFUND);
    expect(sends.attempt).toMatchObject({
      state: "sending",
      fenceRound: 1,
      instruction: view.attempt.instruction,
    });
    expect(answered(view, "find_refund", unanswered("timeout")).then.type).toBe("wait");
    const old = retry(refund("send_unknown", { attempt: spent, afterMs: KEY_LIFETIME_MS }));
    expect(answered(old, "find_refund", ABSENT).change.instruction).toBe("returned");
  });

  it("closes the review with what the send brought", () => {
    const sends = answered(retry(refund("send_unknown", { attempt: spent })), "find_refund", ABSENT);
    const made = answeredSend(sends.view, "refund", refundMade("succeeded"));
    expect(made.change.instruction).toBe("carried_out");
    expect(made.refund?.status).toBe("succeeded");
  });

  it("has done what it could once it was sent, and stays while nothing could be sent", () => {
    const sends = answered(retry(refund("send_unknown", { attempt: spent })), "find_refund", ABSENT);
    const again = answeredSend(sends.view, "refund", unknown("stored_error", true));
    expect(again.change.reason).toBe("retry_same_key is not possible: stored_error");
    expect(again.attempt.instruction).toBeNull();
    expect(answered(again.view, "find_refund", ABSENT).change.review).toBe("provider_key_spent");
    const refused = answeredSend(sends.view, "refund", {
      type: "not_performed",
      reason: "unreachable",
      retryAfterMs: null,
      evidence: { httpStatus: null, code: null, requestId: null },
    });
    expect(refused.attempt.instruction).not.toBeNull();
  });

  it("of a charge is what the machine sends after the answer, within the budget alone", () => {
    const view = retry(charge("confirm_unknown"));
    const confirms = answered(view, "get", found("created"));
    expect(confirms.then).toEqual(SEND_CONFIRM);
    const paid = answeredSend(confirms.view, "confirm", object("succeeded"));
    expect(paid.change.instruction).toBe("carried_out");
    const lost = decideAfterSend(confirms.view, "confirm", unknown("timeout"));
    expect(lost.instruction).toBe("returned");
    const late = retry(charge("confirm_unknown", { afterMs: BUDGET_MS }));
    expect(answered(late, "get", found("created")).then).toEqual(SEND_FENCE);
  });
});
