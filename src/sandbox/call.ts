import type Stripe from "stripe";
import type { Caller } from "./accounts.js";
import { resourceMissing } from "./errors.js";
import type { Params } from "./form.js";
import { stripeId } from "./ids.js";
import type { Realm, Store, StoredEvent } from "./store.js";

/** The version whose shapes the sandbox speaks: the one stripe@23.1.0 is pinned to. */
export const API_VERSION = "2026-10-28.endive";

/** One call as an operation sees it, past authentication, key layer and validation. */
export interface Call {
  readonly store: Store;
  readonly realm: Realm;
  readonly caller: Caller;
  readonly params: Params;
  /** The id in the path, where the path has one. */
  readonly objectId: string | null;
  readonly nowSeconds: number;
  readonly requestId: string;
  readonly idempotencyKey: string | null;
  /** `Stripe-Version` as sent, or the account's. */
  readonly stripeVersion: string;
  /** Where the sandbox's own pages are, for redirects. */
  readonly publicUrl: string;
  readonly searchLagSeconds: number;
  readonly pendingWebhooks: number;
  readonly publish: (realm: Realm, event: StoredEvent) => void;
}

/** A call made by nobody's request: the customer's browser, or the control API. */
export type CallFor = (realm: Realm, objectId: string, params: Params, publishable: boolean) => Call;

/** The object in the path. Throws 404 for an unknown id, another account's and another mode's alike. */
export function paymentIntentOf(call: Call): Stripe.PaymentIntent {
  const id = call.objectId ?? "";
  const found = call.realm.paymentIntents.get(id);
  if (found === undefined) throw resourceMissing(404, "payment_intent", id, "intent");
  return found;
}

/** Records an event of the object as it is now, and hands it to the webhooks. */
export function emit(call: Call, type: string, object: Stripe.PaymentIntent): void {
  const event = {
    id: stripeId("evt"),
    object: "event",
    api_version: API_VERSION,
    created: call.nowSeconds,
    data: { object },
    livemode: call.realm.livemode,
    pending_webhooks: call.pendingWebhooks,
    request: { id: call.requestId, idempotency_key: call.idempotencyKey },
    type,
  } as Stripe.Event;
  call.publish(call.realm, call.store.saveEvent(call.realm, event));
}
