import type Stripe from "stripe";
import { type CallFor, emit } from "./call.js";
import type { Realm, Store } from "./store.js";

/** One PaymentIntent with everything that hangs on it, in whatever account and mode. */
export interface PaymentIntentRecord {
  readonly account: string;
  readonly livemode: boolean;
  readonly payment_intent: Stripe.PaymentIntent;
  readonly charges: readonly Stripe.Charge[];
  /** Charges with status `succeeded`. */
  readonly successful_charges: number;
}

export interface ObjectFilter {
  readonly account?: string;
  readonly status?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface Counts {
  readonly payment_intents: number;
  readonly charges: number;
  readonly successful_charges: number;
  /** Successful charges by PaymentIntent; one without is left out. */
  readonly by_payment_intent: Readonly<Record<string, number>>;
  /** Successful charges and objects by the value of the metadata key that was asked for. */
  readonly by_metadata: Readonly<Record<string, { payment_intents: number; successful_charges: number }>>;
}

export function listRecords(store: Store, filter: ObjectFilter = {}): PaymentIntentRecord[] {
  const records: PaymentIntentRecord[] = [];
  for (const realm of store.realms.values()) {
    if (filter.account !== undefined && filter.account !== realm.account) continue;
    const charges = chargesByObject(realm);
    for (const id of realm.paymentIntentOrder) {
      const paymentIntent = realm.paymentIntents.get(id);
      if (paymentIntent === undefined || !matches(paymentIntent, filter)) continue;
      records.push(recordOf(realm, paymentIntent, charges.get(id) ?? []));
    }
  }
  return records;
}

export function countObjects(store: Store, metadataKey: string | null): Counts {
  const byObject: Record<string, number> = {};
  const byMetadata: Record<string, { payment_intents: number; successful_charges: number }> = {};
  let objects = 0;
  let charges = 0;
  let successful = 0;
  for (const record of listRecords(store)) {
    objects += 1;
    charges += record.charges.length;
    successful += record.successful_charges;
    if (record.successful_charges > 0) byObject[record.payment_intent.id] = record.successful_charges;
    const value = metadataKey === null ? undefined : record.payment_intent.metadata[metadataKey];
    if (value === undefined) continue;
    const count = (byMetadata[value] ??= { payment_intents: 0, successful_charges: 0 });
    count.payment_intents += 1;
    count.successful_charges += record.successful_charges;
  }
  return {
    payment_intents: objects,
    charges,
    successful_charges: successful,
    by_payment_intent: byObject,
    by_metadata: byMetadata,
  };
}

/** Overwrites members of the object as no call could, for tests of wrong facts; with an event of it where asked for. */
export function patchObject(
  store: Store,
  callFor: CallFor,
  realm: Realm,
  id: string,
  changes: Readonly<Record<string, unknown>>,
  event: string | null,
): PaymentIntentRecord {
  const old = realm.paymentIntents.get(id) as Stripe.PaymentIntent;
  const patched = { ...old, ...changes, id } as Stripe.PaymentIntent;
  store.savePaymentIntent(realm, patched);
  if (event !== null) emit(callFor(realm, id, {}, false), event, patched);
  store.commit();
  return recordOf(realm, patched, chargesByObject(realm).get(id) ?? []);
}

function recordOf(
  realm: Realm,
  paymentIntent: Stripe.PaymentIntent,
  charges: readonly Stripe.Charge[],
): PaymentIntentRecord {
  return {
    account: realm.account,
    livemode: realm.livemode,
    payment_intent: paymentIntent,
    charges,
    successful_charges: charges.filter((charge) => charge.status === "succeeded").length,
  };
}

function chargesByObject(realm: Realm): Map<string, Stripe.Charge[]> {
  const byObject = new Map<string, Stripe.Charge[]>();
  for (const charge of realm.charges.values()) {
    const id = typeof charge.payment_intent === "string" ? charge.payment_intent : "";
    const list = byObject.get(id);
    if (list === undefined) byObject.set(id, [charge]);
    else list.push(charge);
  }
  return byObject;
}

function matches(paymentIntent: Stripe.PaymentIntent, filter: ObjectFilter): boolean {
  if (filter.status !== undefined && filter.status !== paymentIntent.status) return false;
  return Object.entries(filter.metadata ?? {}).every(
    ([name, value]) => paymentIntent.metadata[name] === value,
  );
}
