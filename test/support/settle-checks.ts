import { RESOLVE_REVIEW } from "../../src/operations/resolve-review.js";
import type { PaymentIntentRecord } from "../../src/sandbox/index.js";
import { type Harness, until } from "./harness.js";
import { ledgerFaults } from "./ledger-faults.js";
import { breachesOfTheWireRule, type GivenUp } from "./wire-rule.js";

interface PaymentRow {
  readonly id: string;
  readonly status: string;
  readonly currency: string;
  readonly amount_captured: string;
  readonly amount_capturable: string;
  readonly amount_refunded: string;
  readonly refund_reserved: string;
  readonly merchant_order_id: string | null;
  readonly holds_order_id: boolean;
}

interface AttemptRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly kind: string;
  readonly operation: string;
  readonly idempotency_key: string;
  readonly run: number;
  readonly state: string;
  readonly provider_payment_id: string | null;
  readonly lease_expires_at: string | null;
  readonly due_at: string | null;
}

interface KeyRow {
  readonly key: string;
  readonly operation: string;
  readonly run: number;
  readonly state: string;
  readonly resource_id: string;
  readonly response_status: number | null;
  readonly response_body: string | null;
  readonly expires_at: string | null;
}

interface RefundRow {
  readonly id: string;
  readonly payment_id: string;
  readonly status: string;
  readonly amount: string;
}

interface Transition {
  readonly payment_id: string;
  readonly refund_id: string | null;
  readonly from_status: string | null;
  readonly to_status: string;
}

interface Rows {
  readonly payments: readonly PaymentRow[];
  readonly attempts: readonly AttemptRow[];
  readonly keys: readonly KeyRow[];
  /** Transitions, oldest first. */
  readonly transitions: readonly Transition[];
  readonly events: readonly { payment_id: string; type: string; data: unknown }[];
  readonly refunds: readonly RefundRow[];
  /** Of charges: those of captures, cancels and refunds stand beside a payment that goes on. */
  readonly reviewed: readonly { payment_id: string }[];
  /** Those whose money a person has adopted, whoever holds the order id. */
  readonly adopted: readonly { payment_id: string }[];
  readonly givenUp: readonly GivenUp[];
  readonly held: readonly { payment_id: string; merchant_order_id: string }[];
}

/**
 * Waits until nothing is left to happen by itself, then compares our rows with the provider's objects and its request
 * log. Yields a sentence for each fault: none is the only right outcome of any test.
 */
export async function faultsAfterSettling(harness: Harness): Promise<string[]> {
  const rows = await until(
    "an end of all work",
    () => readRows(harness),
    (seen) => seen.attempts.every((attempt) => isAtRest(attempt, seen)),
  );
  const objects = await harness.sandbox.control.listPaymentIntents();
  return [
    ...doubleCharges(rows, objects),
    ...rows.payments.flatMap((payment) => [
      ...differences(payment, rows, objects),
      ...unevenHistory(payment, rows),
      ...wrongOrderId(payment, rows, objects),
      ...wrongRefunds(payment, rows),
    ]),
    ...(await ledgerFaults(harness.deps.db.sql)),
    ...rows.keys.filter(isOfPayment).flatMap((key) => wrongKey(key, rows)),
    ...breachesOfTheWireRule(await harness.sandbox.control.listRequests(), rows.givenUp),
  ];
}

/** One snapshot: a review may close by itself while it is looked at. */
function readRows(harness: Harness): Promise<Rows> {
  return harness.deps.db.sql.begin("isolation level repeatable read read only", async (sql) => ({
    payments: await sql<PaymentRow[]>`select * from payments order by id`,
    attempts: await sql<AttemptRow[]>`select * from attempts order by id`,
    keys: await sql<KeyRow[]>`select * from idempotency_keys`,
    transitions: await sql<
      Transition[]
    >`select * from timeline where kind = 'transition' order by payment_id, id`,
    events: await sql<Rows["events"][number][]>`select * from outbox order by payment_id, id`,
    held: await sql<Rows["held"][number][]>`select * from order_ids`,
    givenUp: (
      await sql<{ provider_key: string; at: string }[]>`
        select * from timeline where outcome in ('unknown: timeout', 'unknown: connection_lost')`
    ).map((row) => ({ providerKey: row.provider_key, at: Date.parse(row.at) })),
    refunds: await sql<RefundRow[]>`select * from refunds order by id`,
    reviewed: await sql<Rows["reviewed"][number][]>`
      select r.* from reviews r join attempts a on a.tenant_id = r.tenant_id and a.id = r.attempt_id
       where r.closed_at is null and a.kind = 'charge' and r.object_id = ''`,
    adopted: await sql<Rows["adopted"][number][]>`
      select payment_id from reviews
       where closed_by = 'person'
         and (resolution = 'adopt_provider_object'
              or (resolution = 'mark_not_performed' and reason = 'provider_object_missing'))`,
  }));
}

const FAR_MS = 30_000;

/** Ended, or waiting for the customer or for a person. */
function isAtRest(attempt: AttemptRow, { payments, refunds }: Rows): boolean {
  if (attempt.state === "completed") return attempt.lease_expires_at === null && attempt.due_at === null;
  const status =
    attempt.refund_id === null
      ? payments.find((payment) => payment.id === attempt.payment_id)?.status
      : refunds.find((refund) => refund.id === attempt.refund_id)?.status;
  if (status === "needs_review") return true;
  // What was authorized is looked at once more, hours later, whatever has become of it since.
  const looksLater = attempt.kind === "charge" && attempt.lease_expires_at === null;
  if (looksLater && Date.parse(attempt.due_at ?? "") > Date.now() + FAR_MS)
    return attempt.state === "following";
  const waitsOutside = ["requires_action", "authorized"].includes(status ?? "") || attempt.kind === "refund";
  return waitsOutside && attempt.state === "following";
}

function chargeOf(payment: PaymentRow, rows: Rows): AttemptRow | undefined {
  return rows.attempts.find((row) => row.payment_id === payment.id && row.kind === "charge");
}

/** What is refunded is what its refunds say, each with one event a fact, and never more than was captured. */
function wrongRefunds(payment: PaymentRow, rows: Rows): string[] {
  const refunds = rows.refunds.filter((row) => row.payment_id === payment.id);
  const sum = (counted: readonly RefundRow[]) => counted.reduce((all, row) => all + Number(row.amount), 0);
  const refunded = sum(refunds.filter((row) => row.status === "succeeded"));
  const reserved = sum(refunds.filter((row) => row.status !== "failed"));
  const faults: string[] = [];
  if (refunded !== Number(payment.amount_refunded)) {
    faults.push(`${payment.id} shows ${payment.amount_refunded} refunded, its refunds ${refunded}`);
  }
  if (reserved !== Number(payment.refund_reserved)) {
    faults.push(`${payment.id} reserves ${payment.refund_reserved}, its refunds ${reserved}`);
  }
  if (refunded > Number(payment.amount_captured)) faults.push(`${payment.id} refunds more than it captured`);
  for (const refund of refunds) {
    const steps = rows.transitions.filter((row) => row.refund_id === refund.id).map((row) => row.to_status);
    const facts = steps.map((to, at) => `refund.${at === 0 ? "created" : to}`).toSorted();
    const events = rows.events
      .filter((row) => row.type.startsWith("refund.") && JSON.stringify(row.data).includes(refund.id))
      .map((row) => row.type)
      .toSorted();
    if (steps.at(-1) !== refund.status) faults.push(`${refund.id} is ${refund.status}, not ${steps.at(-1)}`);
    if (facts.join() !== events.join()) {
      faults.push(`${refund.id}: facts ${facts.join()}, events ${events.join()}`);
    }
  }
  return faults;
}

/** One intent, one charge: over the runs of a key, too, and in objects that we lost sight of. */
function doubleCharges(rows: Rows, objects: readonly PaymentIntentRecord[]): string[] {
  const charges = new Map<string, number>();
  for (const { payment_intent: object, successful_charges: count } of objects) {
    const attempt = rows.attempts.find((row) => row.id === object.metadata["payment_attempt_id"]);
    const intent =
      attempt === undefined
        ? `${object.metadata["payment_attempt_id"]}`
        : `key ${attempt.tenant_id} ${attempt.idempotency_key}`;
    charges.set(intent, (charges.get(intent) ?? 0) + count);
  }
  return [...charges]
    .filter(([, count]) => count > 1)
    .map(([intent, count]) => `${intent} was charged ${count} times`);
}

const PROVIDER_STATUS: Readonly<Record<string, string>> = {
  succeeded: "succeeded",
  authorized: "requires_capture",
  requires_action: "requires_action",
  failed: "canceled",
  canceled: "canceled",
};

function differences(payment: PaymentRow, rows: Rows, objects: readonly PaymentIntentRecord[]): string[] {
  if (payment.status === "needs_review") return [];
  const attempt = chargeOf(payment, rows);
  if (attempt === undefined) return [`${payment.id} has no attempt`];
  const object = objects.find((one) => one.payment_intent.id === attempt.provider_payment_id)?.payment_intent;
  const strays = objects.filter(
    (one) =>
      one.payment_intent.metadata["payment_attempt_id"] === attempt.id &&
      one.payment_intent.id !== object?.id,
  );
  const charged = strays
    .filter((one) => one.successful_charges > 0)
    .map((one) => `${one.payment_intent.id} of ${payment.id} is charged and not committed`);
  if (object === undefined) {
    // Canceled without one: an earlier run of its key was charged after all.
    const isOver = payment.status === "failed" || payment.status === "canceled";
    const mayHaveNone = isOver && attempt.provider_payment_id === null;
    return mayHaveNone ? charged : [...charged, `${payment.id} is ${payment.status} without an object`];
  }
  const wanted = PROVIDER_STATUS[payment.status] ?? "none";
  const differ =
    object.status === wanted ? [] : [`${payment.id} is ${payment.status}, its object ${object.status}`];
  const amounts =
    Number(payment.amount_captured) === object.amount_received &&
    Number(payment.amount_capturable) === object.amount_capturable;
  return [
    ...charged,
    ...differ,
    ...(amounts || payment.currency !== "usd" ? [] : [`${payment.id} shows other amounts`]),
  ];
}

/** Each transition begins where the last one ended, has exactly one event, and the last one is the payment's status. */
function unevenHistory(payment: PaymentRow, rows: Rows): string[] {
  const steps = rows.transitions.filter((row) => row.payment_id === payment.id && row.refund_id === null);
  const path = steps.map((row) => row.to_status);
  const gaps = steps.filter((row, at) => row.from_status !== (path[at - 1] ?? null));
  const facts = path.map((to, at) => `payment.${at === 0 ? "created" : to}`).toSorted();
  const events = rows.events
    .filter((row) => row.payment_id === payment.id && row.type.startsWith("payment."))
    .map((row) => row.type)
    .toSorted();
  const open = rows.reviewed.filter((row) => row.payment_id === payment.id).length;
  const faults: string[] = [];
  if (gaps.length > 0) faults.push(`${payment.id} has a gap in its history: ${path.join(" → ")}`);
  if (path.at(-1) !== payment.status)
    faults.push(`${payment.id} is ${payment.status}, its history says ${path.at(-1)}`);
  if (facts.join() !== events.join())
    faults.push(`${payment.id}: facts ${facts.join()}, events ${events.join()}`);
  if (open !== (payment.status === "needs_review" ? 1 : 0))
    faults.push(`${payment.id} has ${open} open reviews`);
  return faults;
}

/** Held while the payment can still be charged, and freed once it is proven that it cannot. */
function wrongOrderId(payment: PaymentRow, rows: Rows, objects: readonly PaymentIntentRecord[]): string[] {
  const held = rows.held.filter((row) => row.payment_id === payment.id).map((row) => row.merchant_order_id);
  const shown = payment.holds_order_id ? [payment.merchant_order_id] : [];
  if (held.join() !== shown.join())
    return [`${payment.id} says it holds ${shown.join()} and holds ${held.join()}`];
  if (payment.merchant_order_id === null || payment.status === "needs_review") return [];
  const attempt = chargeOf(payment, rows);
  const object = objects.find(
    (one) => one.payment_intent.id === attempt?.provider_payment_id,
  )?.payment_intent;
  if (rows.adopted.some((row) => row.payment_id === payment.id)) return [];
  const over = payment.status === "failed" || payment.status === "canceled";
  const chargeable = object !== undefined && object.status !== "canceled";
  const holds = !over || chargeable;
  return payment.holds_order_id === holds ? [] : [`${payment.id} ${holds ? "lost" : "keeps"} its order id`];
}

/** The key of a capture, cancel or refund is open only while its attempt is, or may run again where that ended. */
function openKeyFaults(key: KeyRow, rows: Rows): string[] {
  const attempt = rows.attempts.find(
    (row) => row.operation === key.operation && row.idempotency_key === key.key && row.run === key.run,
  );
  const ended = attempt?.state === "completed";
  return ended === (key.state === "failed_retryable")
    ? []
    : [`key ${key.key} is ${key.state}, its attempt is ${attempt?.state}`];
}

/** Keys of endpoints, events and reviews stand for no payment. */
function isOfPayment(key: KeyRow): boolean {
  return key.operation.startsWith("payments.") || key.operation.startsWith("refunds.");
}

function wrongKey(key: KeyRow, rows: Rows): string[] {
  // A review's: claimed, used and answered in one commit.
  if (key.operation === RESOLVE_REVIEW) {
    const isWhole = key.state === "completed" && key.response_body !== null && key.expires_at !== null;
    return isWhole ? [] : [`key ${key.key} of a review is ${key.state}`];
  }
  const refund = rows.refunds.find((row) => row.id === key.resource_id);
  const payment = rows.payments.find((row) => row.id === (refund?.payment_id ?? key.resource_id));
  const isCharge = key.operation === "payments.create";
  if (payment === undefined) return [`key ${key.key} names no payment`];
  if (!isCharge && key.state !== "completed") return openKeyFaults(key, rows);
  const stored = key.response_status !== null && key.response_body !== null;
  switch (key.state) {
    case "completed":
      return stored && key.expires_at !== null
        ? []
        : [`key ${key.key} is completed without an answer or an expiry`];
    case "failed_retryable":
      return payment.status === "failed" && !stored
        ? []
        : [`key ${key.key} may run again, its payment is ${payment.status}`];
    default: {
      const open = payment.status === "needs_review" && key.expires_at === null && !stored;
      return open ? [] : [`key ${key.key} is ${key.state}, its payment is ${payment.status}`];
    }
  }
}
