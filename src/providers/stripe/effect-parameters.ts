import Stripe from "stripe";
import type { EffectCall, EffectInput, PreparedCharge } from "../../domain/provider.js";
import { toStripeAmount } from "./currencies.js";
import {
  ADAPTER_VERSION,
  CHARGE_EXPANSIONS,
  given,
  marksOf,
  type Reference,
  readStored,
  type StoredHead,
} from "./stored-parameters.js";

/** What a refund always carries. */
type RefundParameters = Stripe.RefundCreateParams & {
  readonly payment_intent: string;
  readonly amount: number;
};

interface ParametersByCall {
  readonly capture: Stripe.PaymentIntentCaptureParams;
  readonly cancel: Stripe.PaymentIntentCancelParams;
  readonly refund: RefundParameters;
}

// The SDK's typings: RefundCreateParams.Reason and PaymentIntentCancelParams.CancellationReason. Any other text of the
// merchant's is a 400 there, and stays here.
const REFUND_REASONS = ["duplicate", "fraudulent", "requested_by_customer"];
const CANCELLATION_REASONS = [...REFUND_REASONS, "abandoned"];

/**
 * The text to store for an effect, or why Stripe cannot carry its amount exactly. The same input always gives the same
 * text. Of ours a refund carries two ids; a capture and a cancel change an object that bears them already.
 */
export function prepareEffectParameters(input: EffectInput, reference: Reference): PreparedCharge {
  switch (input.call) {
    case "capture": {
      const stripeAmount = toStripeAmount(input.amount, input.currency);
      if (!stripeAmount.ok) return stripeAmount;
      return stored({ capture: { amount_to_capture: stripeAmount.amount, expand: CHARGE_EXPANSIONS } });
    }
    case "cancel":
      return stored({ cancel: given("cancellation_reason", oneOf(CANCELLATION_REASONS, input.reason)) });
    case "refund": {
      const stripeAmount = toStripeAmount(input.amount, input.currency);
      if (!stripeAmount.ok) return stripeAmount;
      return stored({
        refund: {
          payment_intent: input.chargeId,
          // Left out, it would be all that is left at that moment.
          amount: stripeAmount.amount,
          ...given("reason", oneOf(REFUND_REASONS, input.reason)),
          metadata: marksOf(reference),
        },
      });
    }
  }
}

/** Throws on a text that this adapter did not write for this call. */
export function readEffectParameters<Call extends EffectCall>(
  text: string,
  call: Call,
): { readonly apiVersion: string; readonly parameters: ParametersByCall[Call] } {
  const { api_version: apiVersion, ...members } = readStored<ParametersByCall>(text, [call]);
  return { apiVersion, parameters: members[call] };
}

function stored(parameters: Partial<ParametersByCall>): PreparedCharge {
  const head: StoredHead = { adapter_version: ADAPTER_VERSION, api_version: Stripe.API_VERSION };
  return { ok: true, parameters: JSON.stringify({ ...head, ...parameters }) };
}

function oneOf(values: readonly string[], value: string | null): string | null {
  return value !== null && values.includes(value) ? value : null;
}
