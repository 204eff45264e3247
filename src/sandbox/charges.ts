import type Stripe from "stripe";
import { bookCharge } from "./balance-transactions.js";
import { type Call, emit } from "./call.js";
import { disputeOf } from "./payment-methods.js";

/** The charge of the object's last attempt. */
export function latestChargeOf(call: Call, paymentIntent: Stripe.PaymentIntent): Stripe.Charge | undefined {
  const id = paymentIntent.latest_charge;
  return typeof id === "string" ? call.realm.charges.get(id) : undefined;
}

/** Unix seconds; null: not an authorisation that waits for its capture. */
export function captureBeforeOf(charge: Stripe.Charge): number | null {
  return charge.payment_method_details?.card?.capture_before ?? null;
}

/** The token that the charge's payment method was made of. */
export function tokenOf(call: Call, charge: Stripe.Charge): string | null {
  return call.realm.paymentMethods.get(charge.payment_method ?? "")?.token ?? null;
}

/** What follows a capture: the balance transaction with the fee, and the dispute of a card that always has one. */
export function afterCapture(call: Call, charge: Stripe.Charge): void {
  const { charge_booked_after_ms: bookedAfterMs, dispute_opens_after_ms: disputedAfterMs } = call.settings;
  if (bookedAfterMs === 0) addToBalance(call, charge);
  else call.schedule("charge_booked", charge.id, call.nowMs + bookedAfterMs);
  const token = tokenOf(call, charge);
  if (token !== null && disputeOf(token) !== null && disputedAfterMs !== null) {
    call.schedule("dispute_opens", charge.id, call.nowMs + disputedAfterMs);
  }
}

function addToBalance(call: Call, charge: Stripe.Charge): Stripe.Charge {
  const booked = { ...charge, balance_transaction: bookCharge(call, charge) };
  call.store.saveCharge(call.realm, booked);
  return booked;
}

/** The balance transaction of a charge comes later than its capture (docs.stripe.com/payments/payment-intents/asynchronous-capture). */
export function bookLate(call: Call, charge: Stripe.Charge): void {
  if (!charge.captured || charge.balance_transaction !== null) return;
  emit(call, "charge.updated", addToBalance(call, charge), { balance_transaction: null });
}
