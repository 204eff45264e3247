import type Stripe from "stripe";
import type { Caller } from "./accounts.js";
import type { DueStep } from "./agenda.js";
import { resourceMissing } from "./errors.js";
import type { Params } from "./form.js";
import { stripeId } from "./ids.js";
import type { LiveSettings } from "./settings.js";
import type { Realm, Store, StoredEvent } from "./store.js";

/** The version whose shapes the sandbox speaks: the one stripe@23.1.0 is pinned to. */
export const API_VERSION = "2026-10-28.endive";

/** What every call has, whoever makes it. */
export interface CallEnvironment {
  readonly store: Store;
  readonly realm: Realm;
  /** Unix seconds, on the sandbox's clock. */
  readonly nowSeconds: number;
  readonly nowMs: number;
  readonly settings: LiveSettings;
  /** Where the sandbox's own pages are, for redirects. */
  readonly publicUrl: string;
  readonly pendingWebhooks: number;
  readonly publish: (realm: Realm, event: StoredEvent) => void;
  /** Something happens by itself to the object with this id; `dueMs` is milliseconds since 1970. */
  readonly schedule: (kind: DueStep["kind"], id: string, dueMs: number) => void;
}

/** One call as an operation sees it, past authentication, key layer and validation. */
export interface Call extends CallEnvironment {
  readonly caller: Caller;
  readonly params: Params;
  /** The id in the path, where the path has one. */
  readonly objectId: string | null;
  /** Null: what the provider does by itself. */
  readonly requestId: string | null;
  readonly idempotencyKey: string | null;
  /** `Stripe-Version` as sent, or the account's. */
  readonly stripeVersion: string;
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

/** What an event says that does not follow from its object. */
export interface EventDetails {
  readonly api_version?: string;
  readonly livemode?: boolean;
}

/**
 * Records an event of the object as it is now, and hands it to the webhooks. `previous` goes with the `*.updated` types:
 * what the changed members were before.
 */
export function emit(
  call: Call,
  type: string,
  object: object,
  previous?: object,
  details: EventDetails = {},
): Stripe.Event {
  const event = {
    id: stripeId("evt"),
    object: "event",
    api_version: API_VERSION,
    created: call.nowSeconds,
    data: { object, ...(previous === undefined ? {} : { previous_attributes: previous }) },
    livemode: call.realm.livemode,
    pending_webhooks: call.pendingWebhooks,
    request: { id: call.requestId, idempotency_key: call.idempotencyKey },
    type,
    ...details,
  } as unknown as Stripe.Event;
  call.publish(call.realm, call.store.saveEvent(call.realm, event));
  return event;
}
