import Stripe from "stripe";
import type { PaymentInput } from "../../domain/payment.js";
import type { PreparedCharge } from "../../domain/provider.js";
import { toStripeAmount } from "./currencies.js";
import { ATTEMPT_METADATA_KEY, TENANT_METADATA_KEY } from "./outcome.js";

/** The form of the stored text. A change of what a member means needs another number, and this one read as before. */
const ADAPTER_VERSION = 1;

/** The parameters of both calls of one charge, as they are stored at the accept and sent by every send. */
export interface ChargeParameters {
  readonly adapter_version: typeof ADAPTER_VERSION;
  /** `Stripe-Version` of every send of this charge, also after a deploy that moves the adapter's own. */
  readonly api_version: string;
  readonly create: Stripe.PaymentIntentCreateParams;
  readonly confirm: Stripe.PaymentIntentConfirmParams;
}

/**
 * The text to store for a charge, or why Stripe cannot carry the payment exactly. The same input always gives the same
 * text. The merchant's own metadata stays here: the object carries two ids of ours and nothing else.
 */
export function prepareChargeParameters(
  input: PaymentInput,
  reference: { readonly attemptId: string; readonly tenantId: string },
): PreparedCharge {
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
      metadata: { [ATTEMPT_METADATA_KEY]: reference.attemptId, [TENANT_METADATA_KEY]: reference.tenantId },
    },
    // Never the payment method: a second confirm after a decline must not try the card anew.
    confirm: given("return_url", input.return_url),
  };
  return { ok: true, parameters: JSON.stringify(parameters) };
}

/** Reads the stored text. Throws on one that this adapter did not write. */
export function readChargeParameters(stored: string): ChargeParameters {
  const parameters = JSON.parse(stored) as Partial<ChargeParameters>;
  const { adapter_version: version, api_version: apiVersion, create, confirm } = parameters;
  if (
    version !== ADAPTER_VERSION ||
    apiVersion === undefined ||
    create === undefined ||
    confirm === undefined
  ) {
    throw new Error("the stored parameters of a charge are not of this adapter's form");
  }
  return { adapter_version: version, api_version: apiVersion, create, confirm };
}

function given<Name extends string>(name: Name, value: string | null): { readonly [Key in Name]?: string } {
  return value === null ? {} : ({ [name]: value } as { readonly [Key in Name]?: string });
}
