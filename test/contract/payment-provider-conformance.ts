import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PaymentProvider } from "../../src/domain/provider.js";
import { ChargeAttempt, chargeOf, type ProviderHarness, TENANT_ID } from "./provider-harness.js";

/** What the core relies on, whichever provider it is. Every adapter passes this. */
export function describePaymentProvider(name: string, start: () => Promise<ProviderHarness>): void {
  describe(`the payment provider ${name}`, () => {
    let harness: ProviderHarness;
    let provider: PaymentProvider;
    let attempt: ChargeAttempt;
    let attempts = 0;

    beforeAll(async () => {
      harness = await start();
      provider = harness.provider;
    });
    afterAll(() => harness.close());
    beforeEach(() => {
      attempts += 1;
      attempt = new ChargeAttempt(harness, `att_conformance_${attempts}`);
    });

    it("makes an object that moves no money and bears our marks", async () => {
      const outcome = await attempt.create(attempt.parametersOf());
      expect(outcome).toMatchObject({
        type: "object",
        replayed: false,
        charge: {
          status: "created",
          amount: 4200,
          currency: "usd",
          amountCaptured: 0,
          amountCapturable: 0,
          livemode: provider.livemode,
          attemptId: attempt.attemptId,
          tenantId: TENANT_ID,
          failure: null,
        },
      });
      expect(outcome.evidence.requestId).not.toBeNull();
      expect(await attempt.successfulCharges()).toBe(0);
    });

    it("charges once, however often the confirm is sent under its key", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        type: "object",
        replayed: false,
        charge: { id, status: "succeeded", amountCaptured: 4200, amountCapturable: 0 },
      });
      expect(await attempt.confirm(id, parameters, true)).toMatchObject({
        type: "object",
        replayed: true,
        charge: { id },
      });
      expect(await attempt.successfulCharges()).toBe(1);
    });

    it("holds the money where the capture is manual", async () => {
      const parameters = attempt.parametersOf({ capture_method: "manual" });
      const id = await attempt.created(parameters);
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        charge: { status: "authorized", amountCapturable: 4200, amountCaptured: 0 },
      });
    });

    it("tells a decline and its reasons, and the object shows the same", async () => {
      const parameters = attempt.parametersOf({ payment_method: harness.tokens.declines });
      const id = await attempt.created(parameters);
      const outcome = await attempt.confirm(id, parameters);
      expect(outcome).toMatchObject({ type: "declined", failure: { retry: "new_key" } });
      const failure = outcome.type === "declined" ? outcome.failure : null;
      expect(await provider.getCharge(id)).toMatchObject({
        type: "found",
        charge: { status: "declined", failure: { code: failure?.code, decline_code: failure?.decline_code } },
      });
    });

    it("tells what the customer must do, to one of an address and a client secret", async () => {
      const parameters = attempt.parametersOf({
        payment_method: harness.tokens.authenticates,
        return_url: "https://shop.example/back",
      });
      const id = await attempt.created(parameters);
      const { nextAction, status } = chargeOf(await attempt.confirm(id, parameters));
      expect(status).toBe("requires_action");
      expect(
        [nextAction?.redirect_url, nextAction?.client_secret].filter((each) => typeof each === "string"),
      ).toHaveLength(1);
    });

    it("closes an object, so that it cannot be charged any more", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      expect(await attempt.cancel(id)).toMatchObject({ type: "object", charge: { id, status: "canceled" } });
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        type: "unknown",
        reason: "state_conflict",
      });
      expect(await provider.getCharge(id)).toMatchObject({ type: "found", charge: { status: "canceled" } });
      expect(await attempt.successfulCharges()).toBe(0);
    });

    it("does not close an object that is paid", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      await attempt.confirm(id, parameters);
      expect((await attempt.cancel(id)).type).not.toBe("object");
      expect(await provider.getCharge(id)).toMatchObject({ charge: { status: "succeeded" } });
    });

    it("finds what a lost create has made, and replays it under its key", async () => {
      const parameters = attempt.parametersOf();
      await harness.loseAnswer("create");
      expect(await attempt.create(parameters)).toMatchObject({
        type: "unknown",
        reason: "connection_lost",
        keySpent: false,
      });
      const found = await attempt.find();
      expect(found).toMatchObject({
        type: "found",
        charge: { status: "created", attemptId: attempt.attemptId },
      });
      const id = found.type === "found" ? found.charge.id : "";
      expect(await attempt.create(parameters, true)).toMatchObject({
        type: "object",
        replayed: true,
        charge: { id },
      });
    });

    it("says that a create which never arrived left nothing, at once, and makes it when it is sent again", async () => {
      const parameters = attempt.parametersOf();
      await harness.loseRequest("create");
      expect(await attempt.create(parameters)).toMatchObject({ type: "unknown" });
      expect(await attempt.find()).toMatchObject({ type: "absent" });
      const id = chargeOf(await attempt.create(parameters, true)).id;
      expect(await attempt.find(harness.sibling)).toMatchObject({ type: "found", charge: { id } });
    });

    it("shows the effect of a confirm whose answer was lost", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      await harness.loseAnswer("confirm");
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        type: "unknown",
        reason: "connection_lost",
      });
      expect(await provider.getCharge(id)).toMatchObject({
        charge: { status: "succeeded", amountCaptured: 4200 },
      });
      expect(await attempt.successfulCharges()).toBe(1);
    });

    it("shows no effect of a confirm that never arrived, and charges once when it is sent again", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      await harness.loseRequest("confirm");
      expect(await attempt.confirm(id, parameters)).toMatchObject({ type: "unknown" });
      expect(await provider.getCharge(id)).toMatchObject({ charge: { status: "created" } });
      expect(await attempt.confirm(id, parameters, true)).toMatchObject({
        type: "object",
        charge: { status: "succeeded" },
      });
      expect(await attempt.successfulCharges()).toBe(1);
    });

    it("takes a rate limit for a send that was not made, on a first send alone", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      await harness.limitRate("confirm");
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        type: "not_performed",
        reason: "rate_limited",
        retryAfterMs: 1_000,
      });
      await harness.limitRate("confirm");
      expect(await attempt.confirm(id, parameters, true)).toMatchObject({
        type: "unknown",
        reason: "resend_refused",
      });
      expect(await attempt.confirm(id, parameters, true)).toMatchObject({
        type: "object",
        charge: { status: "succeeded" },
      });
    });

    it("calls a key spent that answers nothing but a stored error", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      await harness.failForEver("confirm");
      expect(await attempt.confirm(id, parameters)).toMatchObject({
        type: "unknown",
        reason: "server_error",
        keySpent: false,
      });
      expect(await attempt.confirm(id, parameters, true)).toMatchObject({
        type: "unknown",
        reason: "stored_error",
        keySpent: true,
      });
      expect(await provider.getCharge(id)).toMatchObject({ type: "found" });
    });

    it("calls parameters that differ under one key our bug, and does neither", async () => {
      await attempt.create(attempt.parametersOf());
      expect(await attempt.create(attempt.parametersOf({ amount: 4300 }), true)).toMatchObject({
        type: "unknown",
        reason: "key_mismatch",
        keySpent: true,
      });
    });

    it("takes a request that is wrong in itself for rejected, on a first send", async () => {
      expect(
        await attempt.create(attempt.parametersOf({ payment_method: "pm_no_such_method" })),
      ).toMatchObject({
        type: "rejected",
        failure: { retry: "new_key" },
      });
      expect(await attempt.find()).toMatchObject({ type: "absent" });
    });

    it("tells a missing object from an absent one", async () => {
      const parameters = attempt.parametersOf();
      const id = await attempt.created(parameters);
      expect(await harness.stranger.getCharge(id)).toMatchObject({ type: "missing" });
      expect(
        await harness.stranger.confirmCharge(id, parameters, attempt.contextOf("confirm")),
      ).toMatchObject({
        type: "unknown",
        reason: "object_missing",
      });
      expect(await attempt.find(harness.stranger)).toMatchObject({ type: "absent" });
    });

    it("cannot be told anything by a credential that is refused", async () => {
      const { refused } = harness;
      const parameters = attempt.parametersOf();
      expect(await refused.createCharge(parameters, attempt.contextOf("create"))).toMatchObject({
        type: "not_performed",
        reason: "unauthorized",
      });
      expect(await refused.createCharge(parameters, attempt.contextOf("create", true))).toMatchObject({
        type: "unknown",
      });
      expect(await refused.getCharge("pi_1")).toMatchObject({ type: "unanswered", reason: "unauthorized" });
      expect(await attempt.find(refused)).toMatchObject({ type: "unanswered", reason: "unauthorized" });
      expect(await refused.account()).toMatchObject({ type: "unanswered" });
    });

    it("sends nothing where there is nobody, and concludes nothing from that for an earlier send", async () => {
      const { unreachable } = harness;
      const parameters = attempt.parametersOf();
      expect(await unreachable.createCharge(parameters, attempt.contextOf("create"))).toMatchObject({
        type: "not_performed",
        reason: "unreachable",
      });
      expect(await unreachable.createCharge(parameters, attempt.contextOf("create", true))).toMatchObject({
        type: "unknown",
        reason: "resend_refused",
      });
      expect(await unreachable.getCharge("pi_1")).toMatchObject({
        type: "unanswered",
        reason: "unreachable",
      });
      expect(await attempt.find(unreachable)).toMatchObject({ type: "unanswered" });
      expect(await unreachable.account()).toMatchObject({ type: "unanswered" });
    });

    it("knows its account, the same in every process and another for a stranger", async () => {
      const account = await provider.account();
      expect(account).toMatchObject({ type: "known" });
      expect(await harness.sibling.account()).toEqual(account);
      expect(await harness.stranger.account()).not.toEqual(account);
      expect(harness.sibling.credentialDigest).toBe(provider.credentialDigest);
      expect(harness.stranger.credentialDigest).not.toBe(provider.credentialDigest);
    });

    it("prepares the same text for the same payment, and refuses a currency that it does not know", () => {
      expect(attempt.parametersOf()).toBe(attempt.parametersOf());
      expect(attempt.prepare({ currency: "xxx" })).toMatchObject({ ok: false, pointer: "/currency" });
    });
  });
}
