import { describe, expect, it } from "vitest";
import { decideFirst } from "../../../src/domain/review-decisions.js";
import {
  asked,
  BUDGET_MS,
  LONGEST_WAIT_MS,
  OWN_ACCOUNT,
  UNKNOWN_ACCOUNT,
  unanswered,
  viewIn,
} from "./charge-fixtures.js";
import { effectAsked, effectView } from "./effect-fixtures.js";

/** What ends on the word of its row, and what of it the provider is still asked about. */
describe("without an account to ask with, at its budget's end", () => {
  const scene = { afterMs: BUDGET_MS };

  it("a charge has failed, and stays open and due until the provider has spoken", () => {
    expect(decideFirst(viewIn("started", scene), UNKNOWN_ACCOUNT, false)).toMatchObject({
      paymentEvent: "NOT_PERFORMED",
      attempt: { unresolved: true },
      then: { type: "wait" },
    });
  });

  it("so has a refund", () => {
    expect(decideFirst(effectView("refund", "started", scene), UNKNOWN_ACCOUNT, false)).toMatchObject({
      refund: { event: "FAIL" },
      attempt: { unresolved: true },
      then: { type: "wait" },
    });
  });
});

describe("a capture or cancel without an answer at its budget's end", () => {
  it.each(["capture", "cancel"] as const)(
    "a %s has ended for good: its charge's own look finds what it did",
    (kind) => {
      const view = effectView(kind, "started", { afterMs: BUDGET_MS });
      const ended = effectAsked(view, "get", unanswered("unreachable"));
      expect(ended.change.answer).toMatchObject({ type: "not_performed" });
      expect(ended.attempt).toMatchObject({ state: "completed", unresolved: false });
      expect(ended.then).toEqual({ type: "end" });
    },
  );
});

describe("a refund whose key has run before", () => {
  const again = { attempt: { run: 2 }, earlierRuns: "open" } as const;

  it("asks nothing while an earlier run is open: what that comes to decides", () => {
    const first = decideFirst(effectView("refund", "started", again), OWN_ACCOUNT, false);
    expect(first).toMatchObject({ reason: "earlier_run_open", then: { type: "wait" } });
    expect((first as { then: { ms: number } }).then.ms).toBeLessThanOrEqual(LONGEST_WAIT_MS);
  });

  it("asks once its budget is over, however open the earlier run is", () => {
    const view = effectView("refund", "started", { ...again, afterMs: BUDGET_MS });
    expect(decideFirst(view, OWN_ACCOUNT, false)).toEqual({ type: "ask", question: "find_refund" });
  });
});

describe("a row that is as old as the provider's keys", () => {
  it("ends nothing by itself, though its budget has only just ended: it may have been sent before", () => {
    const policy = { keyLifetimeMs: BUDGET_MS };
    const view = viewIn("started", { afterMs: BUDGET_MS, policy });
    const asks = asked(view, "find", unanswered("unreachable"));
    expect(asks.payment.status).toBe("processing");
    expect(asks.then.type).toBe("wait");
  });
});
