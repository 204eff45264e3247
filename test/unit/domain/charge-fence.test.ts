import { describe, expect, it } from "vitest";
import type { AttemptState } from "../../../src/domain/attempt.js";
import { providerKey } from "../../../src/domain/attempt.js";
import {
  ASK_GET,
  asked,
  BUDGET_MS,
  claimed,
  DECLINED,
  END,
  found,
  HELD_LOOK_MS,
  later,
  notPerformed,
  object,
  rejection,
  SEND_FENCE,
  sent,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";

const LATE = { afterMs: BUDGET_MS };
const FAILED = { status: "failed", failure: DECLINED } as const;

describe("a fence", () => {
  it("is what an object gets that is not confirmed when the budget is over", () => {
    const view = viewIn("charge_created", LATE);
    expect(claimed(view).then).toEqual(ASK_GET);
    const fenced = asked(view, "get", found("created"));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt.state).toBe("fencing");
  });

  it.each(["started", "create_unknown"] satisfies AttemptState[])(
    "is what an object gets that is found in %s when the budget is over: never confirmed late",
    (state) => {
      const fenced = asked(viewIn(state, LATE), "find", found("created"));
      expect(fenced.then).toEqual(SEND_FENCE);
      expect(fenced.attempt).toMatchObject({ state: "fencing", providerPaymentId: "pi_own" });
    },
  );

  it("is what an object gets whose create was answered after the budget", () => {
    expect(sent(viewIn("creating", LATE), "create", object("created")).then).toEqual(SEND_FENCE);
  });

  it("begins its own back-off: an answer to it is looked into at once, however long the confirm was waited for", () => {
    const view = viewIn("confirm_unknown", { ...LATE, attempt: { waits: 6 } });
    const fenced = asked(view, "get", found("created"));
    expect(fenced.attempt.waits).toBe(0);
    expect(sent(fenced.view, "fence", unknown("state_conflict")).then).toEqual(ASK_GET);
  });

  it("is not believed from its own 2xx: not performed needs the object read back as canceled", () => {
    const fenced = sent(viewIn("fencing", LATE), "fence", object("canceled"));
    expect(fenced.then).toEqual(ASK_GET);
    expect(fenced.payment.status).toBe("processing");
    const readBack = asked(fenced.view, "get", found("canceled"));
    expect(readBack.then).toEqual(END);
    expect(readBack.change.paymentEvent).toBe("NOT_PERFORMED");
    expect(readBack.payment).toMatchObject({
      status: "failed",
      holdsOrderId: false,
      failure: { code: "provider_unavailable", retry: "same_key" },
    });
  });

  it.each([
    { status: "succeeded", becomes: "succeeded", state: "completed" },
    { status: "authorized", becomes: "authorized", state: "following" },
    { status: "pending", becomes: "processing", state: "following" },
    { status: "requires_action", becomes: "requires_action", state: "following" },
  ] as const)("that finds the object $status adopts that", ({ status, becomes, state }) => {
    const conflict = sent(viewIn("fencing", LATE), "fence", unknown("state_conflict"));
    expect(conflict.then).toEqual(ASK_GET);
    const adopted = asked(conflict.view, "get", found(status));
    expect(adopted.payment.status).toBe(becomes);
    expect(adopted.attempt.state).toBe(state);
  });

  it("that finds the object declined fails the payment for good and closes the object", () => {
    const declined = asked(viewIn("fencing", LATE), "get", found("declined"));
    expect(declined.payment).toMatchObject({
      status: "failed",
      holdsOrderId: true,
      failure: { retry: "new_key" },
    });
    expect(declined.then).toEqual(SEND_FENCE);
    expect(declined.attempt.state).toBe("fencing");
  });

  it("is sent again only after the object was looked at, also by another worker", () => {
    const view = viewIn("fencing", LATE);
    expect(claimed(view).then).toEqual(ASK_GET);
    expect(asked(view, "get", unanswered("timeout")).then.type).toBe("wait");
    expect(asked(view, "get", found("created")).then).toEqual(SEND_FENCE);
  });

  it("keeps its key while that key may still perform it, and takes the next round's once it cannot", () => {
    const lost = sent(viewIn("fencing", LATE), "fence", unknown("server_error"));
    const again = asked(lost.view, "get", found("created"));
    expect(providerKey(again.attempt, "fence")).toBe(providerKey(lost.attempt, "fence"));

    const spent = sent(again.view, "fence", unknown("stored_error", true));
    expect(spent.then).toEqual(ASK_GET);
    const next = asked(spent.view, "get", found("created"));
    expect(next.attempt).toMatchObject({ state: "fencing", fenceRound: 2, keySpent: false });
    expect(providerKey(next.attempt, "fence")).toMatch(/:fence-2$/);

    const spentToo = sent(next.view, "fence", unknown("stored_error", true));
    const silent = asked(spentToo.view, "get", unanswered("timeout"));
    expect(asked(silent.view, "get", found("created")).attempt.fenceRound).toBe(3);
  });

  it("takes the next round's key for a declined object, too", () => {
    const spent = sent(viewIn("fencing", LATE), "fence", unknown("stored_error", true));
    expect(asked(spent.view, "get", found("declined")).attempt).toMatchObject({
      fenceRound: 2,
      keySpent: false,
    });
  });

  it("does not count a spent key of the confirm as its own", () => {
    const fenced = asked(viewIn("confirm_unknown", { attempt: { keySpent: true } }), "get", found("created"));
    expect(fenced.attempt).toMatchObject({ fenceRound: 1, keySpent: false });
  });

  it.each([
    { name: "rejected", outcome: rejection() },
    { name: "answered with a conflict", outcome: unknown("state_conflict") },
  ])(
    "that is $name while the object stays as it is waits from the second time on, and does not spin",
    ({ outcome }) => {
      const first = sent(viewIn("fencing", LATE), "fence", outcome);
      expect(first.then).toEqual(ASK_GET);
      const second = asked(first.view, "get", found("created"));
      expect(second.then).toEqual(SEND_FENCE);
      const refused = sent(second.view, "fence", outcome);
      expect(refused.then.type).toBe("wait");
      expect(claimed(refused.view).then).toEqual(ASK_GET);
      const third = sent(asked(refused.view, "get", found("created")).view, "fence", outcome);
      expect(third.then).toMatchObject({ type: "wait" });
      expect(third.attempt.waits).toBeGreaterThan(refused.attempt.waits);
    },
  );
});

describe("the object of a failed payment", () => {
  it.each(["created", "declined", "requires_action"] as const)("is closed while it is %s", (status) => {
    const closing = asked(viewIn("fencing", { payment: FAILED }), "get", found(status));
    expect(closing.then).toEqual(SEND_FENCE);
    expect(closing.payment).toMatchObject({ status: "failed", version: 1, failure: DECLINED });
  });

  it.each(["created", "declined", "requires_action"] as const)(
    "that was followed is closed once it is %s",
    (status) => {
      const closing = asked(viewIn("following", { payment: FAILED }), "get", found(status));
      expect(closing.then).toEqual(SEND_FENCE);
      expect(closing.payment).toMatchObject({ status: "failed", version: 1 });
    },
  );

  it("is followed while the provider is charging it, and closed when that was declined", () => {
    const pending = asked(viewIn("fencing", { payment: FAILED }), "get", found("pending"));
    expect(pending.attempt.state).toBe("following");
    expect(pending.payment).toMatchObject({ status: "failed", version: 1 });
    const declined = asked(pending.view, "get", found("declined"));
    expect(declined.then).toEqual(SEND_FENCE);
    expect(declined.payment).toMatchObject({ status: "failed", version: 1 });
  });

  it("frees the order id only once it is read back canceled, in one write and without an event of the payment's", () => {
    const closed = asked(viewIn("following", { payment: FAILED }), "get", found("canceled"));
    expect(closed.then).toEqual(END);
    expect(closed.change.paymentEvent).toBeNull();
    expect(closed.payment).toMatchObject({
      status: "failed",
      version: 2,
      holdsOrderId: false,
      failure: DECLINED,
    });
  });

  it("writes nothing to a payment without an order id when it is closed", () => {
    const payment = { ...FAILED, merchantOrderId: null, holdsOrderId: false };
    const closed = asked(viewIn("fencing", { payment }), "get", found("canceled"));
    expect(closed.attempt.state).toBe("completed");
    expect(closed.paymentMoved).toBe(false);
    expect(closed.payment.version).toBe(1);
  });

  it.each([
    { status: "succeeded", becomes: "succeeded", then: END },
    { status: "authorized", becomes: "authorized", then: { type: "wait", ms: HELD_LOOK_MS } },
  ] as const)(
    "that the customer pays from the browser ($status) makes the payment $becomes",
    ({ status, becomes, then }) => {
      const conflict = sent(viewIn("fencing", { payment: FAILED }), "fence", unknown("state_conflict"));
      const paid = asked(conflict.view, "get", found(status));
      expect(paid.then).toEqual(then);
      expect(paid.payment).toMatchObject({ status: becomes, failure: null, holdsOrderId: true, version: 2 });
      expect(paid.change.reason).toBe("paid_after_end");
      expect(paid.change.review).toBeNull();
    },
  );
});

describe("an object that the provider shows canceled", () => {
  it.each(["charge_created", "confirm_unknown", "fencing"] satisfies AttemptState[])(
    "in %s proves that nothing was performed, whoever canceled it",
    (state) => {
      const canceled = asked(viewIn(state), "get", found("canceled"));
      expect(canceled.payment).toMatchObject({
        status: "failed",
        failure: { retry: "same_key" },
        holdsOrderId: false,
      });
      expect(canceled.attempt.state).toBe("completed");
    },
  );

  it.each(["processing", "requires_action"] as const)(
    "while it is followed as %s cancels the payment",
    (status) => {
      const canceled = asked(viewIn("following", { payment: { status } }), "get", found("canceled"));
      expect(canceled.then).toEqual(END);
      expect(canceled.payment).toMatchObject({
        status: "canceled",
        holdsOrderId: false,
        failure: null,
        nextAction: null,
      });
    },
  );
});

describe("a fence in doubt", () => {
  it("is not forgotten when the send of it was refused", () => {
    const refused = sent(viewIn("fencing", LATE), "fence", notPerformed("unauthorized"));
    expect(refused.attempt).toMatchObject({ state: "fencing", unresolved: true });
    expect(claimed(later(refused.view, BUDGET_MS + 60_000)).then).toEqual(ASK_GET);
  });
});
