import { describe, expect, it } from "vitest";
import type { ChargeView } from "../../../src/domain/charge-change.js";
import { createLogger } from "../../../src/lib/log.js";
import type { Deps } from "../../../src/operations/deps.js";
import { runAttempt } from "../../../src/operations/run-attempt.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import { found, OWN_ACCOUNT, object, POLICY, viewIn } from "../domain/charge-fixtures.js";
import { effectView, PROVIDER_REFUND_ID, refundFound, refundMade } from "../domain/effect-fixtures.js";

interface Stopped {
  readonly calls: readonly string[];
  readonly rows: readonly AdvanceRow[];
}

/** Runs a claimed attempt whose process stands still for so long right before a send of `call`. Its lease is still its own. */
async function stoppedBefore(
  call: string,
  stopMs: number,
  view: ChargeView,
  markedNow: boolean,
): Promise<Stopped> {
  let nowMs = 0;
  const calls: string[] = [];
  const rows: AdvanceRow[] = [];
  const called = <Answer>(name: string, answer: Answer) => {
    calls.push(name);
    return Promise.resolve(answer);
  };
  const deps = {
    account: { current: () => OWN_ACCOUNT, noteAnswer: () => undefined },
    advances: {
      add: (row: AdvanceRow) => {
        rows.push(row);
        return Promise.resolve({ dueAt: null, keyExpiresAt: null });
      },
    },
    clock: { monotonicMs: () => nowMs, sleep: () => Promise.resolve() },
    due: { dueNow: () => undefined, dueIn: () => undefined },
    log: createLogger({ level: "error", destination: { write: () => undefined } }),
    meter: { providerCall: () => undefined, paymentMoved: () => undefined, attemptLost: () => undefined },
    outcomes: { settle: () => undefined },
    recovery: { isRecovering: () => false },
    probe: (name: string) => {
      if (name === `before_${call}`) nowMs += stopMs;
    },
    provider: {
      confirmCharge: () => called("confirm", object("succeeded")),
      cancelCharge: () => called("fence", object("canceled")),
      getCharge: () => called("get", found(calls.includes("fence") ? "canceled" : "created")),
      createRefund: () => called("refund", refundMade("succeeded")),
      findRefund: () => called("find_refund", refundFound("succeeded", { id: PROVIDER_REFUND_ID })),
    },
    settings: {
      attemptLeaseMs: 60_000,
      providerTimeoutMs: 20_000,
      retentionMs: 1,
      retryBudgetMs: POLICY.retryBudgetMs,
      providerKeyLifetimeMs: POLICY.keyLifetimeMs,
      unknownReviewAfterMs: POLICY.reviewAfterMs,
      customerActionExpiryMs: POLICY.customerActionExpiryMs,
      retryFirstMs: 1_000,
      retryMostMs: 1_000,
      followFirstMs: 1_000,
      followMostMs: 1_000,
    },
  } as unknown as Deps;
  const { attempt, payment, refund, now } = view;
  await runAttempt(deps, { attempt, payment, refund, markedNow, claimedAt: now }, 0);
  return { calls, rows };
}

const sending = effectView("refund", "sending");

describe("a refund whose worker stood still before the send, and still holds the attempt", () => {
  it("is sent while its key guards it", async () => {
    const { calls } = await stoppedBefore("refund", POLICY.keyLifetimeMs - 60_000, sending, true);
    expect(calls).toEqual(["refund"]);
  });

  it("is asked about once its key may be forgotten: an earlier request may have landed meanwhile", async () => {
    const { calls, rows } = await stoppedBefore("refund", POLICY.keyLifetimeMs, sending, true);
    expect(calls).toEqual(["find_refund"]);
    expect(rows.at(-1)?.refund?.to_status).toBe("succeeded");
  });
});

describe("a confirm whose worker stood still before the send", () => {
  it("is not sent past the budget: the object is looked at and closed", async () => {
    const view = viewIn("charge_created");
    const { calls, rows } = await stoppedBefore("confirm", POLICY.retryBudgetMs, view, false);
    expect(calls).toEqual(["get", "fence", "get"]);
    expect(rows.at(-1)?.payment?.to_status).toBe("failed");
  });
});
