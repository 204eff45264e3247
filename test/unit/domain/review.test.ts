import { describe, expect, it } from "vitest";
import { allowedResolutions, endOfReview } from "../../../src/domain/review.js";
import { BUDGET_MS, KEY_LIFETIME_MS, NO_CHANGE, viewIn } from "./charge-fixtures.js";
import { effectView } from "./effect-fixtures.js";
import { CHARGE_STATES, charge, refund } from "./review-scenes.js";

const names = (...given: Parameters<typeof allowedResolutions>) =>
  allowedResolutions(...given).map(({ resolution }) => resolution);

const UNKNOWN = "outcome_unknown";

describe("what a review of a charge takes", () => {
  it.each([
    ["started", [], ["adopt_provider_object", "cancel_at_provider"]],
    ["creating", [], ["adopt_provider_object", "cancel_at_provider"]],
    ["create_unknown", ["retry_same_key"], ["adopt_provider_object", "cancel_at_provider"]],
    ["charge_created", [], ["adopt_provider_object", "cancel_at_provider"]],
    ["confirming", [], ["adopt_provider_object", "cancel_at_provider"]],
    ["confirm_unknown", ["retry_same_key"], ["adopt_provider_object", "cancel_at_provider"]],
    ["following", [], ["adopt_provider_object", "cancel_at_provider"]],
    ["fencing", [], ["adopt_provider_object", "cancel_at_provider", "mark_not_performed"]],
    ["completed", [], ["adopt_provider_object", "cancel_at_provider"]],
  ] as const)("whose payment waits for it, in %s", (state, soonAlone, always) => {
    expect(names(charge(state), UNKNOWN).toSorted()).toEqual([...always, ...soonAlone].toSorted());
    expect(names(charge(state, { afterMs: BUDGET_MS }), UNKNOWN).toSorted()).toEqual([...always].toSorted());
  });

  it.each(["started", "create_unknown"] as const)(
    "without an object is 'not performed' only once its key can make none any more (%s)",
    (state) => {
      const before = names(charge(state, { afterMs: KEY_LIFETIME_MS - 1 }), "provider_key_mismatch");
      expect(before).not.toContain("mark_not_performed");
      const after = names(charge(state, { afterMs: KEY_LIFETIME_MS }), "provider_key_mismatch");
      expect(after).toContain("mark_not_performed");
    },
  );

  it("with an object is never 'not performed' where it was not fenced, however old it is", () => {
    for (const state of ["charge_created", "confirm_unknown", "following"] as const) {
      expect(names(charge(state, { afterMs: 10 * KEY_LIFETIME_MS }), UNKNOWN)).not.toContain(
        "mark_not_performed",
      );
    }
  });

  it("is not dismissed while its payment waits for it", () => {
    for (const state of CHARGE_STATES)
      expect(names(charge(state), "provider_object_foreign")).not.toContain("dismiss");
  });

  it.each(["succeeded", "failed", "canceled"] as const)(
    "is dismissed where it only flags a payment that has ended (%s)",
    (status) => {
      const view = viewIn("completed", { payment: { status } });
      expect(names(view, "provider_object_stray")).toEqual(["dismiss"]);
    },
  );

  it("is dismissed beside work that goes on, where that work would not find the same again", () => {
    const held = viewIn("following", { payment: { status: "authorized" } });
    expect(names(held, "provider_object_stray")).toContain("dismiss");
    const declined = { status: "failed" } as const;
    const found = viewIn("fencing", {
      payment: declined,
      attempt: { waitReason: "provider_object_missing" },
    });
    expect(names(found, "provider_object_missing")).not.toContain("dismiss");
    expect(names(viewIn("fencing", { payment: declined }), UNKNOWN)).not.toContain("dismiss");
  });

  it("is not canceled under a capture or cancel that is in flight", () => {
    const open = charge("following", { payment: { openEffect: "att_other" } });
    expect(names(open, UNKNOWN)).not.toContain("cancel_at_provider");
  });

  it("is not sent again where its key is spent, or past the budget or the key's lifetime", () => {
    expect(names(charge("confirm_unknown"), UNKNOWN)).toContain("retry_same_key");
    for (const scene of [
      { attempt: { keySpent: true } },
      { afterMs: BUDGET_MS },
      { afterMs: 5_000, policy: { keyLifetimeMs: 5_000 } },
    ]) {
      expect(names(charge("confirm_unknown", scene), UNKNOWN)).not.toContain("retry_same_key");
    }
  });
});

describe("what a review of a refund takes", () => {
  it("is a retry while its key guards it, and 'not performed' from then on", () => {
    for (const state of ["started", "sending", "send_unknown"] as const) {
      const guarded = refund(state, {
        afterMs: KEY_LIFETIME_MS - 1,
        attempt: { effectFirstSentAt: new Date(0) },
      });
      expect(names(guarded, UNKNOWN)).toEqual(["adopt_provider_object", "mark_not_performed"]);
      expect(names(refund(state), UNKNOWN)).toEqual(["adopt_provider_object", "retry_same_key"]);
    }
  });

  it("is neither where the provider has given it an id: it was made", () => {
    const made = { refund: { providerRefundId: "re_provider" } };
    for (const afterMs of [1_000, KEY_LIFETIME_MS]) {
      expect(names(refund("following", { ...made, afterMs }), UNKNOWN)).toEqual(["adopt_provider_object"]);
    }
  });

  it("is to be dismissed where the refund has ended", () => {
    expect(names(effectView("refund", "completed", { refund: { status: "succeeded" } }), "flag")).toEqual([
      "dismiss",
    ]);
    expect(names(refund("completed"), "flag")).toEqual([]);
  });
});

describe("what a review of a capture or cancel takes", () => {
  it.each(["capture", "cancel"] as const)("is never a fence, and ends once its key is old (%s)", (kind) => {
    expect(names(effectView(kind, "send_unknown"), UNKNOWN)).toEqual([
      "adopt_provider_object",
      "retry_same_key",
    ]);
    expect(names(effectView(kind, "send_unknown", { afterMs: KEY_LIFETIME_MS }), UNKNOWN)).toEqual([
      "adopt_provider_object",
      "mark_not_performed",
    ]);
    expect(names(effectView(kind, "completed"), UNKNOWN)).toEqual(["dismiss"]);
  });
});

it("says in a sentence what each resolution does", () => {
  for (const { does } of allowedResolutions(charge("fencing"), UNKNOWN)) expect(does).toMatch(/^[A-Z].+\.$/);
});

describe("the end of a review", () => {
  const view = viewIn("confirm_unknown");

  it("is a fact's where a change moves the payment or the refund, or ends the attempt", () => {
    const then = { type: "wait", ms: 1 } as const;
    expect(endOfReview(view, { ...NO_CHANGE, then })).toBeNull();
    expect(endOfReview(view, { ...NO_CHANGE, then, paymentEvent: "SUCCEED" })).toBe("fact");
    expect(endOfReview(view, { ...NO_CHANGE, then, refund: { event: "SUCCEED" } })).toBe("fact");
    expect(endOfReview(view, { ...NO_CHANGE, then, refund: { event: null } })).toBeNull();
    expect(endOfReview(view, NO_CHANGE)).toBe("fact");
  });

  it("is none where a completed attempt is found as it was, or a review opens", () => {
    expect(endOfReview(viewIn("completed"), NO_CHANGE)).toBeNull();
    expect(endOfReview(view, { ...NO_CHANGE, paymentEvent: "REVIEW", review: UNKNOWN })).toBeNull();
  });

  it("is the person's where the instruction is carried out, and none where it is given back", () => {
    expect(endOfReview(view, { ...NO_CHANGE, instruction: "carried_out" })).toBe("person");
    expect(endOfReview(view, { ...NO_CHANGE, instruction: "returned" })).toBe("returned");
  });
});
