import type Stripe from "stripe";
import type { Journal, JournalOperation } from "./journal.js";
import type { KeyRecord } from "./key-record.js";
import { ObjectTable } from "./object-table.js";
import type { StoredPaymentMethod } from "./payment-methods.js";
import { ROW_KINDS, type RowKind, type Rows } from "./rows.js";

export interface StoredEvent {
  readonly event: Stripe.Event;
  /** Rising over the whole sandbox: the order in which things happened. */
  readonly sequence: number;
}

// Enough for every test and for a look back; a benchmark must not fill the memory with events nobody reads.
const MOST_EVENTS = 20_000;

/** Everything that belongs to one account in one mode. */
export class Realm {
  readonly paymentIntents = new Map<string, Stripe.PaymentIntent>();
  /** Ids by `created`, oldest first; within one second by arrival. */
  readonly paymentIntentOrder: string[] = [];
  readonly charges = new Map<string, Stripe.Charge>();
  readonly paymentMethods = new Map<string, StoredPaymentMethod>();
  /** What follows a charge. */
  readonly tables: { readonly [Kind in RowKind]: ObjectTable<Rows[Kind]> } = {
    refund: new ObjectTable(),
    dispute: new ObjectTable(),
    payout: new ObjectTable(),
    balance_transaction: new ObjectTable(),
  };
  readonly events: StoredEvent[] = [];
  readonly keys = new Map<string, KeyRecord>();
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  get account(): string {
    return this.name.slice(0, this.name.indexOf("/"));
  }

  get livemode(): boolean {
    return this.name.endsWith("/live");
  }
}

/**
 * The sandbox's state, and the only writer of it. Each save is also a journal operation; `commit` writes those of one
 * request as one line before its answer goes out, so that a killed process never answered what it forgot.
 */
export class Store {
  readonly realms = new Map<string, Realm>();
  readonly #journal: Journal | null;
  #operations: JournalOperation[] = [];
  #eventSequence = 0;

  constructor(journal: Journal | null) {
    this.#journal = journal;
    if (journal === null) return;
    for (const operation of journal.read()) this.#apply(operation);
    journal.rewrite(this.#snapshot());
  }

  realm(name: string): Realm {
    let realm = this.realms.get(name);
    if (realm === undefined) {
      realm = new Realm(name);
      this.realms.set(name, realm);
    }
    return realm;
  }

  savePaymentIntent(realm: Realm, paymentIntent: Stripe.PaymentIntent): void {
    const isNew = !realm.paymentIntents.has(paymentIntent.id);
    realm.paymentIntents.set(paymentIntent.id, paymentIntent);
    if (isNew) insertByCreated(realm, paymentIntent);
    this.#record(["payment_intent", realm.name, paymentIntent]);
  }

  dropPaymentIntent(realm: Realm, id: string): void {
    if (!realm.paymentIntents.delete(id)) return;
    realm.paymentIntentOrder.splice(realm.paymentIntentOrder.indexOf(id), 1);
    this.#record(["payment_intent_dropped", realm.name, id]);
  }

  saveCharge(realm: Realm, charge: Stripe.Charge): void {
    realm.charges.set(charge.id, charge);
    this.#record(["charge", realm.name, charge]);
  }

  saveRow<Kind extends RowKind>(realm: Realm, kind: Kind, row: Rows[Kind]): void {
    realm.tables[kind].save(row);
    this.#record(["row", realm.name, kind, row] as JournalOperation);
  }

  savePaymentMethod(realm: Realm, paymentMethod: StoredPaymentMethod): void {
    realm.paymentMethods.set(paymentMethod.id, paymentMethod);
    this.#record(["payment_method", realm.name, paymentMethod]);
  }

  saveEvent(realm: Realm, event: Stripe.Event): StoredEvent {
    const stored = { event, sequence: ++this.#eventSequence };
    realm.events.push(stored);
    if (realm.events.length > MOST_EVENTS) realm.events.splice(0, MOST_EVENTS / 10);
    this.#record(["event", realm.name, event]);
    return stored;
  }

  saveKey(realm: Realm, key: string, record: KeyRecord): void {
    realm.keys.set(key, record);
    // A claim is not written down: a restart ends the request that held it, without a result.
    if (record.answer !== null) this.#record(["key", realm.name, key, record]);
  }

  dropKey(realm: Realm, key: string): void {
    if (realm.keys.delete(key)) this.#record(["key_dropped", realm.name, key]);
  }

  /** A setting of the sandbox itself (clock, accounts) that outlives a restart. */
  saveSetting(name: string, value: unknown): void {
    this.settings.set(name, value);
    this.#record(["setting", name, value]);
    this.commit();
  }

  readonly settings = new Map<string, unknown>();

  commit(): void {
    if (this.#operations.length === 0) return;
    const operations = this.#operations;
    this.#operations = [];
    this.#journal?.append(operations);
  }

  /** Forgets everything, on disk too. */
  reset(): void {
    this.realms.clear();
    this.settings.clear();
    this.#operations = [];
    this.#journal?.rewrite([]);
  }

  close(): void {
    this.commit();
    this.#journal?.close();
  }

  #record(operation: JournalOperation): void {
    if (this.#journal !== null) this.#operations.push(operation);
  }

  #apply(operation: JournalOperation): void {
    switch (operation[0]) {
      case "payment_intent":
        return this.savePaymentIntent(this.realm(operation[1]), operation[2]);
      case "payment_intent_dropped":
        return this.dropPaymentIntent(this.realm(operation[1]), operation[2]);
      case "charge":
        return this.saveCharge(this.realm(operation[1]), operation[2]);
      case "row":
        return this.saveRow(this.realm(operation[1]), operation[2], operation[3]);
      case "payment_method":
        return this.savePaymentMethod(this.realm(operation[1]), operation[2]);
      case "event":
        this.saveEvent(this.realm(operation[1]), operation[2]);
        return;
      case "key":
        return this.saveKey(this.realm(operation[1]), operation[2], operation[3]);
      case "key_dropped":
        this.realm(operation[1]).keys.delete(operation[2]);
        return;
      case "setting":
        this.settings.set(operation[1], operation[2]);
        return;
    }
  }

  #snapshot(): JournalOperation[] {
    this.#operations = [];
    const operations: JournalOperation[] = [];
    for (const [name, value] of this.settings) operations.push(["setting", name, value]);
    for (const realm of this.realms.values()) {
      for (const id of realm.paymentIntentOrder) {
        const paymentIntent = realm.paymentIntents.get(id);
        if (paymentIntent !== undefined) operations.push(["payment_intent", realm.name, paymentIntent]);
      }
      for (const charge of realm.charges.values()) operations.push(["charge", realm.name, charge]);
      for (const kind of ROW_KINDS) {
        for (const row of realm.tables[kind].oldestFirst()) {
          operations.push(["row", realm.name, kind, row] as JournalOperation);
        }
      }
      for (const method of realm.paymentMethods.values())
        operations.push(["payment_method", realm.name, method]);
      for (const [key, record] of realm.keys) operations.push(["key", realm.name, key, record]);
    }
    const events = [...this.realms.values()].flatMap((realm) =>
      realm.events.map((stored) => ({ realm, stored })),
    );
    events.sort((a, b) => a.stored.sequence - b.stored.sequence);
    for (const { realm, stored } of events) operations.push(["event", realm.name, stored.event]);
    return operations;
  }
}

function insertByCreated(realm: Realm, paymentIntent: Stripe.PaymentIntent): void {
  const order = realm.paymentIntentOrder;
  let at = order.length;
  // Only a clock that was set back makes this step at all.
  while (at > 0 && createdOf(realm, order[at - 1]) > paymentIntent.created) at -= 1;
  if (at === order.length) order.push(paymentIntent.id);
  else order.splice(at, 0, paymentIntent.id);
}

function createdOf(realm: Realm, id: string | undefined): number {
  return (id === undefined ? undefined : realm.paymentIntents.get(id))?.created ?? 0;
}
