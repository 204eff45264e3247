import { describe, expect, it } from "vitest";
import { applyChange } from "../../../src/domain/apply-change.js";
import type { ChargeView } from "../../../src/domain/charge-change.js";
import { REVIEW_RESOLUTIONS } from "../../../src/domain/instruction.js";
import { decideFirst } from "../../../src/domain/review-decisions.js";
import { ASK_FIND, ASK_GET, decided, END, OWN_ACCOUNT, UNKNOWN_ACCOUNT, viewIn } from "./charge-fixtures.js";
import { effectView, FIND_REFUND } from "./effect-fixtures.js";
import { CHARGE_STATES, charge, instructed, refund } from "./review-scenes.js";

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
