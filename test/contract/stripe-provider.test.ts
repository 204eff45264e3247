import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type { ProviderCall } from "../../src/domain/provider.js";
import { createLogger } from "../../src/lib/log.js";
import { createStripeProvider, type StripeProvider } from "../../src/providers/stripe/stripe-provider.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { describePaymentProvider } from "./payment-provider-conformance.js";
import type { ProviderHarness } from "./provider-harness.js";

const WIRE_CALLS: Record<ProviderCall, string> = {
  create: "payment_intents.create",
  confirm: "payment_intents.confirm",
  fence: "payment_intents.cancel",
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
  const sandbox = await startSandbox();
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
    },
    loseAnswer: (call) => next(call, { type: "reset", effect: "applied" }),
    loseRequest: (call) => next(call, { type: "reset", effect: "none" }),
    limitRate: (call) => next(call, { type: "error", status: 429, code: "rate_limit", retry_after: 1 }),
    failForEver: (call) => next(call, { type: "stored_error", status: 500 }),
    successfulCharges: async (attemptId) => {
      const objects = await control.listPaymentIntents({ metadata: { payment_attempt_id: attemptId } });
      return objects.reduce((sum, object) => sum + object.successful_charges, 0);
    },
    close: async () => {
      for (const each of [provider, sibling, stranger, refused, unreachable]) each.close();
      await sandbox.stop();
    },
  };
}

describePaymentProvider("stripe, against the sandbox", startHarness);
