import type { PaymentIntentRecord } from "../../src/sandbox/index.js";
import type { AttemptRow, PaymentRow, Snapshot } from "./snapshot.js";

const OBJECT_STATUS: Readonly<Record<string, string>> = {
  succeeded: "succeeded",
  authorized: "requires_capture",
  failed: "canceled",
  canceled: "canceled",
};
/** One effect each, and to the cent the same on both sides: a sentence for each fault. */
export function providerFaults(seen: Snapshot): string[] {
  const attempts = new Map(seen.attempts.map((attempt) => [attempt.id, attempt]));
  const objects = new Map(seen.objects.map((record) => [record.payment_intent.id, record]));
  return [
    ...unknownObjects(seen, attempts),
    ...doubleCharges(seen, attempts),
    ...seen.payments.flatMap((payment) => paymentFaults(payment, attempts, objects)),
    ...refundFaults(seen),
  ];
}

function unknownObjects(seen: Snapshot, attempts: ReadonlyMap<string, AttemptRow>): string[] {
  return seen.objects
    .filter(({ payment_intent: object }) => !attempts.has(object.metadata["payment_attempt_id"] ?? ""))
    .map(({ payment_intent: object }) => `${object.id} (${object.status}) is of an attempt that is not here`);
}

/** By object, by key over all its runs, by order id. */
function doubleCharges(seen: Snapshot, attempts: ReadonlyMap<string, AttemptRow>): string[] {
  const payments = new Map(seen.payments.map((payment) => [payment.id, payment]));
  const charges = new Map<string, number>();
  for (const record of seen.objects.filter(({ successful_charges: count }) => count > 0)) {
    const attempt = attempts.get(record.payment_intent.metadata["payment_attempt_id"] ?? "");
    const order = payments.get(attempt?.payment_id ?? "")?.merchant_order_id ?? null;
    const names = [
      record.payment_intent.id,
      `attempt ${attempt?.id}`,
      `key ${attempt?.operation} ${attempt?.idempotency_key}`,
      ...(order === null ? [] : [`order ${order}`]),
    ];
    for (const name of names) charges.set(name, (charges.get(name) ?? 0) + record.successful_charges);
  }
  return [...charges].flatMap(([name, count]) => (count > 1 ? [`${name} was charged ${count} times`] : []));
}

function paymentFaults(
  payment: PaymentRow,
  attempts: ReadonlyMap<string, AttemptRow>,
  objects: ReadonlyMap<string, PaymentIntentRecord>,
): string[] {
  const { id, status } = payment;
  const wanted = OBJECT_STATUS[status];
  if (wanted === undefined) return [`${id} is ${status} at the end`];
  const objectId = attempts.get(payment.attempt_id)?.provider_payment_id ?? null;
  if (objectId === null) return status === "failed" ? [] : [`${id} is ${status} without an object`];
  const record = objects.get(objectId);
  if (record === undefined) return [`${id} has ${objectId}, which the provider has not`];
  const { payment_intent: object, successful_charges: charges } = record;
  const moved = object.amount_received > 0 || object.amount_capturable > 0;
  const ours = `${payment.amount} ${payment.currency}, ${payment.amount_captured} captured, ${payment.amount_capturable} held`;
  const theirs = `${object.amount} ${object.currency}, ${object.amount_received} captured, ${object.amount_capturable} held`;
  return [
    ...(object.status === wanted ? [] : [`${id} is ${status}, ${objectId} is ${object.status}`]),
    ...(ours === theirs ? [] : [`${id} has ${ours}; ${objectId} has ${theirs}`]),
    ...(moved && charges !== 1 ? [`${objectId} of ${id} has ${charges} charges`] : []),
  ];
}

/** What of an authorisation was only released is no money given back: it has no balance transaction. */
function refundFaults(seen: Snapshot): string[] {
  const theirs = seen.objects.flatMap(({ payment_intent: object, refunds }) =>
    refunds
      .filter((refund) => refund.balance_transaction !== null || refund.status !== "succeeded")
      .map((refund) => {
        const status = refund.status === "canceled" ? "failed" : refund.status;
        return `${refund.id} of ${object.metadata["payment_attempt_id"]}: ${refund.amount} ${status}`;
      }),
  );
  const charges = new Map(seen.payments.map(({ id, attempt_id: attempt }) => [id, attempt]));
  const ours = seen.refunds
    .filter((refund) => refund.provider_refund_id !== null)
    .map((refund) => {
      const charge = charges.get(refund.payment_id);
      return `${refund.provider_refund_id} of ${charge}: ${refund.amount} ${refund.status}`;
    });
  const made = seen.objects.flatMap(({ refunds }) =>
    refunds.flatMap((refund) => refund.metadata?.["payment_attempt_id"] ?? []),
  );
  return [
    ...missing(theirs, ours).map((refund) => `here is no refund ${refund}`),
    ...missing(ours, theirs).map((refund) => `the provider has no refund ${refund}`),
    ...made
      .filter((attempt, at) => made.indexOf(attempt) !== at)
      .map((attempt) => `attempt ${attempt} was refunded twice`),
    ...seen.payments.flatMap((payment) => refundSumFaults(payment, seen)),
  ];
}

function refundSumFaults(payment: PaymentRow, seen: Snapshot): string[] {
  const refunds = seen.refunds.filter((refund) => refund.payment_id === payment.id);
  const sum = (counts: (status: string) => boolean) =>
    refunds.filter(({ status }) => counts(status)).reduce((all, { amount }) => all + Number(amount), 0);
  const refunded = sum((status) => status === "succeeded");
  const reserved = sum((status) => status !== "failed");
  return [
    ...(refunded === Number(payment.amount_refunded)
      ? []
      : [`${payment.id} shows ${payment.amount_refunded} refunded, its refunds ${refunded}`]),
    ...(reserved === Number(payment.refund_reserved)
      ? []
      : [`${payment.id} reserves ${payment.refund_reserved}, its refunds ${reserved}`]),
    ...(reserved <= Number(payment.amount_captured) ? [] : [`${payment.id} refunds more than it captured`]),
  ];
}

function missing(wanted: readonly string[], there: readonly string[]): string[] {
  const known = new Set(there);
  return wanted.filter((one) => !known.has(one));
}
