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
import { EPOCH_MS } from "./host.js";
import { type Arrival, chargeOf, disputeOf, evidenceOf, refundOf, unansweredOf } from "./port-answers.js";
import type { ProviderModel } from "./provider-model.js";
import { CURRENCY, feeOf, type Intent } from "./provider-objects.js";

/** Asks over the network; what is read is read when the question arrives. */
export type AskList = <Item>(about: string, read: () => readonly Item[]) => Promise<PageOutcome<Item>>;

/** One page each, newest first: paging itself is the adapter's business, and is tested there. */
export function listsOf(
  model: ProviderModel,
  undelivered: () => readonly ListedEvent[],
  ask: AskList,
): ProviderLists {
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
      ask<ListedTransaction>("list transactions", () =>
        intents(page).flatMap((intent) => transactionsOf(intent, model)),
      ),
    listUndeliveredEvents: () => ask<ListedEvent>("list undelivered events", undelivered),
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

function transactionsOf(intent: Intent, model: ProviderModel): ListedTransaction[] {
  const { id: chargeId, captured: amount } = intent;
  const charge = { id: `txn_${chargeId}`, amount, fee: feeOf(amount), currency: CURRENCY };
  const disputes = [...model.disputes.values()].filter((dispute) => dispute.intentId === chargeId);
  return [
    ...(amount === 0 ? [] : [{ ...charge, of: { type: "charge", chargeId } as const }]),
    ...disputes.flatMap(({ id: disputeId, movements }) =>
      movements.map(({ transactionId, ...movement }) => ({
        ...movement,
        id: transactionId,
        of: { type: "dispute", disputeId, chargeId } as const,
      })),
    ),
  ];
}

export function pageOf<Item>(arrival: Arrival, items: readonly Item[]): PageOutcome<Item> {
  const evidence = evidenceOf(arrival);
  return unansweredOf(arrival) ?? { type: "page", items, unreadable: [], oldest: null, next: null, evidence };
}
