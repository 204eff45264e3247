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
import type { DatedEvent } from "./notices.js";
import { type Arrival, chargeOf, disputeOf, evidenceOf, refundOf, unansweredOf } from "./port-answers.js";
import type { ProviderModel } from "./provider-model.js";
import { CURRENCY, feeOf, type Intent, type SimulatedRefund } from "./provider-objects.js";

/** Asks over the network; what is read is read when the question arrives. */
export type AskList = <Item>(about: string, read: () => readonly Item[]) => Promise<PageOutcome<Item>>;

export interface ListedEvents {
  readonly undelivered: () => readonly ListedEvent[];
  readonly ofPayouts: () => readonly DatedEvent[];
}

/** One page each, newest first: paging itself is the adapter's business, and is tested there. */
export function listsOf(
  model: ProviderModel,
  account: string,
  events: ListedEvents,
  ask: AskList,
): ProviderLists {
  const within = (page: PageRequest, atMs: number | undefined) => {
    const at = EPOCH_MS + (atMs ?? 0);
    return atMs !== undefined && at >= page.createdFrom.getTime() && at <= page.createdTo.getTime();
  };
  const visible = () => [...model.intents.values()].filter(({ id }) => model.visible(id, account) !== null);
  const intents = (page: PageRequest) =>
    visible()
      .filter(({ createdAtMs }) => within(page, createdAtMs))
      .toReversed();
  const made = <Item extends { readonly intentId: string; readonly createdAtMs: number }>(
    items: Iterable<Item>,
    page: PageRequest,
  ) => {
    const ids = new Set(visible().map(({ id }) => id));
    const those = [...items].filter((one) => ids.has(one.intentId) && within(page, one.createdAtMs));
    return those.toReversed();
  };
  return {
    listCharges: (page) => ask<ListedCharge>("list charges", () => intents(page).map(listedCharge)),
    listRefunds: (page) =>
      ask<ProviderRefund>("list refunds", () => made(model.refunds.values(), page).map(refundOf)),
    listDisputes: (page) =>
      ask<ProviderDispute>("list disputes", () => made(model.disputes.values(), page).map(disputeOf)),
    listTransactions: (page) =>
      ask<ListedTransaction>("list transactions", () =>
        visible()
          .flatMap((intent) => transactionsOf(intent, model))
          .filter(({ id }) => within(page, model.movedAtMs.get(id)))
          .toReversed(),
      ),
    listUndeliveredEvents: () => ask<ListedEvent>("list undelivered events", events.undelivered),
    listPayoutEvents: (page) =>
      ask<ListedEvent>("list events of payouts", () =>
        events.ofPayouts().filter(({ atMs }) => within(page, atMs)),
      ),
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
    ...model.refundsOf(intent).flatMap((refund) => refundTransactions(refund)),
    ...disputes.flatMap(({ id: disputeId, movements }) =>
      movements.map(({ transactionId, ...movement }) => ({
        ...movement,
        id: transactionId,
        of: { type: "dispute", disputeId, chargeId } as const,
      })),
    ),
  ];
}

/** What went out with a refund, and what came back of one that failed. */
function refundTransactions({
  id,
  intentId: chargeId,
  amount,
  status,
}: SimulatedRefund): ListedTransaction[] {
  const of = { type: "refund", refundId: id, chargeId } as const;
  const moved = { fee: 0, currency: CURRENCY };
  return [
    { ...moved, id: `txn_${id}`, amount: -amount, of: { ...of, isReversal: false } },
    ...(status === "failed"
      ? [{ ...moved, id: `txn_${id}_failure`, amount, of: { ...of, isReversal: true } }]
      : []),
  ];
}

export function pageOf<Item>(arrival: Arrival, items: readonly Item[]): PageOutcome<Item> {
  const evidence = evidenceOf(arrival);
  return unansweredOf(arrival) ?? { type: "page", items, unreadable: [], oldest: null, next: null, evidence };
}
