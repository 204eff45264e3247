import { expect } from "vitest";
import type { LoggedRequest, PaymentIntentRecord, SandboxControl } from "../../src/sandbox/index.js";
import type { ApiClient, PaymentDocument, TimelineDocument } from "./api-client.js";
import {
  type EntryDocument,
  type EventDocument,
  entriesOf,
  eventsAbout,
  listEvents,
  objectIdOf,
  type RefundDocument,
  refundsOf,
} from "./merchant.js";
import { until } from "./until.js";

/** How long work may go on after an answer: under the patience of any test. */
const SETTLE_MS = 15_000;
const READ_AT_ONCE = 5;

/** Everything that is known about one payment, at Pawl by HTTP and at the provider by its control API. */
interface Seen {
  readonly payment: PaymentDocument;
  readonly refunds: readonly RefundDocument[];
  readonly timeline: readonly (TimelineDocument & { readonly refund_id?: string | null })[];
  readonly entries: readonly EntryDocument[];
  readonly events: readonly EventDocument[];
  readonly record: PaymentIntentRecord;
  readonly log: readonly LoggedRequest[];
}

const PROVIDER_STATUS: Readonly<Record<string, string>> = {
  succeeded: "succeeded",
  authorized: "requires_capture",
  requires_action: "requires_action",
  failed: "canceled",
  canceled: "canceled",
};

/**
 * The settle checks after what follows a charge: nothing is at work, ours is in the state of the provider's object and
 * its amounts, no effect happened twice, the books say the same, and each fact has one event. Waits for the work that
 * goes on after an answer (a fee that is posted, an event that is due).
 */
export async function expectOneTruth(
  client: ApiClient,
  control: SandboxControl,
  ids: readonly string[],
): Promise<void> {
  let faults: string[] = [];
  await until(
    `${ids.length} payments at rest and without a fault`,
    async () => {
      faults = await faultsOfAll(client, control, ids);
      return faults;
    },
    (found) => found.length === 0,
    SETTLE_MS,
  ).catch(() => undefined);
  expect(faults, "settle checks").toEqual([]);
}

async function faultsOfAll(
  client: ApiClient,
  control: SandboxControl,
  ids: readonly string[],
): Promise<string[]> {
  const read = [];
  for (let from = 0; from < ids.length; from += READ_AT_ONCE) {
    const some = ids.slice(from, from + READ_AT_ONCE);
    read.push(...(await Promise.all(some.map((id) => readOne(client, control, id)))));
  }
  // Read last: what is on a payment by then has its event, and was sent.
  const [events, log] = [await listEvents(client), await control.listRequests()];
  return read.flatMap((one) => {
    const { id } = one.payment;
    return faultsOf({ ...one, log, events: eventsAbout(events, id) }).map((fault) => `${id}: ${fault}`);
  });
}

async function readOne(
  client: ApiClient,
  control: SandboxControl,
  id: string,
): Promise<Omit<Seen, "events" | "log">> {
  const payment = await client.payment(id);
  const [refunds, timeline, entries, record] = await Promise.all([
    refundsOf(client, id),
    client.timeline(id),
    entriesOf(client, id),
    control.getPaymentIntent(objectIdOf(payment)),
  ]);
  return { payment, refunds, timeline, entries, record };
}

function faultsOf(seen: Seen): string[] {
  return [
    ...stateFaults(seen),
    ...refundFaults(seen),
    ...effectFaults(seen),
    ...ledgerFaults(seen),
    ...eventFaults(seen),
  ];
}

function stateFaults({ payment, record }: Seen): string[] {
  const object = record.payment_intent;
  const wanted = PROVIDER_STATUS[payment.status];
  const shown = [payment.amount_captured, payment["amount_capturable"]].join();
  const there = [object.amount_received, object.amount_capturable].join();
  return [
    ...(object.status === wanted ? [] : [`it is ${payment.status}, its object ${object.status}`]),
    ...(shown === there ? [] : [`it shows captured,capturable ${shown}, its object ${there}`]),
    ...(record.successful_charges <= 1 ? [] : [`its object has ${record.successful_charges} charges`]),
    ...(payment.resolution === null ? [] : [`it still says ${payment.resolution.reason}`]),
  ];
}

/** Money given back at the provider; what is only released of an authorisation is none. */
function givenBack(record: PaymentIntentRecord) {
  return record.refunds.filter((one) => one.balance_transaction !== null || one.status !== "succeeded");
}

function refundFaults({ payment, refunds, record }: Seen): string[] {
  const ours = refunds
    .filter((one) => one.provider_refund_id !== null)
    .map((one) => `${one.provider_refund_id ?? ""} ${one.status} ${one.amount}`)
    .toSorted();
  const theirs = givenBack(record)
    .map((one) => `${one.id} ${one.status === "canceled" ? "failed" : (one.status ?? "")} ${one.amount}`)
    .toSorted();
  const sum = (status: string) =>
    refunds.filter((one) => one.status === status).reduce((all, one) => all + one.amount, 0);
  const refunded = sum("succeeded");
  const reserved = refunded + sum("processing") + sum("needs_review");
  const refundable = Math.max(0, payment.amount_captured - reserved);
  return [
    ...(ours.join() === theirs.join()
      ? []
      : [`refunds here ${ours.join()}, at the provider ${theirs.join()}`]),
    ...(refunds.every((one) => one.status !== "processing") ? [] : ["a refund is at work"]),
    ...(payment["amount_refunded"] === refunded
      ? []
      : [`it shows ${String(payment["amount_refunded"])} refunded`]),
    ...(payment["amount_refundable"] === refundable
      ? []
      : [`it shows ${String(payment["amount_refundable"])} refundable, not ${refundable}`]),
    ...(refunded <= payment.amount_captured ? [] : ["more is refunded than was captured"]),
  ];
}

const EFFECT_CALLS = ["payment_intents.capture", "payment_intents.cancel", "refunds.create"];

/** One effect an operation, one provider key an operation, one set of parameters a provider key. */
function effectFaults({ payment, record, log }: Seen): string[] {
  const about = log.filter(
    (one) =>
      EFFECT_CALLS.includes(one.call ?? "") &&
      (one.object_id === payment.provider_payment_id ||
        one.parameters["payment_intent"] === payment.provider_payment_id),
  );
  const applied = (call: string) =>
    about.filter((one) => one.call === call && one.effect === "applied").length;
  const attempts = record.refunds.flatMap((one) => one.metadata?.["payment_attempt_id"] ?? []);
  const keys = new Map<string, Set<string>>();
  for (const { idempotency_key: key, call, parameters } of about) {
    const sent = keys.get(key ?? "") ?? new Set();
    keys.set(key ?? "", sent.add(`${call} ${JSON.stringify(parameters)}`));
  }
  return [
    ...(applied("payment_intents.capture") <= 1 ? [] : ["it was captured twice"]),
    ...(applied("payment_intents.cancel") <= 1 ? [] : ["it was canceled twice"]),
    ...(new Set(attempts).size === attempts.length
      ? []
      : [`an attempt was refunded twice: ${attempts.join()}`]),
    ...[...keys].flatMap(([key, sent]) =>
      sent.size === 1 && key !== "" ? [] : [`key ${key} was sent with ${[...sent].join(" and ")}`],
    ),
    ...about
      .filter((one) => one.call === "refunds.create" && !isWhole(one.parameters["amount"]))
      .map(() => "a refund was sent without an amount"),
  ];
}

function isWhole(parameter: unknown): boolean {
  return typeof parameter === "string" && /^[1-9]\d*$/.test(parameter);
}

/** The provider's fee for a card (docs/sandbox.md): 2.9 % + 30, rounded to the nearest. */
export function feeOf(captured: number): number {
  return captured === 0 ? 0 : Math.round(captured * 0.029) + 30;
}

/** Debits less credits, by account. */
export function balancesOf(entries: readonly EntryDocument[]): Readonly<Record<string, number>> {
  const balances: Record<string, number> = {};
  for (const { debit_account: debit, credit_account: credit, amount } of entries) {
    balances[debit] = (balances[debit] ?? 0) + amount;
    balances[credit] = (balances[credit] ?? 0) - amount;
  }
  return Object.fromEntries(Object.entries(balances).filter(([, balance]) => balance !== 0));
}

/** What a payment's accounts must come to (docs/ledger.md), in the order of their names; those at zero are left out. */
export function wantedBalances(money: {
  readonly captured: number;
  readonly refunded: number;
  readonly held: number;
}): [account: string, balance: number][] {
  const { captured, refunded, held } = money;
  const fee = feeOf(captured);
  const balances = {
    authorized: held,
    authorized_contra: -held,
    provider_balance: captured - refunded - fee,
    provider_fees: fee,
    refunds: refunded,
    sales: -captured,
  };
  return Object.entries(balances).filter(([, balance]) => balance !== 0);
}

function ledgerFaults({ payment, entries, record }: Seen): string[] {
  // Disputes and payouts move money beside these: whoever stages them compares the books himself.
  if (record.disputes.length > 0 || entries.some((entry) => entry.fact.startsWith("paid_out"))) return [];
  const kept = wantedBalances({
    captured: payment.amount_captured,
    refunded: Number(payment["amount_refunded"]),
    held: Number(payment["amount_capturable"]),
  });
  const books = Object.entries(balancesOf(entries)).toSorted(([one], [other]) => one.localeCompare(other));
  const facts = entries.map((entry) => `${entry.fact} ${entry.leg}`);
  return [
    ...(JSON.stringify(books) === JSON.stringify(kept)
      ? []
      : [`its books say ${JSON.stringify(books)}, not ${JSON.stringify(kept)}`]),
    ...(new Set(facts).size === facts.length ? [] : [`a fact is posted twice: ${facts.join()}`]),
  ];
}

/** A transition, a fact, an event: in the order in which they happened, and none twice. */
function eventFaults({ timeline, refunds, events }: Seen): string[] {
  const steps = timeline.filter((entry) => entry.kind === "transition");
  const ofPayment = steps.filter((entry) => (entry.refund_id ?? null) === null).map((entry) => entry.to);
  const wanted = ofPayment.map((to, at) => `payment.${at === 0 ? "created" : (to ?? "")}`);
  const told = events.map((event) => event.type).filter((type) => type.startsWith("payment."));
  const faults = wanted.join() === told.join() ? [] : [`it went ${wanted.join()}, events say ${told.join()}`];
  for (const { id } of refunds) {
    const path = steps.filter((entry) => entry.refund_id === id).map((entry) => entry.to);
    const facts = path.map((to, at) => `refund.${at === 0 ? "created" : (to ?? "")}`);
    const said = events.filter((event) => event.data.object.id === id).map((event) => event.type);
    if (facts.join() !== said.join()) faults.push(`${id} went ${facts.join()}, events say ${said.join()}`);
  }
  const ids = events.map((event) => event.id);
  return new Set(ids).size === ids.length ? faults : [...faults, "an event has its id twice"];
}

/** Refused before execution: such a send leaves nothing unknown. */
const REFUSALS = [401, 403, 429];

/**
 * Sends of a capture, cancel or refund that followed one of unknown outcome under the same provider key without an
 * answered question about that object between them.
 */
export function unaskedSends(log: readonly LoggedRequest[]): LoggedRequest[] {
  const unasked: LoggedRequest[] = [];
  const unknown = new Map<string, unknown>();
  for (const request of log) {
    const { call, idempotency_key: key, parameters, status } = request;
    const named = parameters["payment_intent"];
    const objectId = call?.startsWith("payment_intents.") === true ? request.object_id : named;
    if ((call === "payment_intents.retrieve" || call === "refunds.list") && status === 200) {
      for (const [sent, object] of unknown) if (object === objectId) unknown.delete(sent);
    }
    if (!EFFECT_CALLS.includes(call ?? "") || key === null) continue;
    if (unknown.has(key)) unasked.push(request);
    if (status === null || !REFUSALS.includes(status)) unknown.set(key, objectId);
  }
  return unasked;
}
