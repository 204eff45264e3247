import type Stripe from "stripe";
import { type CallFor, emit } from "./call.js";
import { idOf } from "./ids.js";
import { ControlError } from "./json-shape.js";
import type { Realm, Store } from "./store.js";

/** One PaymentIntent with everything that hangs on it, in whatever account and mode. */
export interface PaymentIntentRecord {
  readonly account: string;
  readonly livemode: boolean;
  readonly payment_intent: Stripe.PaymentIntent;
  readonly charges: readonly Stripe.Charge[];
  /** Charges with status `succeeded`. */
  readonly successful_charges: number;
  /** Oldest first. Released parts of an authorisation are among them: those without a balance transaction. */
  readonly refunds: readonly Stripe.Refund[];
  readonly disputes: readonly Stripe.Dispute[];
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
    const hanging = hangingOn(realm);
    for (const id of realm.paymentIntentOrder) {
      const paymentIntent = realm.paymentIntents.get(id);
      if (paymentIntent === undefined || !matches(paymentIntent, filter)) continue;
      records.push(recordOf(realm, paymentIntent, hanging));
    }
  }
  return records;
}

/** The object and what hangs on it. Throws ControlError 404. */
export function recordById(store: Store, id: string): PaymentIntentRecord {
  const realm = realmHolding(store, id);
  const paymentIntent = realm?.paymentIntents.get(id);
  if (realm === null || paymentIntent === undefined) {
    throw new ControlError(`there is no PaymentIntent ${id}`, 404);
  }
  return recordOf(realm, paymentIntent, hangingOn(realm));
}

/** The account and mode that has an object with this id, of whatever kind; null: none. */
export function realmHolding(store: Store, id: string): Realm | null {
  for (const realm of store.realms.values()) if (objectIn(realm, id) !== undefined) return realm;
  return null;
}

/** The object with this id as it is now. */
export function objectIn(realm: Realm, id: string): Patchable | undefined {
  const { refund, dispute, payout } = realm.tables;
  return (
    realm.paymentIntents.get(id) ??
    realm.charges.get(id) ??
    refund.get(id) ??
    dispute.get(id) ??
    payout.get(id)
  );
}

type Patchable = Stripe.PaymentIntent | Stripe.Charge | Stripe.Refund | Stripe.Dispute | Stripe.Payout;

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

export interface RefundCounts {
  /** That are not failed or canceled, released parts of authorisations left out. */
  readonly refunds: number;
  readonly by_payment_intent: Readonly<Record<string, { refunds: number; amount: number }>>;
  /** By the value of the metadata key that was asked for. */
  readonly by_metadata: Readonly<Record<string, { refunds: number; amount: number }>>;
}

export function countRefunds(store: Store, metadataKey: string | null): RefundCounts {
  const byObject: Record<string, { refunds: number; amount: number }> = {};
  const byMetadata: Record<string, { refunds: number; amount: number }> = {};
  let refunds = 0;
  for (const realm of store.realms.values()) {
    for (const refund of realm.tables.refund.oldestFirst()) {
      if (refund.balance_transaction === null) continue;
      if (refund.status === "failed" || refund.status === "canceled") continue;
      refunds += 1;
      const value = metadataKey === null ? undefined : refund.metadata?.[metadataKey];
      const object = (byObject[idOf(refund.payment_intent)] ??= { refunds: 0, amount: 0 });
      const counts =
        value === undefined ? [object] : [object, (byMetadata[value] ??= { refunds: 0, amount: 0 })];
      for (const count of counts) {
        count.refunds += 1;
        count.amount += refund.amount;
      }
    }
  }
  return { refunds, by_payment_intent: byObject, by_metadata: byMetadata };
}

/**
 * Overwrites members of an object as no call could, for tests of wrong facts; with an event of it where asked for.
 * Throws ControlError 404.
 */
export function patchObject(
  store: Store,
  callFor: CallFor,
  id: string,
  changes: Readonly<Record<string, unknown>>,
  event: string | null,
): object {
  const realm = realmHolding(store, id);
  const old = realm === null ? undefined : objectIn(realm, id);
  if (realm === null || old === undefined) throw new ControlError(`there is no object ${id}`, 404);
  const patched = { ...old, ...changes, id, object: old.object } as Patchable;
  saveObject(store, realm, patched);
  if (event !== null) emit(callFor(realm, id, {}, false), event, patched);
  store.commit();
  return patched;
}

function saveObject(store: Store, realm: Realm, object: Patchable): void {
  switch (object.object) {
    case "payment_intent":
      return store.savePaymentIntent(realm, object);
    case "charge":
      return store.saveCharge(realm, object);
    case "refund":
      return store.saveRow(realm, "refund", object);
    case "dispute":
      return store.saveRow(realm, "dispute", object);
    case "payout":
      return store.saveRow(realm, "payout", object);
  }
}

interface Hanging {
  readonly charges: ReadonlyMap<string, Stripe.Charge[]>;
  readonly refunds: ReadonlyMap<string, Stripe.Refund[]>;
  readonly disputes: ReadonlyMap<string, Stripe.Dispute[]>;
}

function hangingOn(realm: Realm): Hanging {
  return {
    charges: byPaymentIntent([...realm.charges.values()]),
    refunds: byPaymentIntent(realm.tables.refund.oldestFirst()),
    disputes: byPaymentIntent(realm.tables.dispute.oldestFirst()),
  };
}

function recordOf(realm: Realm, paymentIntent: Stripe.PaymentIntent, hanging: Hanging): PaymentIntentRecord {
  const charges = hanging.charges.get(paymentIntent.id) ?? [];
  return {
    account: realm.account,
    livemode: realm.livemode,
    payment_intent: paymentIntent,
    charges,
    successful_charges: charges.filter((charge) => charge.status === "succeeded").length,
    refunds: hanging.refunds.get(paymentIntent.id) ?? [],
    disputes: hanging.disputes.get(paymentIntent.id) ?? [],
  };
}

function byPaymentIntent<T extends { payment_intent: unknown }>(objects: readonly T[]): Map<string, T[]> {
  const byObject = new Map<string, T[]>();
  for (const object of objects) {
    const id = typeof object.payment_intent === "string" ? object.payment_intent : "";
    const list = byObject.get(id);
    if (list === undefined) byObject.set(id, [object]);
    else list.push(object);
  }
  return byObject;
}

function matches(paymentIntent: Stripe.PaymentIntent, filter: ObjectFilter): boolean {
  if (filter.status !== undefined && filter.status !== paymentIntent.status) return false;
  return Object.entries(filter.metadata ?? {}).every(
    ([name, value]) => paymentIntent.metadata[name] === value,
  );
}
