import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PaymentProvider, ProviderCharge } from "../../src/domain/provider.js";
import {
  ChargeAttempt,
  chargeOf,
  EffectAttempt,
  type ProviderHarness,
  TENANT_ID,
} from "./provider-harness.js";

const STATE_CONFLICT = { type: "unknown", reason: "state_conflict" };

/** What the core relies on of captures and cancels, whichever provider it is. Every adapter passes this. */
export function describeEffects(name: string, start: () => Promise<ProviderHarness>): void {
  describe(`captures and cancels by ${name}`, () => {
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
      return new EffectAttempt(harness, `att_effect_${attempts}`);
    }
    async function confirmed(changes: Parameters<ChargeAttempt["prepare"]>[0]): Promise<ProviderCharge> {
      attempts += 1;
      const attempt = new ChargeAttempt(harness, `att_charge_${attempts}`);
      const parameters = attempt.parametersOf(changes);
      return chargeOf(await attempt.confirm(await attempt.created(parameters), parameters));
    }
    /** The id of an object that holds 42.00. */
    const held = async (): Promise<string> => (await confirmed({ capture_method: "manual" })).id;
    const now = async (id: string): Promise<ProviderCharge> => chargeOf(await provider.getCharge(id));

    it("tells until when an authorisation holds, and that it has not lapsed", async () => {
      const charge = await confirmed({ capture_method: "manual" });
      expect(charge.status).toBe("authorized");
      expect(charge.authorizedUntil?.getTime()).toBeGreaterThan(Date.now());
      expect(await now(charge.id)).toMatchObject({
        authorizedUntil: charge.authorizedUntil,
        lapsed: false,
        fee: null,
      });
    });

    it("tells the provider's fee of a charge that is captured at once", async () => {
      const charge = await confirmed({});
      expect(charge).toMatchObject({ status: "succeeded", authorizedUntil: null, lapsed: false });
      expect(charge.fee).toMatchObject({ currency: "usd" });
      expect(charge.fee?.amount).toBeGreaterThan(0);
      expect((await now(charge.id)).fee).toEqual(charge.fee);
    });

    it("captures once, however often it is sent under its key", async () => {
      const id = await held();
      const captured = { id, status: "succeeded", amountCaptured: 4200, amountCapturable: 0 };
      expect(await effect.capture(id, 4200)).toMatchObject({
        type: "object",
        replayed: false,
        charge: { ...captured, fee: { currency: "usd" } },
      });
      expect(await effect.capture(id, 4200, true)).toMatchObject({ type: "object", replayed: true });
      expect(await now(id)).toMatchObject(captured);
    });

    it("captures a part, and releases the rest: which is no money that was given back", async () => {
      const id = await held();
      expect(chargeOf(await effect.capture(id, 1000))).toMatchObject({
        status: "succeeded",
        amount: 4200,
        amountCaptured: 1000,
        amountCapturable: 0,
      });
      expect(await harness.givenBack(id)).toMatchObject({ refunds: 0 });
      for (const refundId of await harness.refundIds(id)) {
        expect(await provider.getRefund(refundId)).toMatchObject({
          type: "found",
          refund: { releasesHold: true },
        });
      }
    });

    it("shows the effect of a capture whose answer was lost, and replays it", async () => {
      const id = await held();
      await harness.loseAnswer("capture");
      expect(await effect.capture(id, 1000)).toMatchObject({ type: "unknown", reason: "connection_lost" });
      expect(await now(id)).toMatchObject({ status: "succeeded", amountCaptured: 1000 });
      expect(await effect.capture(id, 1000, true)).toMatchObject({
        type: "object",
        replayed: true,
        charge: { amountCaptured: 1000 },
      });
    });

    it("shows no effect of a capture that never arrived, and captures when it is sent again", async () => {
      const id = await held();
      await harness.loseRequest("capture");
      expect(await effect.capture(id, 1000)).toMatchObject({ type: "unknown" });
      expect(await now(id)).toMatchObject({ status: "authorized", amountCapturable: 4200 });
      expect(await effect.capture(id, 1000, true)).toMatchObject({
        type: "object",
        charge: { amountCaptured: 1000 },
      });
    });

    it("does not take a capture of what was captured elsewhere for refused: the object tells", async () => {
      const id = await held();
      await harness.outside.capture(id, 700);
      for (const resend of [false, true]) {
        expect(await nextEffect().capture(id, 4200, resend)).toMatchObject(STATE_CONFLICT);
      }
      expect(await now(id)).toMatchObject({ status: "succeeded", amountCaptured: 700 });
    });

    it("tells an authorisation that lapsed from one that was canceled", async () => {
      const [lapsed, canceled] = [await held(), await held()];
      await harness.outside.lapse(lapsed);
      await harness.outside.cancel(canceled);
      expect(await effect.capture(lapsed, 4200)).toMatchObject(STATE_CONFLICT);
      expect(await now(lapsed)).toMatchObject({ status: "canceled", lapsed: true, authorizedUntil: null });
      expect(await nextEffect().capture(canceled, 4200)).toMatchObject(STATE_CONFLICT);
      expect(await now(canceled)).toMatchObject({ status: "canceled", lapsed: false });
    });

    it("refuses to capture more than is held, and holds it still", async () => {
      const id = await held();
      expect(await effect.capture(id, 4201)).toMatchObject({
        type: "rejected",
        failure: { retry: "new_key" },
      });
      expect(await now(id)).toMatchObject({ status: "authorized", amountCapturable: 4200 });
    });

    it("releases an authorisation once, however often it is sent under its key", async () => {
      const id = await held();
      expect(await effect.cancel(id)).toMatchObject({
        type: "object",
        replayed: false,
        charge: { id, status: "canceled", lapsed: false, amountCapturable: 0 },
      });
      expect(await effect.cancel(id, true)).toMatchObject({ type: "object", replayed: true });
      expect(await now(id)).toMatchObject({ status: "canceled", amountCaptured: 0 });
      expect(await harness.givenBack(id)).toMatchObject({ refunds: 0 });
    });

    it("ends a payment that waits for its customer", async () => {
      const { id, status } = await confirmed({ payment_method: harness.tokens.authenticates });
      expect(status).toBe("requires_action");
      expect(chargeOf(await effect.cancel(id))).toMatchObject({ status: "canceled", nextAction: null });
    });

    it("does not cancel what is paid, nor take that for refused", async () => {
      const { id } = await confirmed({});
      expect(await effect.cancel(id)).toMatchObject(STATE_CONFLICT);
      expect(await now(id)).toMatchObject({ status: "succeeded", amountCaptured: 4200 });
    });

    it("shows the effect of a cancel whose answer was lost, and none of one that never arrived", async () => {
      const [done, open] = [await held(), await held()];
      await harness.loseAnswer("cancel");
      expect(await effect.cancel(done)).toMatchObject({ type: "unknown" });
      expect(await now(done)).toMatchObject({ status: "canceled" });
      const other = nextEffect();
      await harness.loseRequest("cancel");
      expect(await other.cancel(open)).toMatchObject({ type: "unknown" });
      expect(await now(open)).toMatchObject({ status: "authorized" });
      expect(await other.cancel(open, true)).toMatchObject({ charge: { status: "canceled" } });
    });

    it.each(["capture", "cancel"] as const)("takes a rate limit on a %s for one not made", async (call) => {
      const id = await held();
      const send = (resend: boolean) =>
        call === "capture" ? effect.capture(id, 4200, resend) : effect.cancel(id, resend);
      await harness.limitRate(call);
      expect(await send(false)).toMatchObject({ type: "not_performed", reason: "rate_limited" });
      await harness.limitRate(call);
      expect(await send(true)).toMatchObject({ type: "unknown", reason: "resend_refused" });
      expect(await send(true)).toMatchObject({ type: "object" });
    });

    it("calls a key spent that answers nothing but a stored error", async () => {
      const id = await held();
      await harness.failForEver("capture");
      expect(await effect.capture(id, 4200)).toMatchObject({ reason: "server_error", keySpent: false });
      expect(await effect.capture(id, 4200, true)).toMatchObject({ reason: "stored_error", keySpent: true });
    });

    it("calls another amount under one key our bug, and does not take it", async () => {
      const id = await held();
      await effect.capture(id, 1000);
      expect(await effect.capture(id, 2000, true)).toMatchObject({ reason: "key_mismatch", keySpent: true });
      expect(await now(id)).toMatchObject({ amountCaptured: 1000 });
    });

    it("finds no object of ours with another account, and concludes nothing", async () => {
      const id = await held();
      const { stranger } = harness;
      const missing = { type: "unknown", reason: "object_missing" };
      const capture = effect.prepare({ call: "capture", amount: 4200, currency: "usd" });
      const cancel = effect.prepare({ call: "cancel", reason: null });
      expect(await stranger.captureCharge(id, capture, effect.contextOf())).toMatchObject(missing);
      expect(await stranger.voidCharge(id, cancel, nextEffect().contextOf(true))).toMatchObject(missing);
      expect(await now(id)).toMatchObject({ status: "authorized" });
    });

    it("sends nothing by a refused credential or to nobody, and says so on a first send alone", async () => {
      const parameters = effect.prepare({ call: "capture", amount: 4200, currency: "usd" });
      for (const [by, reason] of [
        [harness.refused, "unauthorized"],
        [harness.unreachable, "unreachable"],
      ] as const) {
        expect(await by.captureCharge("pi_1", parameters, effect.contextOf())).toMatchObject({
          type: "not_performed",
          reason,
        });
        expect(await by.captureCharge("pi_1", parameters, effect.contextOf(true))).toMatchObject({
          type: "unknown",
          reason: "resend_refused",
        });
      }
    });

    it("prepares the same text for the same effect, and refuses an amount that it cannot carry", () => {
      const input = { call: "capture", amount: 5120, currency: "kwd" } as const;
      const reference = { attemptId: effect.attemptId, tenantId: TENANT_ID };
      expect(provider.prepareEffect(input, reference)).toEqual(provider.prepareEffect(input, reference));
      expect(provider.prepareEffect({ ...input, amount: 5125 }, reference)).toMatchObject({
        ok: false,
        pointer: "/amount",
      });
    });
  });
}
