import { describe, expect, it } from "vitest";
import type { AttemptState } from "../../../src/domain/attempt.js";
import type { ProviderCharge } from "../../../src/domain/provider.js";
import {
  ABSENT,
  ASK_GET,
  asked,
  at,
  BUDGET_MS,
  claimed,
  DECLINED,
  found,
  KEY_LIFETIME_MS,
  later,
  MISSING,
  OWN_ACCOUNT,
  object,
  REVIEW_AFTER_MS,
  sent,
  UNKNOWN_ACCOUNT,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";

const AFTER_OBJECT: readonly AttemptState[] = ["charge_created", "confirm_unknown", "following", "fencing"];
const OPEN: readonly AttemptState[] = [
  "started",
  "creating",
  "create_unknown",
  "charge_created",
  "confirming",
  "confirm_unknown",
  "following",
  "fencing",
];

describe("a 404 for an id that we committed", () => {
  it.each(AFTER_OBJECT)("is never absence: a person looks, and the asking goes on (%s)", (state) => {
    const missing = asked(viewIn(state), "get", MISSING);
    expect(missing.change.review).toBe("provider_object_missing");
    expect(missing.payment.status).toBe("needs_review");
    expect(missing.then.type).toBe("wait");
    expect(missing.attempt.state).toBe(state);
    expect(missing.payment.holdsOrderId).toBe(true);
    // The fact that comes later ends the review.
    const back = asked(missing.view, "get", found("succeeded"));
    expect(back.payment.status).toBe("succeeded");
  });

  it.each(AFTER_OBJECT)("is not made absence by a list without it either (%s)", (state) => {
    expect(asked(viewIn(state), "get", ABSENT).change.review).toBe("provider_object_missing");
  });

  it("is not absence where it answers a look-up by our own reference either", () => {
    for (const state of ["started", "create_unknown"] as const) {
      const missing = asked(viewIn(state, { afterMs: BUDGET_MS }), "find", MISSING);
      expect(missing.change.review).toBe("provider_object_missing");
      expect(missing.then.type).toBe("wait");
    }
  });

  it("in answer to a confirm is an unknown, which is asked about", () => {
    const lost = sent(viewIn("confirming"), "confirm", unknown("object_missing"));
    expect(lost.payment.status).toBe("processing");
    expect(claimed(lost.view).then).toEqual(ASK_GET);
  });
});

const MISMATCHES: { name: string; patch: Partial<ProviderCharge>; reason: string }[] = [
  { name: "another amount", patch: { amount: 4100 }, reason: "provider_amount_mismatch" },
  {
    name: "an amount that is no whole number of ours",
    patch: { amount: null },
    reason: "provider_amount_mismatch",
  },
  { name: "another currency", patch: { currency: "eur" }, reason: "provider_amount_mismatch" },
  { name: "another attempt's id", patch: { attemptId: "att_other" }, reason: "provider_object_foreign" },
  { name: "another tenant's id", patch: { tenantId: "ten_other" }, reason: "provider_object_foreign" },
  { name: "another mode", patch: { livemode: true }, reason: "provider_object_foreign" },
];

describe("an object that cannot be this payment's", () => {
  it.each(MISMATCHES)("$name is not adopted: a person looks", ({ patch, reason }) => {
    for (const status of ["created", "succeeded", "authorized", "declined", "canceled"] as const) {
      const shown = asked(viewIn("confirm_unknown"), "get", found(status, patch));
      expect(shown.change.review).toBe(reason);
      expect(shown.payment).toMatchObject({ status: "needs_review", holdsOrderId: true, amountCaptured: 0 });
      expect(shown.then.type).toBe("wait");
    }
  });

  it.each(MISMATCHES)("$name in the answer to a confirm leaves its outcome unknown", ({ patch, reason }) => {
    const shown = sent(viewIn("confirming"), "confirm", object("succeeded", patch));
    expect(shown.change.review).toBe(reason);
    expect(shown.attempt).toMatchObject({ state: "confirm_unknown", unresolved: true });
    expect(claimed(shown.view).then).toEqual(ASK_GET);
  });

  it("less captured than asked for is not success", () => {
    const short = asked(viewIn("confirm_unknown"), "get", found("succeeded", { amountCaptured: 900 }));
    expect(short.change.review).toBe("provider_amount_mismatch");
    const manual = viewIn("confirm_unknown", { payment: { captureMethod: "manual" } });
    expect(asked(manual, "get", found("succeeded", { amountCaptured: 900 })).payment).toMatchObject({
      status: "succeeded",
      amountCaptured: 900,
    });
  });

  it("an object without our metadata is ours by its id", () => {
    const bare = found("succeeded", { attemptId: null, tenantId: null });
    expect(asked(viewIn("confirm_unknown"), "get", bare).payment.status).toBe("succeeded");
  });
});

describe("money that moved after the end", () => {
  const failed = { status: "failed", failure: DECLINED } as const;
  const released = { ...failed, holdsOrderId: false };

  it("is shown to a person where somebody else may hold the order id, for as long as that is so", () => {
    const paid = asked(viewIn("fencing", { payment: released }), "get", found("succeeded"));
    expect(paid.change.review).toBe("paid_after_end");
    expect(paid.payment.status).toBe("needs_review");
    const asLongAs = asked(paid.view, "get", found("succeeded"));
    expect(asLongAs.payment.status).toBe("needs_review");
    expect(asLongAs.then.type).toBe("wait");
  });

  it.each(MISMATCHES)("is shown to a person where it is not the money asked for: $name", ({ patch }) => {
    const paid = asked(viewIn("fencing", { payment: failed }), "get", found("succeeded", patch));
    expect(paid.change.review).toBe("paid_after_end");
    expect(paid.payment.status).toBe("needs_review");
  });

  it("without an order id there is nobody to collide with", () => {
    const payment = { ...released, merchantOrderId: null };
    expect(asked(viewIn("fencing", { payment }), "get", found("succeeded")).payment.status).toBe("succeeded");
  });

  it("is the only thing that moves a failed payment; any other doubt is reviewed beside it", () => {
    for (const outcome of [
      MISSING,
      found("declined", { amount: 1 }),
      found("declined", { livemode: true }),
    ]) {
      const doubtful = asked(viewIn("fencing", { payment: failed }), "get", outcome);
      expect(doubtful.payment).toMatchObject({ status: "failed", version: 1 });
      expect(doubtful.change.review).not.toBeNull();
      expect(doubtful.then.type).toBe("wait");
    }
  });

  it("asks nobody about an object that is closed, whatever amount it was for", () => {
    const closed = asked(viewIn("fencing", { payment: failed }), "get", found("canceled", { amount: 1 }));
    expect(closed.payment.status).toBe("failed");
    expect(closed.change.review).toBeNull();
    expect(closed.then.type).toBe("end");
  });

  it("leaves a declined object that cannot be closed to a review in time, and the payment failed", () => {
    const view = viewIn("fencing", {
      payment: failed,
      attempt: { unknownSince: at(0) },
      afterMs: REVIEW_AFTER_MS,
    });
    const stuck = asked(view, "get", unanswered("timeout"));
    expect(stuck.change.review).toBe("outcome_unknown");
    expect(stuck.payment).toMatchObject({ status: "failed", version: 1 });
  });
});

describe("another account or mode", () => {
  const others = [
    { name: "account", account: { type: "known", accountId: "acct_other", livemode: false } as const },
    { name: "mode", account: { type: "known", accountId: "acct_own", livemode: true } as const },
  ];

  it.each(others.flatMap((other) => OPEN.map((state) => ({ ...other, state }))))(
    "sends nothing, asks nothing and opens a review: other $name, $state",
    ({ account, state }) => {
      const barred = claimed(viewIn(state), account);
      expect(barred.then.type).toBe("wait");
      expect(barred.change.review).toBe("provider_account_changed");
      expect(barred.payment.status).toBe("needs_review");
      // What was about to be sent when the former worker died is unknown, and stays so.
      const inFlight = state === "creating" || state === "confirming";
      expect(barred.attempt.unresolved).toBe(inFlight || viewIn(state).attempt.unresolved);
    },
  );

  it("goes on where it was once the account is back", () => {
    const barred = claimed(viewIn("confirming"), others[0]?.account);
    expect(barred.attempt.state).toBe("confirm_unknown");
    expect(claimed(barred.view, OWN_ACCOUNT).then).toEqual(ASK_GET);
  });

  it("is not another one where the attempt was accepted before the account was known", () => {
    const view = viewIn("create_unknown", { attempt: { providerAccount: null } });
    expect(claimed(view).then).toEqual({ type: "ask", question: "find" });
  });
});

describe("an account that is not known yet", () => {
  it.each(OPEN)("sends nothing and asks nothing, and no review opens for it (%s)", (state) => {
    const held = claimed(viewIn(state), UNKNOWN_ACCOUNT);
    expect(held.then.type).toBe("wait");
    expect(held.attempt.waitReason).toBe("unauthorized");
    expect(held.paymentMoved).toBe(false);
  });

  it("ends an attempt that sent nothing once the budget is over", () => {
    const ended = claimed(viewIn("started", { afterMs: BUDGET_MS }), UNKNOWN_ACCOUNT);
    expect(ended.payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
      holdsOrderId: false,
    });
  });

  it.each([BUDGET_MS + 60_000, KEY_LIFETIME_MS])(
    "ends nothing from the row alone where the row may be from a restored backup (%d ms old)",
    (afterMs) => {
      const held = claimed(viewIn("started", { afterMs }), UNKNOWN_ACCOUNT);
      expect(held.then.type).toBe("wait");
      expect(held.payment.status).toBe("processing");
    },
  );

  it.each(["creating", "confirming"] as const)(
    "leaves what a dead worker was about to send unknown (%s)",
    (state) => {
      const held = claimed(viewIn(state), UNKNOWN_ACCOUNT);
      expect(held.attempt).toMatchObject({ unresolved: true, unknownSince: held.view.now });
      const muchLater = later(held.view, REVIEW_AFTER_MS + 10_000);
      expect(claimed(muchLater, UNKNOWN_ACCOUNT).change.review).toBe("outcome_unknown");
    },
  );
});

describe("an outcome that stays unknown", () => {
  it("opens a review after the time set for it, and is still asked about", () => {
    const lost = sent(viewIn("confirming"), "confirm", unknown("timeout"));
    const since = 1_000;
    const early = asked(later(lost.view, since + REVIEW_AFTER_MS - 1), "get", unanswered("timeout"));
    expect(early.change.review).toBeNull();
    const due = asked(later(early.view, since + REVIEW_AFTER_MS), "get", unanswered("timeout"));
    expect(due.change.review).toBe("outcome_unknown");
    expect(due.payment.status).toBe("needs_review");
    expect(due.then.type).toBe("wait");
    // Told with every look: whether one is open already the store sees, and the payment does not move again.
    const after = asked(later(due.view, since + REVIEW_AFTER_MS + 60_000), "get", unanswered("timeout"));
    expect(after.change).toMatchObject({ review: "outcome_unknown", paymentEvent: null });
    expect(after.then.type).toBe("wait");
    expect(claimed(after.view).then).toEqual(ASK_GET);
    expect(asked(after.view, "get", found("succeeded")).payment.status).toBe("succeeded");
  });

  it.each(["charge_created", "following", "fencing"] as const)(
    "is also what an attempt has that cannot be ended past its budget (%s)",
    (state) => {
      const late = asked(viewIn(state, { afterMs: BUDGET_MS }), "get", unanswered("unauthorized"));
      expect(late.attempt.unknownSince).toEqual(late.view.now);
      const due = asked(later(late.view, BUDGET_MS + REVIEW_AFTER_MS), "get", unanswered("unauthorized"));
      expect(due.change.review).toBe("outcome_unknown");
    },
  );

  it("is not what a charge has that was only ever refused within its budget", () => {
    const held = asked(viewIn("started"), "find", unanswered("rate_limited"));
    expect(held.attempt.unknownSince).toBeNull();
  });

  it("is what a status has that we do not know: it is asked about again, and reviewed in time", () => {
    for (const view of [viewIn("confirming"), viewIn("creating")]) {
      const call = view.attempt.state === "creating" ? "create" : "confirm";
      const odd = sent(view, call, object("unrecognized"));
      expect(odd.then.type).toBe("wait");
      expect(odd.attempt).toMatchObject({
        unresolved: true,
        providerPaymentId: "pi_own",
        unknownSince: odd.view.now,
      });
      expect(claimed(odd.view).then).toEqual(ASK_GET);
      const due = asked(later(odd.view, 1_000 + REVIEW_AFTER_MS), "get", found("unrecognized"));
      expect(due.change.review).toBe("outcome_unknown");
    }
  });

  it.each(["started", "create_unknown"] as const)(
    "commits the id of an object in such a status (%s)",
    (state) => {
      const odd = asked(viewIn(state), "find", found("unrecognized"));
      expect(odd.attempt).toMatchObject({
        state: "charge_created",
        providerPaymentId: "pi_own",
        unresolved: true,
      });
    },
  );
});
