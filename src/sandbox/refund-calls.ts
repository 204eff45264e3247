import type Stripe from "stripe";
import type { Call } from "./call.js";
import { latestChargeOf } from "./charges.js";
import { shownMoney } from "./currencies.js";
import { isDisputed } from "./disputes.js";
import { invalidRequest, resourceMissing, StripeFailure } from "./errors.js";
import { idOf } from "./ids.js";
import { pageOf } from "./object-lists.js";
import { enumOf, mergedMetadata, metadataOf, textOf } from "./parameters.js";
import type { ListBody } from "./payment-intent-lists.js";
import { changed, makeRefund, withdrawRefund } from "./refunds.js";

const REASONS = ["duplicate", "fraudulent", "requested_by_customer"] as const;

/** `POST /v1/refunds`. Without an amount, all that is left. */
export function createRefund(call: Call): Stripe.Refund {
  const { params } = call;
  const wanted = wantedAmount(call);
  const input = {
    reason: enumOf(params, "reason", REASONS),
    metadata: mergedMetadata({}, metadataOf(params) ?? {}),
  };
  const charge = refundedCharge(call);
  if (isDisputed(call, charge)) {
    throw refusal(`Charge ${charge.id} has been charged back; cannot issue a refund.`, "charge_disputed");
  }
  const left = charge.amount - charge.amount_refunded;
  if (left <= 0) throw refusal(`Charge ${charge.id} has already been refunded.`, "charge_already_refunded");
  const amount = wanted ?? left;
  if (amount > left) {
    const of = charge.amount_refunded === 0 ? "charge amount" : "unrefunded amount on charge";
    throw refusal(
      `Refund amount (${shownMoney(amount, charge.currency)}) is greater than ${of} (${shownMoney(left, charge.currency)})`,
      null,
      "amount",
    );
  }
  return makeRefund(call, charge, { ...input, amount });
}

/** The PaymentIntent that a refund locks while it is made. */
export function lockedByRefund({ params, realm }: Pick<Call, "params" | "realm">): string | null {
  const named = params["payment_intent"];
  if (typeof named === "string") return named;
  const charge = typeof params["charge"] === "string" ? realm.charges.get(params["charge"]) : undefined;
  return typeof charge?.payment_intent === "string" ? charge.payment_intent : null;
}

function wantedAmount(call: Call): number | null {
  const text = textOf(call.params, "amount");
  if (text === null) return null;
  if (!/^[1-9]\d*$/.test(text)) {
    throw invalidRequest(`Invalid positive integer: ${text}`, "parameter_invalid_integer", "amount");
  }
  return Number(text);
}

/** Throws 400 where the call names no charge, or one that was never captured (recorded answers, docs/sandbox.md). */
function refundedCharge(call: Call): Stripe.Charge {
  const byIntent = textOf(call.params, "payment_intent");
  const byCharge = textOf(call.params, "charge");
  if (byIntent === null && byCharge === null) {
    throw invalidRequest(
      "One of the following params should be provided for this request: payment_intent or charge.",
      "parameter_missing",
    );
  }
  if (byIntent !== null && byCharge !== null) {
    throw invalidRequest(
      "You may only specify one of these parameters: charge, payment_intent.",
      "parameters_exclusive",
    );
  }
  const named = byCharge === null ? undefined : call.realm.charges.get(byCharge);
  if (byCharge !== null && named === undefined) throw resourceMissing(400, "charge", byCharge, "charge");
  const id = byIntent ?? idOf(named?.payment_intent);
  const paymentIntent = call.realm.paymentIntents.get(id);
  if (paymentIntent === undefined) throw resourceMissing(400, "payment_intent", id, "payment_intent");
  const charge = named ?? latestChargeOf(call, paymentIntent);
  if (charge?.status !== "succeeded" || !charge.captured) {
    throw refusal(`This PaymentIntent (${id}) does not have a successful charge to refund.`, null);
  }
  return charge;
}

/** A refusal found in the charge's state: it is the key's first result. */
function refusal(message: string, code: string | null, param?: string): StripeFailure {
  return new StripeFailure(
    400,
    {
      type: "invalid_request_error",
      message,
      ...(code === null ? {} : { code }),
      ...(param === undefined ? {} : { param }),
    },
    { saved: true },
  );
}

/** `GET /v1/refunds/:id` */
export function refundOf(call: Call): Stripe.Refund {
  const id = call.objectId ?? "";
  const refund = call.realm.tables.refund.get(id);
  if (refund === undefined) throw resourceMissing(404, "refund", id, "id");
  return refund;
}

/** `POST /v1/refunds/:id`: metadata and nothing else. */
export function updateRefund(call: Call): Stripe.Refund {
  const refund = refundOf(call);
  const metadata = metadataOf(call.params);
  if (metadata === null) return refund;
  return changed(call, refund, { ...refund, metadata: mergedMetadata(refund.metadata ?? {}, metadata) });
}

/** `POST /v1/refunds/:id/cancel`: only one that waits for the customer (docs.stripe.com/api/refunds/cancel). */
export function cancelRefund(call: Call): Stripe.Refund {
  const refund = refundOf(call);
  if (refund.status !== "requires_action") {
    throw refusal(
      `This refund cannot be canceled because it has a status of ${String(refund.status)}.`,
      null,
    );
  }
  return withdrawRefund(call, refund);
}

/** `GET /v1/refunds`: newest first, immediately consistent. */
export function listRefunds(call: Call): ListBody<Stripe.Refund> {
  const paymentIntent = textOf(call.params, "payment_intent");
  const charge = textOf(call.params, "charge");
  return pageOf(call, call.realm.tables.refund, {
    kind: "refund",
    url: "/v1/refunds",
    matches: (refund) =>
      (paymentIntent === null || refund.payment_intent === paymentIntent) &&
      (charge === null || refund.charge === charge),
  });
}
