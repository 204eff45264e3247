import type {
  ListedCharge,
  ListedEvent,
  ListedTransaction,
  PageOutcome,
  PageRequest,
  ProviderDispute,
  ProviderLists,
  ProviderRefund,
} from "../../src/domain/provider.js";
import { type Arrival, chargeOf, disputeOf, evidenceOf, refundOf, unansweredOf } from "./port-answers.js";
import type { ProviderModel } from "./provider-model.js";
import { CURRENCY, feeOf, type Intent } from "./provider-objects.js";
import { EPOCH_MS } from "./simulated-database.js";

/** Asks over the network; what is read is read when the question arrives. */
export type AskList = <Item>(about: string, read: () => readonly Item[]) => Promise<PageOutcome<Item>>;

/** One page each, newest first: paging itself is the adapter's business, and is tested there. */
export function listsOf(model: ProviderModel, ask: AskList): ProviderLists {
  const within = (page: PageRequest) => (one: { readonly createdAtMs: number }) => {
    const at = EPOCH_MS + one.createdAtMs;
    return at >= page.createdFrom.getTime() && at <= page.createdTo.getTime();
  };
  const intents = (page: PageRequest) => [...model.intents.values()].filter(within(page)).toReversed();
  const ofIntents = <Item extends { readonly intentId: string }>(
    items: Iterable<Item>,
    page: PageRequest,
  ) => {
    const ids = new Set(intents(page).map((intent) => intent.id));
    return [...items].filter((item) => ids.has(item.intentId)).toReversed();
  };
  return {
    listCharges: (page) => ask<ListedCharge>("list charges", () => intents(page).map(listedCharge)),
    listRefunds: (page) =>
      ask<ProviderRefund>("list refunds", () => ofIntents(model.refunds.values(), page).map(refundOf)),
    listDisputes: (page) =>
      ask<ProviderDispute>("list disputes", () => ofIntents(model.disputes.values(), page).map(disputeOf)),
    listTransactions: (page) =>
      ask<ListedTransaction>("list transactions", () => intents(page).flatMap(transactionOf)),
    listUndeliveredEvents: () => ask<ListedEvent>("list undelivered events", () => []),
  };
}

function listedCharge(intent: Intent): ListedCharge {
  return {
    ...chargeOf(intent, null),
    createdAt: new Date(EPOCH_MS + intent.createdAtMs),
    captureMethod: intent.manual ? "manual" : "automatic",
    paymentMethod: intent.card,
    customer: null,
    description: null,
  };
}

function transactionOf(intent: Intent): ListedTransaction[] {
  if (intent.captured === 0) return [];
  return [
    {
      id: `txn_${intent.id}`,
      amount: intent.captured,
      fee: feeOf(intent.captured),
      currency: CURRENCY,
      of: { type: "charge", chargeId: intent.id },
    },
  ];
}

export function pageOf<Item>(arrival: Arrival, items: readonly Item[]): PageOutcome<Item> {
  const evidence = evidenceOf(arrival);
  return unansweredOf(arrival) ?? { type: "page", items, unreadable: [], oldest: null, next: null, evidence };
}
