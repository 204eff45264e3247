import type Stripe from "stripe";
import { type Call, emit } from "./call.js";
import { captureBeforeOf, latestChargeOf } from "./charges.js";
import { releaseHold } from "./refunds.js";

/**
 * An authorisation that was not captured in time is over: the hold is released and the object canceled, as a recorded
 * answer of Stripe's has it (docs/sandbox.md). Does nothing where the object has gone on, or its time has not come.
 */
export function expireAuthorization(call: Call, paymentIntent: Stripe.PaymentIntent): void {
  const charge = latestChargeOf(call, paymentIntent);
  const before = charge === undefined ? null : captureBeforeOf(charge);
  if (paymentIntent.status !== "requires_capture" || charge === undefined || before === null) return;
  // It was prolonged: a card's network may do that.
  if (before > call.nowSeconds)
    return call.schedule("authorization_expires", paymentIntent.id, before * 1000);
  releaseHold(call, charge, charge.amount, "expired_uncaptured_charge");
  emit(call, "charge.expired", call.realm.charges.get(charge.id) ?? charge);
  const canceled: Stripe.PaymentIntent = {
    ...paymentIntent,
    status: "canceled",
    canceled_at: call.nowSeconds,
    cancellation_reason: "automatic",
    amount_capturable: 0,
  };
  call.store.savePaymentIntent(call.realm, canceled);
  emit(call, "payment_intent.canceled", canceled);
}

/** Ends the authorisation's time now, whatever it was. */
export function endAuthorization(call: Call, paymentIntent: Stripe.PaymentIntent): void {
  const charge = latestChargeOf(call, paymentIntent);
  const details = charge?.payment_method_details ?? null;
  if (charge === undefined || details?.card === undefined) return;
  const card = { ...details.card, capture_before: call.nowSeconds };
  call.store.saveCharge(call.realm, { ...charge, payment_method_details: { ...details, card } });
  expireAuthorization(call, paymentIntent);
}
