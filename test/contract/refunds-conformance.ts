import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PaymentProvider, ProviderDispute, ProviderRefund } from "../../src/domain/provider.js";
import {
  ChargeAttempt,
  chargeOf,
  EffectAttempt,
  type ProviderHarness,
  refundOf,
  TENANT_ID,
} from "./provider-harness.js";

const STATE_CONFLICT = { type: "unknown", reason: "state_conflict" };

/** What the core relies on of refunds, disputes and payouts, whichever provider it is. Every adapter passes this. */
export function describeMoneyBack(name: string, start: () => Promise<ProviderHarness>): void {
  describe(`refunds, disputes and payouts by ${name}`, () => {
    let harness: ProviderHarness;
    let provider: PaymentProvider;
    let effect: EffectAttempt;
    let attempts = 0;

    beforeAll(async () => {
      harness = await start();
      provider = harness.provider;
    });
    afterAll(() => harness.close());
    beforeEach(() => {
      effect = nextEffect();
    });

    function nextEffect(): EffectAttempt {
      attempts += 1;
      return new EffectAttempt(harness, `att_refund_${attempts}`);
    }
    /** The id of an object that is paid, 42.00. */
    async function paid(token = harness.tokens.succeeds): Promise<string> {
      attempts += 1;
      const attempt = new ChargeAttempt(harness, `att_paid_${attempts}`);
      const parameters = attempt.parametersOf({ payment_method: token });
      return chargeOf(await attempt.confirm(await attempt.created(parameters), parameters)).id;
    }
    const refundNow = async (id: string): Promise<ProviderRefund> => refundOf(await provider.getRefund(id));
    async function disputeNow(id: string): Promise<ProviderDispute> {
      const outcome = await provider.getDispute(id);
      if (outcome.type !== "found") throw new Error(`no dispute: ${JSON.stringify(outcome)}`);
      return outcome.dispute;
    }

    it("gives back once what it names, however often it is sent under its key", async () => {
      const chargeId = await paid();
      const first = await effect.refund(chargeId, 1500);
      expect(first).toMatchObject({
        type: "refund",
        replayed: false,
        refund: {
          chargeId,
          status: "succeeded",
          amount: 1500,
          currency: "usd",
          attemptId: effect.attemptId,
          tenantId: TENANT_ID,
          failure: null,
        },
      });
      const { id } = refundOf(first);
      expect(await effect.refund(chargeId, 1500, { resend: true })).toMatchObject({
        type: "refund",
        replayed: true,
        refund: { id },
      });
      expect(await refundNow(id)).toEqual(refundOf(first));
      expect(await harness.givenBack(chargeId)).toEqual({ refunds: 1, amount: 1500 });
    });

    it("makes two equal refunds of two attempts, and finds each", async () => {
      const chargeId = await paid();
      const other = nextEffect();
      const ids = [await effect.refund(chargeId, 1500), await other.refund(chargeId, 1500)].map(
        (outcome) => refundOf(outcome).id,
      );
      expect(new Set(ids).size).toBe(2);
      expect(refundOf(await effect.find(chargeId)).id).toBe(ids[0]);
      expect(refundOf(await other.find(chargeId, harness.sibling)).id).toBe(ids[1]);
      expect(await harness.givenBack(chargeId)).toEqual({ refunds: 2, amount: 3000 });
    });

    it("finds the refund whose answer was lost, and replays it", async () => {
      const chargeId = await paid();
      await harness.loseAnswer("refund");
      expect(await effect.refund(chargeId, 1500)).toMatchObject({
        type: "unknown",
        reason: "connection_lost",
      });
      const { id } = refundOf(await effect.find(chargeId));
      const again = await effect.refund(chargeId, 1500, { resend: true });
      expect(again).toMatchObject({ type: "refund", replayed: true, refund: { id } });
      expect(await harness.givenBack(chargeId)).toEqual({ refunds: 1, amount: 1500 });
    });

    it("says that a refund which never arrived is absent, and makes it when it is sent again", async () => {
      const chargeId = await paid();
      await harness.loseRequest("refund");
      expect(await effect.refund(chargeId, 1500)).toMatchObject({ type: "unknown" });
      expect(await effect.find(chargeId)).toMatchObject({ type: "absent" });
      const { id } = refundOf(await effect.refund(chargeId, 1500, { resend: true }));
      expect(await effect.find(chargeId)).toMatchObject({ type: "found", refund: { id } });
    });

    it("does not take more than is left for refused: it may be an earlier send that took it", async () => {
      const chargeId = await paid();
      await nextEffect().refund(chargeId, 3000);
      expect(await effect.refund(chargeId, 1500)).toMatchObject({ ...STATE_CONFLICT, keySpent: false });
      expect(await effect.find(chargeId)).toMatchObject({ type: "absent" });
      await nextEffect().refund(chargeId, 1200);
      const other = nextEffect();
      expect(await other.refund(chargeId, 1)).toMatchObject(STATE_CONFLICT);
      expect(await other.find(chargeId)).toMatchObject({ type: "absent" });
      expect(await harness.givenBack(chargeId)).toEqual({ refunds: 2, amount: 4200 });
    });

    it("shows a refund that was made outside as nobody's, and finds none of ours in it", async () => {
      const chargeId = await paid();
      const id = await harness.outside.refund(chargeId, 1500);
      const outside = await refundNow(id);
      expect(outside).toMatchObject({ chargeId, status: "succeeded", amount: 1500, attemptId: null });
      expect(outside.releasesHold).toBeUndefined();
      expect(await effect.find(chargeId)).toMatchObject({ type: "absent" });
    });

    it.each([
      ["succeed", { status: "succeeded", failure: null }],
      ["fail", { status: "failed" }],
    ] as const)("follows a refund that is decided later (%s)", async (outcome, expected) => {
      const chargeId = await paid(harness.tokens.refundsLater);
      const made = refundOf(await effect.refund(chargeId, 1500));
      expect(made).toMatchObject({ status: "pending", failure: null });
      await harness.outside.settleRefund(made.id, outcome);
      expect(await refundNow(made.id)).toMatchObject({ id: made.id, ...expected });
    });

    it("shows that a refund which had succeeded has failed, and why", async () => {
      const chargeId = await paid();
      const { id } = refundOf(await effect.refund(chargeId, 1500));
      await harness.outside.failRefund(id);
      const failed = await refundNow(id);
      expect(failed.status).toBe("failed");
      expect(failed.failure?.code).not.toBe("");
      expect(failed.failure).toMatchObject({ retry: "new_key" });
    });

    it("takes a rate limit for a refund not made, on a first send alone", async () => {
      const chargeId = await paid();
      await harness.limitRate("refund");
      expect(await effect.refund(chargeId, 1500)).toMatchObject({
        type: "not_performed",
        reason: "rate_limited",
      });
      await harness.limitRate("refund");
      expect(await effect.refund(chargeId, 1500, { resend: true })).toMatchObject({
        reason: "resend_refused",
      });
    });

    it("calls a key spent that answers nothing but a stored error, or was used for another amount", async () => {
      const chargeId = await paid();
      await harness.failForEver("refund");
      await effect.refund(chargeId, 1500);
      const stored = await effect.refund(chargeId, 1500, { resend: true });
      expect(stored).toMatchObject({ reason: "stored_error", keySpent: true });
      const other = nextEffect();
      await other.refund(chargeId, 1500);
      const drifted = await other.refund(chargeId, 1600, { resend: true });
      expect(drifted).toMatchObject({ reason: "key_mismatch", keySpent: true });
      expect(await harness.givenBack(chargeId)).toEqual({ refunds: 1, amount: 1500 });
    });

    it("finds nothing of ours with another account, and calls it missing, never absent", async () => {
      const chargeId = await paid();
      const { id } = refundOf(await effect.refund(chargeId, 100));
      const disputeId = await harness.outside.dispute(chargeId);
      const payoutId = await harness.outside.payOut();
      const { stranger } = harness;
      expect(await stranger.getRefund(id)).toMatchObject({ type: "missing" });
      expect(await stranger.getDispute(disputeId)).toMatchObject({ type: "missing" });
      expect(await stranger.getPayout(payoutId, null)).toMatchObject({ type: "missing" });
      expect(await nextEffect().refund(chargeId, 100, { by: stranger })).toMatchObject({
        type: "unknown",
        reason: "object_missing",
      });
    });

    it("cannot be told anything by a refused credential, or where there is nobody", async () => {
      for (const [by, reason] of [
        [harness.refused, "unauthorized"],
        [harness.unreachable, "unreachable"],
      ] as const) {
        expect(await effect.refund("pi_1", 100, { by })).toMatchObject({ type: "not_performed", reason });
        const unanswered = { type: "unanswered", reason };
        expect(await effect.find("pi_1", by)).toMatchObject(unanswered);
        expect(await by.getRefund("re_1")).toMatchObject(unanswered);
        expect(await by.getDispute("dp_1")).toMatchObject(unanswered);
        expect(await by.getPayout("po_1", null)).toMatchObject(unanswered);
      }
    });

    it("shows a dispute and what it took, and refuses a refund for its sake", async () => {
      const chargeId = await paid();
      const id = await harness.outside.dispute(chargeId);
      const dispute = await disputeNow(id);
      expect(dispute).toMatchObject({ id, chargeId, status: "open", amount: 4200, currency: "usd" });
      expect(dispute.livemode).toBe(provider.livemode);
      expect(dispute.movements).toMatchObject([{ amount: -4200, currency: "usd" }]);
      expect(dispute.movements[0]?.fee).toBeGreaterThanOrEqual(0);
      expect(await effect.refund(chargeId, 100)).toMatchObject({
        type: "rejected",
        failure: { code: expect.stringMatching(/^(charge_disputed|refund_disputed_payment)$/) as string },
      });
    });

    it.each([
      ["won", [-4200, 4200]],
      ["lost", [-4200]],
    ] as const)("shows a dispute that was %s, and every movement of its funds", async (outcome, amounts) => {
      const id = await harness.outside.dispute(await paid());
      await harness.outside.closeDispute(id, outcome);
      const { status, movements } = await disputeNow(id);
      expect(status).toBe(outcome);
      expect(movements.map(({ amount }) => amount)).toEqual(amounts);
      expect(new Set(movements.map(({ transactionId }) => transactionId)).size).toBe(amounts.length);
    });

    it("tells whose money a payout brings, less the fees", async () => {
      const [chargeId, other] = [await paid(), await paid()];
      await effect.refund(chargeId, 1500);
      const fees = await Promise.all(
        [chargeId, other].map(async (id) => chargeOf(await provider.getCharge(id)).fee?.amount ?? 0),
      );
      const payout = await provider.getPayout(await harness.outside.payOut(), null);
      const movements = payout.type === "found" ? payout.movements : [];
      const netOf = (id: string) =>
        movements.filter((each) => each.chargeId === id).map(({ amount }) => amount);
      expect(netOf(chargeId).toSorted((one, other) => one - other)).toEqual([-1500, 4200 - (fees[0] ?? 0)]);
      expect(netOf(other)).toEqual([4200 - (fees[1] ?? 0)]);
      expect(new Set(movements.map(({ transactionId }) => transactionId)).size).toBe(movements.length);
    });
  });
}
