import type Stripe from "stripe";
import { API_VERSION, type CallFor } from "./call.js";
import { StripeFailure } from "./errors.js";
import type { Params } from "./form.js";
import { requestId } from "./ids.js";
import { completeAuthentication, failAuthentication } from "./payment-attempt.js";
import { confirmPaymentIntent } from "./payment-intent-operations.js";
import type { Realm, Store } from "./store.js";

/** Things that the customer does in a browser, and tests may do for them. */
export class Customer {
  readonly #store: Store;
  readonly #callFor: CallFor;

  constructor(store: Store, callFor: CallFor) {
    this.#store = store;
    this.#callFor = callFor;
  }

  /** The realm that holds the object, in whatever account and mode; null: none does. */
  realmOf(id: string): Realm | null {
    for (const realm of this.#store.realms.values()) if (realm.paymentIntents.has(id)) return realm;
    return null;
  }

  /** Ends 3D Secure. Null: no such object, or it does not wait for its customer. */
  authenticate(id: string, outcome: "complete" | "fail"): Stripe.PaymentIntent | null {
    const realm = this.realmOf(id);
    const paymentIntent = realm?.paymentIntents.get(id);
    if (realm === null || paymentIntent?.status !== "requires_action") return null;
    const call = this.#callFor(realm, id, {}, false);
    return this.#settled(realm, id, () =>
      outcome === "complete"
        ? completeAuthentication(call, paymentIntent)
        : failAuthentication(call, paymentIntent),
    );
  }

  /** A confirm from the browser, with the client secret, past every fault. Throws StripeFailure where the guard says no. */
  confirm(id: string, params: Params): Stripe.PaymentIntent | null {
    const realm = this.realmOf(id);
    if (realm === null) return null;
    const call = this.#callFor(realm, id, params, true);
    return this.#settled(realm, id, () => confirmPaymentIntent(call));
  }

  #settled(realm: Realm, id: string, act: () => Stripe.PaymentIntent): Stripe.PaymentIntent {
    try {
      return act();
    } catch (error) {
      // A decline is an outcome here: the object tells of it.
      const declined =
        error instanceof StripeFailure && error.status === 402 ? realm.paymentIntents.get(id) : undefined;
      if (declined === undefined) throw error;
      return declined;
    } finally {
      this.#store.commit();
    }
  }
}

/** A call that comes from no merchant's request: no idempotency key, an id of its own. */
export function browserRequest(): { requestId: string; idempotencyKey: null; stripeVersion: string } {
  return { requestId: requestId(), idempotencyKey: null, stripeVersion: API_VERSION };
}
