import type { Body, Intent, Post, WireAnswer } from "./provider-objects.js";

export function ok(body: Body): WireAnswer {
  return { status: 200, replayed: false, body };
}

export function refusal(status: number, code: string): WireAnswer {
  return { status, code, replayed: false, body: null };
}

/** As Stripe says that an object is elsewhere in its life (docs.stripe.com/error-codes). */
export function unexpectedState(intent: Intent): WireAnswer {
  const isCaptured = intent.status === "succeeded" && intent.manual;
  return refusal(400, isCaptured ? "charge_already_captured" : "payment_intent_unexpected_state");
}

/** A key is of its account. */
export function keyOf({ key, account }: Post): string {
  return `${account} ${key}`;
}
