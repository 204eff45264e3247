import Stripe from "stripe";
import type { PaymentInput } from "../../domain/payment.js";
import type { PreparedCharge } from "../../domain/provider.js";
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

interface ChargeCalls {
  readonly create: Stripe.PaymentIntentCreateParams;
  readonly confirm: Stripe.PaymentIntentConfirmParams;
}

/** The parameters of both calls of one charge, as they are stored at the accept and sent by every send. */
export type ChargeParameters = StoredHead & ChargeCalls;

/**
 * The text to store for a charge, or why Stripe cannot carry the payment exactly. The same input always gives the same
 * text. The merchant's own metadata stays here: the object carries two ids of ours and nothing else.
 */
export function prepareChargeParameters(input: PaymentInput, reference: Reference): PreparedCharge {
  const stripeAmount = toStripeAmount(input.amount, input.currency);
  if (!stripeAmount.ok) return stripeAmount;
  const parameters: ChargeParameters = {
    adapter_version: ADAPTER_VERSION,
    api_version: Stripe.API_VERSION,
    create: {
      amount: stripeAmount.amount,
      currency: input.currency,
      payment_method: input.payment_method,
      // Left out, it would be `automatic_async` since API 2024-04-10: `succeeded` before the capture has happened.
      capture_method: input.capture_method,
      confirmation_method: "automatic",
      // `payment_method_types` is a 400 since API 2026-09-30.endive, and this excludes `automatic_payment_methods`
      // (docs.stripe.com/changelog/endive/2026-09-30, docs.stripe.com/changelog/dahlia/2026-07-29).
      allowed_payment_method_types: ["card"],
      ...given("customer", input.customer),
      ...given("description", input.description),
      // A plain `statement_descriptor` is an error for cards (the SDK's typings of PaymentIntentCreateParams).
      ...given("statement_descriptor_suffix", input.statement_descriptor),
      metadata: marksOf(reference),
    },
    // Never the payment method: a second confirm after a decline must not try the card anew. Texts that were stored
    // before `expand` was asked for go out without it.
    confirm: { ...given("return_url", input.return_url), expand: CHARGE_EXPANSIONS },
  };
  return { ok: true, parameters: JSON.stringify(parameters) };
}

/** Throws on a text that this adapter did not write. */
export function readChargeParameters(stored: string): ChargeParameters {
  return readStored<ChargeCalls>(stored, ["create", "confirm"]);
}
