import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type Stripe from "stripe";
import type { ProviderCall } from "../../src/domain/provider.js";
import { createLogger } from "../../src/lib/log.js";
import { createStripeProvider, type StripeProvider } from "../../src/providers/stripe/stripe-provider.js";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { describeEffects } from "./effects-conformance.js";
import { describePaymentProvider } from "./payment-provider-conformance.js";
import type { ProviderHarness } from "./provider-harness.js";
import { describeMoneyBack } from "./refunds-conformance.js";

const WIRE_CALLS: Record<ProviderCall, string> = {
  create: "payment_intents.create",
  confirm: "payment_intents.confirm",
  fence: "payment_intents.cancel",
  capture: "payment_intents.capture",
  cancel: "payment_intents.cancel",
  refund: "refunds.create",
};

function providerFor(secretKey: string, apiBase: string): StripeProvider {
  return createStripeProvider({
    secretKey,
    apiBase,
    timeoutMs: 5_000,
    log: createLogger({ level: "silent" }),
  });
}

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startHarness(): Promise<ProviderHarness> {
  const sandbox = await startSandbox({
    settings: { refund_settles_after_ms: null, funds_available_after_ms: 0 },
  });
  const { control, url } = sandbox;
  const provider = providerFor("sk_test_conformance", url);
  const sibling = providerFor("sk_test_conformance", url);
  const stranger = providerFor("sk_test_stranger", url);
  const refused = providerFor("not_a_key", url);
  const unreachable = providerFor("sk_test_conformance", `http://127.0.0.1:${await closedPort()}`);
  const next = async (
    call: ProviderCall,
    fault: Parameters<typeof control.addFault>[0]["fault"],
  ): Promise<void> => {
    await control.addFault({ match: { call: WIRE_CALLS[call] }, fault });
  };
  return {
    provider,
    sibling,
    stranger,
    refused,
    unreachable,
    tokens: {
      succeeds: "pm_card_visa",
      declines: "pm_card_visa_chargeDeclined",
      authenticates: "pm_card_authenticationRequired",
      refundsLater: "pm_card_pendingRefund",
    },
    loseAnswer: (call) => next(call, { type: "reset", effect: "applied" }),
    loseRequest: (call) => next(call, { type: "reset", effect: "none" }),
    limitRate: (call) => next(call, { type: "error", status: 429, code: "rate_limit", retry_after: 1 }),
    failForEver: (call) => next(call, { type: "stored_error", status: 500 }),
    successfulCharges: async (attemptId) => {
      const objects = await control.listPaymentIntents({ metadata: { payment_attempt_id: attemptId } });
      return objects.reduce((sum, object) => sum + object.successful_charges, 0);
    },
    givenBack: async (chargeId) =>
      (await control.refundCounts()).by_payment_intent[chargeId] ?? { refunds: 0, amount: 0 },
    refundIds: async (chargeId) => {
      const events = await control.listEvents({ type: "refund.created" });
      const refunds = events.map(({ data }) => data.object as Stripe.Refund);
      return refunds.filter((refund) => refund.payment_intent === chargeId).map(({ id }) => id);
    },
    outside: outsideOf(sandbox),
    close: async () => {
      for (const each of [provider, sibling, stranger, refused, unreachable]) each.close();
      await sandbox.stop();
    },
  };
}

function outsideOf({ control: { dashboard, bank } }: Sandbox): ProviderHarness["outside"] {
  return {
    capture: (chargeId, amount) => dashboard.capture(chargeId, amount),
    cancel: (chargeId) => dashboard.cancel(chargeId),
    lapse: (chargeId) => bank.expireAuthorization(chargeId),
    refund: async (chargeId, amount) => (await dashboard.refund(chargeId, amount)).id,
    settleRefund: (refundId, outcome) => bank.settleRefund(refundId, outcome),
    failRefund: (refundId) => bank.failRefund(refundId),
    dispute: async (chargeId) => (await bank.openDispute(chargeId)).id,
    closeDispute: (disputeId, outcome) => bank.closeDispute(disputeId, outcome),
    payOut: async () => {
      const [payout] = await bank.payOut();
      if (payout === undefined) throw new Error("there is nothing to pay out");
      return payout.id;
    },
  };
}

describePaymentProvider("stripe, against the sandbox", startHarness);
describeEffects("stripe, against the sandbox", startHarness);
describeMoneyBack("stripe, against the sandbox", startHarness);
