import { describe, expect, it } from "vitest";
import { applyChange } from "../../../src/domain/apply-change.js";
import {
  type EarlierRun,
  type FormerRun,
  judgeEarlierRuns,
  judgeFormerKey,
  MOST_RUNS,
  mindsEarlierRuns,
} from "../../../src/domain/earlier-runs.js";
import { finalResponse } from "../../../src/domain/final-response.js";
import { decideFirst } from "../../../src/domain/review-decisions.js";
import {
  ABSENT,
  asked,
  BUDGET_MS,
  claimed,
  found,
  OWN_ACCOUNT,
  type Scene,
  UNKNOWN_ACCOUNT,
  unanswered,
  viewIn,
} from "./charge-fixtures.js";
import { effectAsked, effectView, refundFound } from "./effect-fixtures.js";

const CHARGE: EarlierRun = {
  kind: "charge",
  state: "completed",
  unresolved: false,
  paymentStatus: "failed",
  refundStatus: null,
};
const REFUND: EarlierRun = { ...CHARGE, kind: "refund", paymentStatus: "succeeded", refundStatus: "failed" };
/** As the second run of its key. */
const AGAIN: Scene = { attempt: { run: 2 } };

describe("the earlier runs of a key", () => {
  it.each([
    { name: "none", runs: [], is: "harmless" },
    { name: "a charge that the provider does not have", runs: [CHARGE], is: "harmless" },
    { name: "a charge that was canceled", runs: [{ ...CHARGE, paymentStatus: "canceled" }], is: "harmless" },
    { name: "a charge told by its row alone", runs: [{ ...CHARGE, unresolved: true }], is: "open" },
    { name: "a charge that is being closed", runs: [{ ...CHARGE, state: "fencing" }], is: "open" },
    { name: "a charge that the bank decides about", runs: [{ ...CHARGE, state: "following" }], is: "open" },
    { name: "a charge before a person", runs: [{ ...CHARGE, paymentStatus: "needs_review" }], is: "open" },
    { name: "a charge that was paid", runs: [{ ...CHARGE, paymentStatus: "succeeded" }], is: "performed" },
    { name: "a charge that is held", runs: [{ ...CHARGE, paymentStatus: "authorized" }], is: "performed" },
    { name: "two, the older without an answer", runs: [{ ...CHARGE, unresolved: true }, CHARGE], is: "open" },
    {
      name: "two, one paid and one open",
      runs: [
        { ...CHARGE, paymentStatus: "succeeded" },
        { ...CHARGE, unresolved: true },
      ],
      is: "performed",
    },
    { name: "a refund that failed", runs: [REFUND], is: "harmless" },
    { name: "a refund told by its row alone", runs: [{ ...REFUND, unresolved: true }], is: "open" },
    { name: "a refund on its way", runs: [{ ...REFUND, refundStatus: "processing" }], is: "open" },
    { name: "a refund that was made", runs: [{ ...REFUND, refundStatus: "succeeded" }], is: "performed" },
  ] as const)("$name: $is", ({ runs, is }) => {
    expect(judgeEarlierRuns(runs)).toBe(is);
  });

  it.each([
    ["charge", 1, false],
    ["charge", 2, true],
    ["refund", 1, false],
    ["refund", 3, true],
    ["capture", 2, false],
    ["cancel", 2, false],
  ] as const)("a %s in run %d minds them: %s", (kind, run, minds) => {
    expect(mindsEarlierRuns({ kind, run })).toBe(minds);
  });
});

const VAIN: FormerRun = {
  run: 2,
  kind: "charge",
  state: "completed",
  unresolved: false,
  isRebuilt: true,
  payment: {
    status: "failed",
    failure: {
      code: "provider_unavailable",
      decline_code: null,
      advice_code: null,
      message: null,
      retry: "same_key",
    },
  },
};
const declined = { ...VAIN.payment.failure!, code: "card_declined", retry: "new_key" } as const;
const OPEN: FormerRun = {
  ...VAIN,
  state: "fencing",
  payment: { status: "processing", failure: null },
};
const PAID: FormerRun = { ...VAIN, payment: { status: "succeeded", failure: null } };

describe("a key without a record", () => {
  it.each<{ readonly name: string; readonly runs: readonly FormerRun[]; readonly is: string }>([
    { name: "that no attempt is derived from", runs: [], is: "unknown" },
    { name: "that was purged after it was paid", runs: [{ ...PAID, isRebuilt: false }], is: "used by 2" },
    {
      name: "that was purged after it had run in vain",
      runs: [{ ...VAIN, isRebuilt: false }],
      is: "used by 2",
    },
    { name: "that was lost after it was paid", runs: [PAID], is: "used by 2" },
    {
      name: "that was lost after a decline",
      runs: [{ ...VAIN, payment: { status: "failed", failure: declined } }],
      is: "used by 2",
    },
    {
      name: "that was lost, and whose customer must act",
      runs: [{ ...OPEN, payment: { status: "requires_action", failure: null } }],
      is: "used by 2",
    },
    {
      name: "that was lost, and is before a person",
      runs: [{ ...OPEN, payment: { status: "needs_review", failure: null } }],
      is: "used by 2",
    },
    { name: "that was lost, and whose object is being closed", runs: [OPEN], is: "open in 2" },
    {
      name: "that was lost, and is told in vain by its row alone",
      runs: [{ ...VAIN, unresolved: true }],
      is: "used by 2",
    },
    { name: "that was lost, and has run in vain", runs: [VAIN], is: "free for 3" },
    { name: "that was lost, paid before it ran in vain", runs: [VAIN, { ...PAID, run: 1 }], is: "used by 1" },
    { name: "that was lost, and is open beside it", runs: [{ ...OPEN, run: 4 }, VAIN], is: "open in 4" },
    { name: "that was lost, in vain twice", runs: [{ ...VAIN, run: 7 }, VAIN], is: "free for 8" },
    {
      name: "that was lost, and has no run left",
      runs: [{ ...VAIN, run: MOST_RUNS }],
      is: `used by ${String(MOST_RUNS)}`,
    },
    {
      name: "of a refund that was lost",
      runs: [{ ...VAIN, kind: "refund", payment: { status: "succeeded", failure: null } }],
      is: "used by 2",
    },
  ])("$name: $is", ({ runs, is }) => {
    const former = judgeFormerKey(runs);
    const words = {
      unknown: () => "unknown",
      used: (run: number) => `used by ${String(run)}`,
      open: (run: number) => `open in ${String(run)}`,
      free: (run: number) => `free for ${String(run)}`,
    };
    const run = "run" in former ? former.run.run : "next" in former ? former.next : 0;
    expect(words[former.type](run)).toBe(is);
  });
});

describe("a charge whose key has run before", () => {
  it("creates where every earlier run is harmless, and not before it has asked about itself", () => {
    const view = viewIn("started", AGAIN);
    expect(claimed(view).then).toEqual({ type: "ask", question: "find" });
    expect(asked(view, "find", ABSENT).then).toEqual({ type: "send", call: "create" });
  });

  it.each(["started", "create_unknown"] as const)("sends no create from %s while one is open", (state) => {
    const view = viewIn(state, { ...AGAIN, earlierRuns: "open" });
    const waits = asked(view, "find", ABSENT);
    expect(waits.then.type).toBe("wait");
    expect(waits.change.reason).toBe("earlier_run_open");
    expect(waits.payment.status).toBe("processing");
  });

  it("asks nothing either while one is open and its budget lasts", () => {
    const first = decideFirst(viewIn("started", { ...AGAIN, earlierRuns: "open" }), OWN_ACCOUNT, false);
    expect(first).toMatchObject({ reason: "earlier_run_open", then: { type: "wait" } });
  });

  it("is not performed at its budget's end where one is still open, and stays open itself without an answer", () => {
    const view = viewIn("started", { ...AGAIN, earlierRuns: "open", afterMs: BUDGET_MS });
    expect(asked(view, "find", ABSENT)).toMatchObject({
      payment: { status: "failed", failure: { retry: "same_key" } },
      attempt: { state: "completed", unresolved: false },
    });
    expect(asked(view, "find", unanswered("unreachable")).attempt).toMatchObject({
      state: "completed",
      unresolved: true,
    });
  });

  it("is canceled, with an answer that says so, where one was charged", () => {
    const view = viewIn("started", { ...AGAIN, earlierRuns: "performed" });
    const ended = asked(view, "find", ABSENT);
    expect(ended.then).toEqual({ type: "end" });
    expect(ended.payment).toMatchObject({ status: "canceled", failure: null, holdsOrderId: false });
    const answer = finalResponse(view, ended.change, applyChange(view, ended.change));
    expect(answer?.status).toBe(409);
    const problem = JSON.parse(answer?.body ?? "") as { code: string; detail: string };
    expect(problem.code).toBe("invalid_state");
    expect(problem.detail).toContain("was charged after all");
  });

  it("takes its own object as it is, whatever the earlier ones came to", () => {
    const view = viewIn("started", { ...AGAIN, earlierRuns: "performed" });
    expect(asked(view, "find", found("succeeded")).payment.status).toBe("succeeded");
  });
});

describe("a charge that ended on the word of its row alone", () => {
  const told = asked(viewIn("started", { afterMs: BUDGET_MS }), "find", unanswered("unreachable")).view;

  it("is asked about again, for as long as there is no answer", () => {
    expect(claimed(told).then).toEqual({ type: "ask", question: "find" });
    const again = asked(told, "find", unanswered("timeout"));
    expect(again.then.type).toBe("wait");
    expect(again.attempt.unresolved).toBe(true);
    expect(again.payment.status).toBe("failed");
  });

  it("is resolved once the provider does not have it", () => {
    const ended = asked(told, "find", ABSENT);
    expect(ended.then).toEqual({ type: "end" });
    expect(ended.attempt.unresolved).toBe(false);
  });

  it("has its object closed where there is one that nobody confirmed", () => {
    const closing = asked(told, "find", found("created"));
    expect(closing.then).toEqual({ type: "send", call: "fence" });
    const closed = asked(closing.view, "get", found("canceled"));
    expect(closed.attempt).toMatchObject({ state: "completed", unresolved: false });
  });

  it("has succeeded after all where its object is paid, and is for a person where its order id is given up", () => {
    const freed = { ...told, payment: { ...told.payment, merchantOrderId: null } };
    expect(asked(freed, "find", found("succeeded")).payment).toMatchObject({
      status: "succeeded",
      failure: null,
    });
    expect(asked(told, "find", found("succeeded")).change.review).toBe("paid_after_end");
  });
});

describe("while a recovery is under way", () => {
  const scene = { afterMs: BUDGET_MS, recovering: true };

  it("no charge ends on the word of its row", () => {
    expect(asked(viewIn("started", scene), "find", unanswered("unreachable")).payment.status).toBe(
      "processing",
    );
    expect(decideFirst(viewIn("started", scene), UNKNOWN_ACCOUNT, false)).toMatchObject({
      paymentEvent: null,
      then: { type: "wait" },
    });
  });

  it.each(["capture", "cancel", "refund"] as const)("no %s does", (kind) => {
    const view = effectView(kind, "started", scene);
    const question = kind === "refund" ? "find_refund" : "get";
    expect(effectAsked(view, question, unanswered("unreachable")).change.answer).toBeUndefined();
    expect(decideFirst(view, UNKNOWN_ACCOUNT, false)).toMatchObject({ then: { type: "wait" } });
  });
});

describe("a refund whose key has run before", () => {
  it("is sent where every earlier run is harmless", () => {
    const view = effectView("refund", "started", AGAIN);
    expect(effectAsked(view, "find_refund", ABSENT).then).toEqual({ type: "send", call: "refund" });
  });

  it.each(["started", "send_unknown"] as const)("is not sent from %s while one is open", (state) => {
    const view = effectView("refund", state, { ...AGAIN, earlierRuns: "open" });
    const waits = effectAsked(view, "find_refund", ABSENT);
    expect(waits.then.type).toBe("wait");
    expect(waits.change.reason).toBe("earlier_run_open");
  });

  it("has failed, with an answer that says so, where one was made", () => {
    const view = effectView("refund", "started", { ...AGAIN, earlierRuns: "performed" });
    const ended = effectAsked(view, "find_refund", ABSENT);
    expect(ended.refund).toMatchObject({ status: "failed", failure: { code: "earlier_run_performed" } });
    expect(ended.change.answer).toMatchObject({ type: "refused", code: "invalid_state" });
    expect(ended.payment.refundReserved).toBe(0);
  });

  it("that ended on the word of its row alone is asked about, and shown where it was made", () => {
    const view = effectView("refund", "started", { afterMs: BUDGET_MS });
    const told = effectAsked(view, "find_refund", unanswered("unreachable"));
    expect(told.refund?.status).toBe("failed");
    expect(told.attempt).toMatchObject({ state: "completed", unresolved: true });
    expect(effectAsked(told.view, "find_refund", ABSENT)).toMatchObject({
      attempt: { unresolved: false },
      then: { type: "end" },
    });
    const shown = effectAsked(told.view, "find_refund", refundFound("succeeded"));
    expect(shown.refund?.status).toBe("succeeded");
  });
});
