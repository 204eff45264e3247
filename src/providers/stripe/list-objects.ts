import type Stripe from "stripe";
import type {
  ListedCharge,
  ListedEvent,
  ListedTransaction,
  PageOutcome,
  PageRequest,
  ProviderDispute,
  ProviderLists,
  ProviderRefund,
  TransactionSubject,
} from "../../domain/provider.js";
import { toBalanceTransaction } from "./balance-transaction.js";
import { toProviderDispute } from "./dispute-outcome.js";
import { cursorBehind, PAGE_SIZE, refusalOf, refused, startingAfter, unanswered } from "./list-pages.js";
import { PAYOUT_TYPES, readNotice } from "./notice.js";
import { idOf, isFields, toProviderCharge } from "./outcome.js";
import { SOURCE_EXPANSIONS } from "./payout-movements.js";
import { toProviderRefund } from "./refund-outcome.js";
import { type SdkAnswer, text, time, type WireAnswer } from "./wire-answer.js";

/** Pages of Stripe's lists, newest first and immediately consistent (docs.stripe.com/api-v2-overview, on v1). */
export class StripeLists implements ProviderLists {
  constructor(
    private readonly stripe: Stripe,
    private readonly ask: (request: SdkAnswer) => Promise<WireAnswer>,
  ) {}

  listCharges(page: PageRequest): Promise<PageOutcome<ListedCharge>> {
    return this.#page(page, this.stripe.paymentIntents.list(parametersOf(page)), toListedCharge);
  }

  listRefunds(page: PageRequest): Promise<PageOutcome<ProviderRefund>> {
    return this.#page(page, this.stripe.refunds.list(parametersOf(page)), toProviderRefund);
  }

  listDisputes(page: PageRequest): Promise<PageOutcome<ProviderDispute>> {
    return this.#page(page, this.stripe.disputes.list(parametersOf(page)), toProviderDispute);
  }

  listTransactions(page: PageRequest): Promise<PageOutcome<ListedTransaction>> {
    const parameters = { ...parametersOf(page), expand: SOURCE_EXPANSIONS };
    return this.#page(page, this.stripe.balanceTransactions.list(parameters), toListedTransaction);
  }

  /** Those that are pending are among them too: a stored one is not stored twice. Stripe keeps events for 30 days. */
  listUndeliveredEvents(page: PageRequest): Promise<PageOutcome<ListedEvent>> {
    const parameters = { ...parametersOf(page), delivery_success: false };
    return this.#page(page, this.stripe.events.list(parameters), toUndeliveredEvent);
  }

  /** Up to 20 types a list (docs.stripe.com/api/events/list). */
  listPayoutEvents(page: PageRequest): Promise<PageOutcome<ListedEvent>> {
    const parameters = { ...parametersOf(page), types: [...PAYOUT_TYPES] };
    return this.#page(page, this.stripe.events.list(parameters), toListedEvent);
  }

  async #page<Item>(
    { cursor }: PageRequest,
    request: SdkAnswer,
    read: (entry: unknown) => Item | "skip" | null,
  ): Promise<PageOutcome<Item>> {
    const answer = await this.ask(request);
    const refusal = refusalOf(answer);
    if (refusal !== null) return refusal.type === "missing" ? refused(answer) : refusal;
    return readPage(answer, read, cursor) ?? unanswered(answer, "unreadable");
  }
}

/** Whole seconds, as `created` is: the one that the window begins in is in it, and the one that it ends in too. */
function parametersOf({ createdFrom, createdTo, cursor }: PageRequest) {
  const created = { gte: secondOf(createdFrom), lte: secondOf(createdTo) };
  return { created, limit: PAGE_SIZE, ...startingAfter(cursor) };
}

function secondOf(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}

/** Null where what was read is no page. An entry that cannot be read is named, so that one does not hide the others. */
function readPage<Item>(
  { body, evidence }: WireAnswer,
  read: (entry: unknown) => Item | "skip" | null,
  cursor: string | null,
): PageOutcome<Item> | null {
  const { data, has_more: more } = isFields(body) ? body : {};
  if (!Array.isArray(data) || typeof more !== "boolean") return null;
  const entries = data as readonly unknown[];
  const items: Item[] = [];
  const unreadable: string[] = [];
  for (const entry of entries) {
    const id = idOf(entry);
    if (id === null) return null;
    const item = read(entry);
    if (item === null) unreadable.push(id);
    else if (item !== "skip") items.push(item);
  }
  const last = entries.at(-1);
  const next = more ? cursorBehind(idOf(last), cursor) : null;
  const oldest = last === undefined ? null : createdAt(last);
  // An empty page says with its `has_more` that it is none.
  if (more && next === null) return null;
  if (last !== undefined && oldest === null) return null;
  return { type: "page", items, unreadable, oldest, next, evidence };
}

/** `created`: Unix seconds. */
function createdAt(entry: unknown): Date | null {
  return isFields(entry) ? time(entry["created"]) : null;
}

function toListedCharge(entry: unknown): ListedCharge | null {
  const charge = toProviderCharge(entry);
  const made = createdAt(entry);
  if (charge === null || made === null || !isFields(entry)) return null;
  return {
    ...charge,
    createdAt: made,
    captureMethod: entry["capture_method"] === "manual" ? "manual" : "automatic",
    paymentMethod: idOf(entry["payment_method"]),
    customer: idOf(entry["customer"]),
    description: text(entry["description"]),
  };
}

function toListedTransaction(entry: unknown): ListedTransaction | null {
  const transaction = toBalanceTransaction(entry);
  if (transaction === null) return null;
  const { id, amount, fee, currency, source } = transaction;
  const type = isFields(entry) ? entry["type"] : null;
  return { id, amount, fee, currency, of: subjectOf(source, type) };
}

/** By the kind of its source, which was expanded (docs.stripe.com/api/balance_transactions/object). */
function subjectOf(source: unknown, type: unknown): TransactionSubject {
  const sourceId = idOf(source);
  if (!isFields(source) || sourceId === null) return { type: "other" };
  const chargeId = idOf(source["payment_intent"]);
  switch (source["object"]) {
    case "charge":
      // A charge's other movements (`adjustment`, `payment_failure_refund`, …) are not its capture.
      return type === "charge" || type === "payment" ? { type: "charge", chargeId } : { type: "other" };
    case "refund": {
      const isReversal = type === "refund_failure" || type === "payment_refund_failure";
      return { type: "refund", refundId: sourceId, chargeId, isReversal };
    }
    case "dispute":
      return { type: "dispute", disputeId: sourceId, chargeId };
    default:
      return { type: "other" };
  }
}

/** `pending_webhooks` counts the endpoints that do not have it yet (docs.stripe.com/api/events/object). */
function toUndeliveredEvent(entry: unknown): ListedEvent | "skip" | null {
  return isFields(entry) && entry["pending_webhooks"] === 0 ? "skip" : toListedEvent(entry);
}

function toListedEvent(entry: unknown): ListedEvent | null {
  const payload = JSON.stringify(entry);
  const notice = readNotice(Buffer.from(payload));
  return notice === null ? null : { notice, payload };
}
