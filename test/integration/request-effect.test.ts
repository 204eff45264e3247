import { describe, expect, it } from "vitest";
import { PawlError } from "../../src/domain/errors.js";
import { getPayment } from "../../src/operations/read-payments.js";
import { getRefund, listRefunds } from "../../src/operations/read-refunds.js";
import { EFFECT_OPERATIONS } from "../../src/operations/request-effect.js";
import {
  authorized,
  bodyOf,
  cancel,
  capture,
  outcomeOf,
  paid,
  refund,
  refusalOf,
} from "../support/effects.js";
import { newKey, until } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

describe("the key of a capture, cancel or refund", () => {
  it("is its operation's own: one value for all of them, and for another payment, is none of theirs", async () => {
    const harness = await stage.start();
    const key = newKey();
    const id = await authorized(harness, { key });
    expect(outcomeOf(await capture(harness, id, undefined, { key }))).toBe("200");
    expect(outcomeOf(await cancel(harness, id, { key }))).toBe("409 invalid_state");
    expect(outcomeOf(await refund(harness, id, 1_000, { key }))).toBe("201");
    const other = await paid(harness);
    expect(await refusalOf(refund(harness, other, 1_000, { key }))).toBe("idempotency_key_reused");
    expect((await getPayment(harness.deps, harness.caller, other)).amountRefunded).toBe(0);
  });

  it("takes the amount of all that is authorized, said or left out, for the same request", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    const key = newKey();
    const first = await capture(harness, id, 10_000, { key });
    const again = await capture(harness, id, undefined, { key });
    expect(again).toMatchObject({
      type: "final",
      replayed: true,
      response: first.type === "final" ? first.response : {},
    });
    expect(await refusalOf(capture(harness, id, 9_999, { key }))).toBe("idempotency_key_reused");
  });

  it("runs again when the provider could not be reached until the budget was over", async () => {
    const harness = await stage.start({ env: { ATTEMPT_RETRY_BUDGET_MS: "2000" } });
    const id = await paid(harness);
    const key = newKey();
    await harness.sandbox.control.closeListener();
    await expect(refund(harness, id, 4_000, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({ refundReserved: 0 });
    await harness.sandbox.control.openListener();
    expect(outcomeOf(await refund(harness, id, 4_000, { key }))).toBe("201");
    const page = await listRefunds(harness.deps, harness.caller, id, { limit: 10, cursor: null });
    expect(page.data.map(({ refund: one }) => one.status)).toEqual(["succeeded", "failed"]);
  });

  it("that was purged is refused with its payment, and nothing is refunded twice", async () => {
    const harness = await stage.start();
    const id = await paid(harness);
    const key = newKey();
    await refund(harness, id, 4_000, { key });
    await harness.deps.db.sql`delete from idempotency_keys where operation = ${EFFECT_OPERATIONS.refund}`;
    const error = await refund(harness, id, 4_000, { key }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PawlError);
    expect(error).toMatchObject({ code: "idempotency_key_expired", extra: { payment: { id } } });
    expect((await harness.sandbox.control.refundCounts()).refunds).toBe(1);
  });

  it("of a refund that is being made is in progress, and shows the refund", async () => {
    const harness = await stage.start();
    const id = await paid(harness, { input: { payment_method: "pm_card_pendingRefund" } });
    await harness.sandbox.control.changeSettings({ refund_settles_after_ms: null });
    const key = newKey();
    const accepted = await refund(harness, id, 4_000, { key, waitMs: 0 });
    const refundId = String(bodyOf(accepted)["id"]);
    expect(await refusalOf(refund(harness, id, 4_000, { key }))).toBe("idempotency_key_in_progress");
    const { resolution } = await until(
      "a refund that is followed",
      () => getRefund(harness.deps, harness.caller, refundId),
      (view) => view.resolution !== null,
    );
    expect(resolution).toMatchObject({ state: "held", reason: "pending" });
    const [made] = await harness.sandbox.control.listRefunds();
    await harness.sandbox.control.bank.settleRefund(made?.id ?? "", "fail");
    await until(
      "the end of the refund",
      () => getRefund(harness.deps, harness.caller, refundId),
      (view) => view.refund.status === "failed",
    );
    expect(outcomeOf(await refund(harness, id, 4_000, { key }))).toBe("402 refund_failed");
    expect((await getPayment(harness.deps, harness.caller, id)).refundReserved).toBe(0);
  });
});

describe("one key sent twice at once", () => {
  it("for a capture is one capture: the other is told that it runs, or waits for the same answer", async () => {
    const harness = await stage.start();
    const other = await harness.another();
    for (let round = 0; round < 10; round += 1) {
      const id = await authorized(harness);
      const key = newKey();
      const both = await Promise.all([
        refusalOf(capture(harness, id, undefined, { key })),
        refusalOf(capture(harness, id, undefined, { key, deps: other.deps })),
        refusalOf(capture(harness, id, 1, { key, deps: other.deps })),
      ]);
      const allowed = ["200", "idempotency_key_in_progress", "idempotency_key_reused"];
      expect(both.filter((outcome) => !allowed.includes(outcome))).toEqual([]);
    }
  });

  it("that was purged is told so also where the payment would refuse it by now", async () => {
    const harness = await stage.start();
    const id = await paid(harness);
    const key = newKey();
    await refund(harness, id, undefined, { key });
    await harness.deps.db.sql`delete from idempotency_keys where operation = ${EFFECT_OPERATIONS.refund}`;
    expect(await refusalOf(refund(harness, id, undefined, { key }))).toBe("idempotency_key_expired");
  });
});
