import { describe, expect, it } from "vitest";
import type { NotPerformedReason, UnknownReason } from "../../../src/domain/provider.js";
import {
  ABSENT,
  ASK_FIND,
  ASK_GET,
  asked,
  BUDGET_MS,
  CHARGE_ID,
  claimed,
  END,
  found,
  HELD_LOOK_MS,
  KEY_LIFETIME_MS,
  later,
  notPerformed,
  object,
  SEND_CONFIRM,
  SEND_CREATE,
  SEND_FENCE,
  sent,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";

const NOT_PERFORMED_REASONS = Object.keys({
  unreachable: true,
  rate_limited: true,
  unauthorized: true,
  forbidden: true,
} satisfies Record<NotPerformedReason, true>) as NotPerformedReason[];

/** Unknowns that the same key may still end: a wait comes first. */
const WAITED_FOR: UnknownReason[] = [
  "timeout",
  "connection_lost",
  "server_error",
  "unreadable",
  "key_in_use",
  "object_locked",
  "external_dependency",
  "resend_refused",
  "object_missing",
];

const SENDING = [
  { call: "create", state: "creating", unknownState: "create_unknown", question: ASK_FIND },
  { call: "confirm", state: "confirming", unknownState: "confirm_unknown", question: ASK_GET },
] as const;

describe("the usual way of a charge", () => {
  it("commits the object's id and that the confirm is about to be sent together, then ends", () => {
    const created = sent(viewIn("creating"), "create", object("created"));
    expect(created.then).toEqual(SEND_CONFIRM);
    expect(created.attempt).toMatchObject({
      state: "confirming",
      providerPaymentId: CHARGE_ID,
      unresolved: false,
    });
    expect(created.paymentMoved).toBe(false);

    const confirmed = sent(created.view, "confirm", object("succeeded"));
    expect(confirmed.then).toEqual(END);
    expect(confirmed.attempt.state).toBe("completed");
    expect(confirmed.payment).toMatchObject({
      status: "succeeded",
      version: 2,
      amountCaptured: 4200,
      holdsOrderId: true,
    });
  });

  it("ends authorized where the capture is manual", () => {
    const view = viewIn("confirming", { payment: { captureMethod: "manual" } });
    const { payment, attempt, then } = sent(view, "confirm", object("authorized"));
    expect(payment).toMatchObject({ status: "authorized", amountCapturable: 4200, amountCaptured: 0 });
    // It is looked at again: an authorisation that nobody captures lapses.
    expect(attempt.state).toBe("following");
    expect(then).toEqual({ type: "wait", ms: HELD_LOOK_MS });
  });

  it("begins with the create that the claim has recorded", () => {
    expect(claimed(viewIn("creating"), undefined, true).then).toEqual(SEND_CREATE);
  });
});

describe("a send that was refused before execution", () => {
  it.each(NOT_PERFORMED_REASONS)("needs no question before the next create: %s", (reason) => {
    const refused = sent(viewIn("creating"), "create", notPerformed(reason));
    expect(refused.then.type).toBe("wait");
    // The claim of an attempt in `started` is the record that its create is about to be sent.
    expect(refused.attempt).toMatchObject({
      state: "started",
      unresolved: false,
      unknownSince: null,
      waitReason: reason,
    });
  });

  it.each(NOT_PERFORMED_REASONS)("needs no question before the next confirm: %s", (reason) => {
    const refused = sent(viewIn("confirming"), "confirm", notPerformed(reason));
    expect(refused.then.type).toBe("wait");
    expect(refused.attempt).toMatchObject({ state: "charge_created", unresolved: false });
    expect(claimed(refused.view).then).toEqual(SEND_CONFIRM);
  });

  it.each(SENDING)("says nothing of an earlier unknown $call, which is still asked about", (sending) => {
    const view = viewIn(sending.state, { attempt: { unresolved: true } });
    const refused = sent(view, sending.call, notPerformed("unreachable"));
    expect(refused.attempt).toMatchObject({ state: sending.unknownState, unresolved: true });
    expect(claimed(refused.view).then).toEqual(sending.question);
  });

  it("is asked about before the next send of a fence, whose earlier sends nobody remembers", () => {
    const refused = sent(viewIn("fencing"), "fence", notPerformed("rate_limited"));
    expect(refused.then.type).toBe("wait");
    expect(claimed(refused.view).then).toEqual(ASK_GET);
  });
});

describe("a send whose outcome is unknown", () => {
  const cases = SENDING.flatMap((sending) => WAITED_FOR.map((reason) => ({ ...sending, reason })));

  it.each(cases)(
    "is asked about before $call is sent again: $reason",
    ({ call, state, unknownState, question, reason }) => {
      const lost = sent(viewIn(state), call, unknown(reason));
      expect(lost.then.type).toBe("wait");
      expect(lost.attempt).toMatchObject({ state: unknownState, unresolved: true, waitReason: reason });
      expect(lost.attempt.unknownSince).toEqual(lost.view.now);
      expect(claimed(lost.view).then).toEqual(question);
      // A question that is not answered is asked again; nothing is sent.
      const silent = asked(lost.view, call === "create" ? "find" : "get", unanswered("timeout"));
      expect(silent.then.type).toBe("wait");
      expect(claimed(silent.view).then).toEqual(question);
    },
  );

  it.each(WAITED_FOR)("is asked about before a fence is sent again: %s", (reason) => {
    const lost = sent(viewIn("fencing", { attempt: { unresolved: false } }), "fence", unknown(reason));
    expect(lost.then.type).toBe("wait");
    expect(lost.attempt).toMatchObject({ state: "fencing", unresolved: true });
    expect(claimed(lost.view).then).toEqual(ASK_GET);
  });

  it.each(SENDING)(
    "is what a worker leaves that died about to send $call",
    ({ state, unknownState, question }) => {
      const left = claimed(viewIn(state));
      expect(left.then).toEqual(question);
      expect(left.attempt).toMatchObject({
        state: unknownState,
        unresolved: true,
        waitReason: "worker_lost",
      });
      expect(left.attempt.unknownSince).toEqual(left.view.now);
      expect(left.change.note).toMatchObject({ kind: "send", outcome: "unknown: worker_lost" });
    },
  );

  it("keeps the time since when it is unknown over all the tries that follow", () => {
    const lost = sent(viewIn("confirming"), "confirm", unknown("timeout"));
    const again = asked(later(lost.view, 5_000), "get", found("created"));
    const lostAgain = sent(later(again.view, 9_000), "confirm", unknown("server_error"));
    expect(lostAgain.attempt.unknownSince).toEqual(lost.view.now);
  });
});

describe("an unknown create", () => {
  it("is sent again under the same key once a complete list does not have it", () => {
    const absent = asked(viewIn("create_unknown"), "find", ABSENT);
    expect(absent.then).toEqual(SEND_CREATE);
    expect(absent.attempt).toMatchObject({ state: "creating", unresolved: true });
  });

  it("is adopted once the list has it, and its confirm is a first send", () => {
    const seen = asked(viewIn("create_unknown"), "find", found("created"));
    expect(seen.then).toEqual(SEND_CONFIRM);
    expect(seen.attempt).toMatchObject({
      state: "confirming",
      providerPaymentId: CHARGE_ID,
      unresolved: false,
      unknownSince: null,
    });
  });

  it("is not performed once the budget is over and a complete list does not have it", () => {
    const absent = asked(viewIn("create_unknown", { afterMs: BUDGET_MS }), "find", ABSENT);
    expect(absent.then).toEqual(END);
    expect(absent.payment).toMatchObject({
      status: "failed",
      holdsOrderId: false,
      failure: { retry: "same_key" },
    });
  });

  it("whose key the provider knows with other parameters is never taken for absent: a person must look", () => {
    const spent = sent(viewIn("creating"), "create", unknown("key_mismatch", true));
    expect(spent.then).toEqual(ASK_FIND);
    const silent = asked(spent.view, "find", unanswered("server_error"));
    for (const seen of [spent.view, silent.view, later(silent.view, 2 * BUDGET_MS)]) {
      const absent = asked(seen, "find", ABSENT);
      expect(absent.payment.status).toBe("needs_review");
      expect(asked(absent.view, "find", ABSENT).payment.status).toBe("needs_review");
    }
  });

  it.each(["stored_error"] as const)(
    "whose key can never perform it any more is not performed once absent, and never sent again: %s",
    (reason) => {
      const spent = sent(viewIn("creating"), "create", unknown(reason, true));
      expect(spent.then).toEqual(ASK_FIND);
      const absent = asked(spent.view, "find", ABSENT);
      expect(absent.then).toEqual(END);
      expect(absent.payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
      expect(absent.change.reason).toBe("provider_key_spent");
    },
  );

  it("whose spent key is remembered while the question goes unanswered", () => {
    const spent = sent(viewIn("creating"), "create", unknown("stored_error", true));
    const silent = asked(spent.view, "find", unanswered("server_error"));
    expect(asked(silent.view, "find", ABSENT).then).toEqual(END);
  });
});

describe("an unknown confirm that the object does not show", () => {
  it("is sent again under the same key while budget and key lifetime last", () => {
    const again = asked(viewIn("confirm_unknown"), "get", found("created"));
    expect(again.then).toEqual(SEND_CONFIRM);
    expect(again.attempt).toMatchObject({ state: "confirming", unresolved: true });
  });

  it.each([
    { over: "the budget", scene: { afterMs: BUDGET_MS }, reason: "retry_budget_over" },
    {
      over: "the key's lifetime",
      scene: { afterMs: KEY_LIFETIME_MS, policy: { retryBudgetMs: 2 * KEY_LIFETIME_MS } },
      reason: "retry_budget_over",
    },
    { over: "the key itself", scene: { attempt: { keySpent: true } }, reason: "provider_key_spent" },
  ])("is fenced once $over is over", ({ scene, reason }) => {
    const fenced = asked(viewIn("confirm_unknown", scene), "get", found("created"));
    expect(fenced.then).toEqual(SEND_FENCE);
    expect(fenced.attempt).toMatchObject({
      state: "fencing",
      unresolved: true,
      keySpent: false,
      fenceRound: 1,
    });
    expect(fenced.change.reason).toBe(reason);
    expect(fenced.paymentMoved).toBe(false);
  });

  it.each(["stored_error", "key_mismatch"] as const)(
    "is asked about at once and then fenced after a %s",
    (reason) => {
      const spent = sent(viewIn("confirming"), "confirm", unknown(reason, true));
      expect(spent.then).toEqual(ASK_GET);
      expect(asked(spent.view, "get", found("created")).then).toEqual(SEND_FENCE);
      expect(asked(spent.view, "get", found("succeeded")).payment.status).toBe("succeeded");
    },
  );

  it("is still fenced when the look-up after the stored error was not answered at first", () => {
    const spent = sent(viewIn("confirming"), "confirm", unknown("stored_error", true));
    const silent = asked(spent.view, "get", unanswered("timeout"));
    expect(asked(silent.view, "get", found("created")).then).toEqual(SEND_FENCE);
  });

  it("is looked at at once where the object was elsewhere in its life", () => {
    const conflict = sent(viewIn("confirming"), "confirm", unknown("state_conflict"));
    expect(conflict.then).toEqual(ASK_GET);
    expect(asked(conflict.view, "get", found("succeeded")).payment.status).toBe("succeeded");
  });

  it("is not believed to be done because a 2xx shows the object unconfirmed", () => {
    const odd = sent(viewIn("confirming"), "confirm", object("created"));
    expect(odd.then.type).toBe("wait");
    expect(odd.attempt).toMatchObject({ state: "confirm_unknown", unresolved: true });
    expect(claimed(odd.view).then).toEqual(ASK_GET);
  });
});
