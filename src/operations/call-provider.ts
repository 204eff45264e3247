import { providerKey } from "../domain/attempt.js";
import type { ChargeView, Question } from "../domain/charge-change.js";
import type {
  LookupOutcome,
  PaymentProvider,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../domain/provider.js";

/**
 * A look-up by reference covers objects whose `created`, by the provider's clock, lies this much before the accept;
 * one of a key that the provider has seen before (rows lost, the client key sent again) the whole life of a key.
 */
const CLOCK_ALLOWANCE_MS = 5 * 60_000;
/** Nothing of ours is made in the future; the bound is far so that a provider's fast (or moved) clock hides nothing. */
const FAR_AHEAD_MS = 10 * 365 * 86_400_000;

/** One send, under the attempt's own key for it and with the parameters that were stored at the accept. */
export function sendCall(
  provider: PaymentProvider,
  view: ChargeView,
  call: ProviderCall,
): Promise<SendOutcome | RefundSendOutcome> {
  const { attempt } = view;
  // A fence is asked about before each further send, so no send of it is a blind one.
  const resend = call === "fence" ? false : attempt.unresolved;
  const context = { idempotencyKey: providerKey(attempt, call), resend };
  switch (call) {
    case "create":
      return provider.createCharge(attempt.parameters, context);
    case "confirm":
      return provider.confirmCharge(chargeIdOf(view), attempt.parameters, context);
    case "fence":
      return provider.cancelCharge(chargeIdOf(view), context);
    case "capture":
      return provider.captureCharge(chargeIdOf(view), attempt.parameters, context);
    case "cancel":
      return provider.voidCharge(chargeIdOf(view), attempt.parameters, context);
    case "refund":
      return provider.createRefund(attempt.parameters, context);
  }
}

export function askQuestion(
  provider: PaymentProvider,
  view: ChargeView,
  question: Question,
): Promise<LookupOutcome | RefundLookupOutcome> {
  const { attempt, refund, now, policy } = view;
  switch (question) {
    case "get":
      return provider.getCharge(attempt.providerPaymentId ?? namedByPerson(view));
    case "find":
      return provider.findCharge({
        attemptId: attempt.id,
        createdFrom: new Date(
          attempt.createdAt.getTime() - (attempt.keySpent ? policy.keyLifetimeMs : CLOCK_ALLOWANCE_MS),
        ),
        createdTo: new Date(now.getTime() + FAR_AHEAD_MS),
      });
    case "find_refund":
      return provider.findRefund({ attemptId: attempt.id, chargeId: chargeIdOf(view) });
    case "get_refund": {
      if (refund === null || refund.providerRefundId === null)
        throw new Error(`attempt ${attempt.id} has no provider refund`);
      return provider.getRefund(refund.providerRefundId);
    }
  }
}

/** Of an attempt that has no object: the one that a person says is its own. */
function namedByPerson({ attempt }: ChargeView): string {
  const id = attempt.instruction?.providerObjectId ?? null;
  if (id === null) throw new Error(`attempt ${attempt.id} in ${attempt.state} has no provider object`);
  return id;
}

function chargeIdOf({ attempt }: ChargeView): string {
  const id = attempt.providerPaymentId;
  if (id === null) throw new Error(`attempt ${attempt.id} in ${attempt.state} has no provider object`);
  return id;
}
