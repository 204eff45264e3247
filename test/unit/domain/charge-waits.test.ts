import { describe, expect, it } from "vitest";
import { providerKey } from "../../../src/domain/attempt.js";
import {
  ABSENT,
  ASK_FIND,
  ASK_GET,
  asked,
  BUDGET_MS,
  CUSTOMER_EXPIRY_MS,
  claimed,
  END,
  found,
  KEY_LIFETIME_MS,
  LONGEST_WAIT_MS,
  later,
  MISSING,
  NEXT_ACTION,
  notPerformed,
  object,
  SEND_CREATE,
  SEND_FENCE,
  sent,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";

const LONG_BUDGET = { policy: { retryBudgetMs: 3_600_000 } };

function waitMsOf(decided: { then: { type: string; ms?: number } }): number {
  expect(decided.then.type).toBe("wait");
  return decided.then.ms ?? Number.NaN;
}

describe("the wait before the next try", () => {
  it("doubles, with jitter on its upper half, up to five minutes", () => {
    const waits = [0, 1, 2, 3, 8, 40].map((before) => {
      const view = viewIn("confirm_unknown", { ...LONG_BUDGET, attempt: { waits: before } });
      return waitMsOf(asked(view, "get", unanswered("timeout")));
    });
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 192_000, 225_000]);
  });

  it.each([
    { random: 0, ms: 500 },
    { random: 0.999, ms: 1_000 },
  ])("is half of its whole or more, and never more than the whole (random $random)", ({ random, ms }) => {
    const view = viewIn("confirm_unknown", { policy: { random: () => random } });
    expect(waitMsOf(asked(view, "get", unanswered("timeout")))).toBe(ms);
  });

  it("is never 0, so that no loop can spin", () => {
    const policy = { retry: { firstMs: 0, mostMs: 0 }, random: () => 0 };
    expect(waitMsOf(asked(viewIn("confirm_unknown", { policy }), "get", unanswered("timeout")))).toBe(1);
  });

  it("is at least the provider's Retry-After, for refused sends, unknown ones and questions", () => {
    const retryAfterMs = 20_000;
    expect(waitMsOf(sent(viewIn("creating"), "create", notPerformed("rate_limited", retryAfterMs)))).toBe(
      20_000,
    );
    expect(
      waitMsOf(sent(viewIn("confirming"), "confirm", unknown("object_locked", false, retryAfterMs))),
    ).toBe(20_000);
    expect(waitMsOf(asked(viewIn("create_unknown"), "find", unanswered("rate_limited", retryAfterMs)))).toBe(
      20_000,
    );
  });

  it("is its own where the Retry-After is shorter", () => {
    const view = viewIn("confirm_unknown", { ...LONG_BUDGET, attempt: { waits: 5 } });
    expect(waitMsOf(asked(view, "get", unanswered("rate_limited", 1_000)))).toBe(24_000);
  });

  it("is never longer than five minutes, whatever the provider or the setting says", () => {
    const view = viewIn("creating", LONG_BUDGET);
    expect(waitMsOf(sent(view, "create", notPerformed("rate_limited", 3_600_000)))).toBe(LONGEST_WAIT_MS);
    const patient = { policy: { retryBudgetMs: 1, retry: { firstMs: 3_600_000, mostMs: 3_600_000 } } };
    expect(waitMsOf(asked(viewIn("confirm_unknown", patient), "get", unanswered("timeout")))).toBe(
      LONGEST_WAIT_MS,
    );
    expect(waitMsOf(asked(viewIn("confirm_unknown", patient), "get", MISSING))).toBe(LONGEST_WAIT_MS);
  });

  it("ends with the budget, which something must then be done about", () => {
    const view = viewIn("creating", { afterMs: BUDGET_MS - 5_000 });
    expect(waitMsOf(sent(view, "create", notPerformed("rate_limited", 60_000)))).toBe(5_000);
    // Past the budget it is its own length again.
    const late = viewIn("confirm_unknown", { afterMs: BUDGET_MS, attempt: { waits: 4 } });
    expect(waitMsOf(asked(late, "get", unanswered("timeout")))).toBe(12_000);
  });

  it("starts anew when something became known", () => {
    const view = viewIn("create_unknown", { attempt: { waits: 7 } });
    expect(asked(view, "find", found("created")).attempt.waits).toBe(0);
    expect(
      asked(viewIn("confirm_unknown", { attempt: { waits: 7 } }), "get", found("pending")).attempt.waits,
    ).toBe(0);
  });
});

describe("an attempt in `started`", () => {
  it("that the claim did not mark is asked about before its first send", () => {
    const view = viewIn("started");
    expect(claimed(view).then).toEqual(ASK_FIND);
    const absent = asked(view, "find", ABSENT);
    expect(absent.then).toEqual(SEND_CREATE);
    expect(absent.attempt).toMatchObject({ state: "creating", unresolved: false });
  });

  it("whose budget is over is asked about before it is called not performed", () => {
    const view = viewIn("started", { afterMs: BUDGET_MS });
    expect(claimed(view).then).toEqual(ASK_FIND);
    expect(asked(view, "find", ABSENT).payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
    });
    expect(asked(view, "find", found("succeeded")).payment.status).toBe("succeeded");
  });

  it("whose budget is over is not performed by its own row where the provider does not answer", () => {
    const view = viewIn("started", { afterMs: BUDGET_MS });
    const ended = asked(view, "find", unanswered("unauthorized"));
    expect(ended.attempt).toMatchObject({ state: "completed", unresolved: true });
    expect(ended.then.type).toBe("wait");
    expect(ended.change.paymentEvent).toBe("NOT_PERFORMED");
    expect(ended.change.reason).toBe("unauthorized");
  });

  it.each([
    { name: "a minute past its budget", afterMs: BUDGET_MS + 60_000 },
    { name: "older than a key's life", afterMs: KEY_LIFETIME_MS },
  ])("that is $name is not ended by its row alone: it may come from a backup", ({ afterMs }) => {
    const view = viewIn("started", { afterMs });
    expect(claimed(view).then).toEqual(ASK_FIND);
    const held = asked(view, "find", unanswered("unauthorized"));
    expect(held.then.type).toBe("wait");
    expect(held.payment.status).toBe("processing");
    expect(asked(held.view, "find", ABSENT).payment.status).toBe("failed");
    expect(asked(held.view, "find", found("succeeded")).payment.status).toBe("succeeded");
  });

  it("whose budget is longer than a key's life is not ended by its row alone either", () => {
    const view = viewIn("started", { afterMs: KEY_LIFETIME_MS, policy: { retryBudgetMs: KEY_LIFETIME_MS } });
    expect(asked(view, "find", unanswered("timeout")).then.type).toBe("wait");
  });

  it("whose budget ended less than a minute ago is still ended by its row", () => {
    const view = viewIn("started", { afterMs: BUDGET_MS + 59_999 });
    expect(asked(view, "find", unanswered("timeout")).payment.status).toBe("failed");
  });

  it("is held, not ended, while the provider refuses and the budget lasts", () => {
    const held = asked(viewIn("started"), "find", unanswered("forbidden"));
    expect(held.then.type).toBe("wait");
    expect(held.attempt.waitReason).toBe("forbidden");
  });
});

describe("an unknown create past its budget", () => {
  it("is not performed by silence: only a complete list ends it", () => {
    const silent = asked(viewIn("create_unknown", { afterMs: BUDGET_MS }), "find", unanswered("unreachable"));
    expect(silent.then.type).toBe("wait");
    expect(silent.payment.status).toBe("processing");
  });
});

describe("a charge that waits for the customer or the provider", () => {
  it("shows what the customer must do, and is asked about on its own clock", () => {
    const acting = sent(
      viewIn("confirming", { attempt: { waits: 6 } }),
      "confirm",
      object("requires_action"),
    );
    expect(acting.payment).toMatchObject({ status: "requires_action", nextAction: NEXT_ACTION, version: 2 });
    expect(acting.attempt).toMatchObject({ state: "following", waits: 0 });
    expect(acting.then).toEqual({ type: "wait", ms: 1_500 });
    expect(claimed(acting.view).then).toEqual(ASK_GET);
  });

  it("waits longer and longer between two looks, up to the most of that clock", () => {
    let view = sent(viewIn("confirming"), "confirm", object("pending")).view;
    const waits = [0, 1, 2, 3].map(() => {
      const look = asked(view, "get", found("pending"));
      view = look.view;
      return waitMsOf(look);
    });
    expect(waits).toEqual([3_000, 6_000, 12_000, 24_000]);
    const old = viewIn("following", { attempt: { waits: 60 } });
    expect(waitMsOf(asked(old, "get", found("pending")))).toBe(225_000);
  });

  it("is asked about past its budget, and never fenced or failed for its age", () => {
    for (const [status, afterMs] of [
      ["pending", 10 * KEY_LIFETIME_MS],
      ["requires_action", CUSTOMER_EXPIRY_MS - 1],
    ] as const) {
      const look = asked(viewIn("following", { afterMs }), "get", found(status));
      expect(look.then.type).toBe("wait");
      expect(look.attempt.state).toBe("following");
    }
  });

  it("is looked at when the customer's time is over, however seldom it is looked at by then", () => {
    const view = viewIn("following", { afterMs: CUSTOMER_EXPIRY_MS - 5_000, attempt: { waits: 60 } });
    expect(waitMsOf(asked(view, "get", found("requires_action")))).toBe(5_000);
  });

  it("is not waited for past the customer's time: the object is canceled first, the payment after it", () => {
    const payment = { status: "requires_action", nextAction: NEXT_ACTION } as const;
    const view = viewIn("following", { afterMs: CUSTOMER_EXPIRY_MS, payment });
    const late = asked(view, "get", found("requires_action"));
    expect(late.then).toEqual(SEND_FENCE);
    expect(late.paymentMoved).toBe(false);
    const fenced = sent(late.view, "fence", object("canceled"));
    expect(fenced.then).toEqual(ASK_GET);
    expect(fenced.payment).toMatchObject({ status: "requires_action", nextAction: NEXT_ACTION });
    const readBack = asked(fenced.view, "get", found("canceled"));
    expect(readBack.then).toEqual(END);
    expect(readBack.payment).toMatchObject({
      status: "canceled",
      cancellationReason: "customer_action_expired",
      nextAction: null,
      holdsOrderId: false,
    });
  });

  it("that pays in the last moment is adopted, though its object was being canceled", () => {
    const payment = { status: "requires_action", nextAction: NEXT_ACTION } as const;
    const view = viewIn("fencing", { afterMs: CUSTOMER_EXPIRY_MS, payment });
    const conflict = sent(view, "fence", unknown("state_conflict"));
    const paid = asked(conflict.view, "get", found("succeeded"));
    expect(paid.payment).toMatchObject({ status: "succeeded", nextAction: null, cancellationReason: null });
    expect(paid.then).toEqual(END);
  });

  it("writes its payment only when what it shows changes", () => {
    const payment = { status: "requires_action", nextAction: NEXT_ACTION } as const;
    const { change, ...still } = asked(viewIn("following", { payment }), "get", found("requires_action"));
    expect(still.paymentMoved).toBe(false);
    // Nothing new: no row in the timeline.
    expect(change.note).toBeNull();
    const pending = asked(viewIn("following", { payment }), "get", found("pending"));
    expect(pending.payment).toMatchObject({ status: "processing", nextAction: null, version: 2 });
    const back = asked(pending.view, "get", found("requires_action"));
    expect(back.payment).toMatchObject({ status: "requires_action", nextAction: NEXT_ACTION, version: 3 });
  });

  it.each([
    { status: "succeeded", becomes: "succeeded" },
    { status: "authorized", becomes: "authorized" },
    { status: "declined", becomes: "failed" },
    { status: "canceled", becomes: "canceled" },
  ] as const)("ends $becomes when the provider says $status", ({ status, becomes }) => {
    const payment = { status: "requires_action", nextAction: NEXT_ACTION } as const;
    expect(asked(viewIn("following", { payment }), "get", found(status)).payment).toMatchObject({
      status: becomes,
      nextAction: null,
    });
  });

  it("that went back to unconfirmed is neither confirmed again nor closed", () => {
    const odd = asked(viewIn("following"), "get", found("created"));
    expect(odd.then.type).toBe("wait");
    expect(odd.attempt).toMatchObject({ state: "following", waitReason: "provider_went_back" });
  });
});

describe("a provider key", () => {
  const attempt = viewIn("started").attempt;

  it("is derived from the attempt's id alone, one for each call and each round of the fence", () => {
    expect(providerKey(attempt, "create")).toBe("payment-attempt:att_0123456789abcdef0123456789abcdef");
    expect(providerKey(attempt, "confirm")).toBe(
      "payment-attempt:att_0123456789abcdef0123456789abcdef:confirm",
    );
    expect(providerKey(attempt, "fence")).toBe("payment-attempt:att_0123456789abcdef0123456789abcdef:fence");
    expect(providerKey({ ...attempt, fenceRound: 2 }, "fence")).toBe(
      "payment-attempt:att_0123456789abcdef0123456789abcdef:fence-2",
    );
  });

  it("of the create and the confirm is the same in every round", () => {
    for (const call of ["create", "confirm"] as const) {
      expect(providerKey({ ...attempt, fenceRound: 9 }, call)).toBe(providerKey(attempt, call));
    }
  });

  it("is short enough for providers that take 64 characters", () => {
    for (const call of ["create", "confirm", "fence"] as const) {
      expect(providerKey({ ...attempt, fenceRound: 9 }, call).length).toBeLessThanOrEqual(64);
    }
  });

  it("never changes over a charge's life", () => {
    const lost = sent(viewIn("confirming"), "confirm", unknown("timeout"));
    const again = asked(later(lost.view, 60_000), "get", found("created"));
    expect(providerKey(again.attempt, "confirm")).toBe(providerKey(attempt, "confirm"));
  });
});
