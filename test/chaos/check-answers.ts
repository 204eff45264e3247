import type { AnyDocument } from "../support/api-client.js";
import type { Asked, Seen } from "./caller.js";
import type { KeyRow, PaymentRow, RefundRow, Snapshot } from "./snapshot.js";

/** What callers were told, against what is: a sentence for each fault. */
export function answerFaults(heard: Seen, seen: Snapshot): string[] {
  const payments = new Map(seen.payments.map((payment) => [payment.id, payment]));
  const refunds = new Map(seen.refunds.map((refund) => [refund.id, refund]));
  const sent = new Map(heard.asked.map((asked) => [asked.key, asked]));
  // Its payment had failed without effect; by the time it was sent again another one had its order.
  const isOutdone = ({ key, state }: KeyRow) =>
    state === "failed_retryable" && sent.get(key)?.answer?.json.code === "merchant_order_id_taken";
  return [
    ...heard.faults,
    ...heard.asked.flatMap((asked) => toldFaults(asked, payments, refunds)),
    ...seen.keys
      .filter(({ operation, key }) => !sent.has(key) && /^(payments|refunds)\./.test(operation))
      .map(({ operation, key }) => `nobody asked under the key ${key} of ${operation}`),
    ...seen.keys
      .filter(
        ({ state, resource_id: id }) => state !== "completed" && refunds.get(id)?.status !== "needs_review",
      )
      .filter((row) => !isOutdone(row))
      .map(({ operation, key, state }) => `the key ${key} of ${operation} is ${state} at the end`),
  ];
}

/** What stands for ever once it was told; a payment that was captured or canceled later is told by that answer. */
function toldFaults(
  { path, key, answer, isUnderReview, body }: Asked,
  payments: ReadonlyMap<string, PaymentRow>,
  refunds: ReadonlyMap<string, RefundRow>,
): string[] {
  if (answer === null) return isUnderReview ? [] : [`${path} ${key} was never answered for good`];
  const { status, json } = answer;
  if (status >= 300) return [];
  if (json["object"] === "refund") return refundTold(json, body, refunds);
  const payment = payments.get(json.id ?? "");
  if (payment === undefined) return [`${json.id} was told to be ${json.status} and is not there`];
  const captured = Number(payment.amount_captured);
  const isTrue =
    json.status === "succeeded"
      ? payment.status === "succeeded" && captured === json.amount_captured
      : json.status !== "canceled" || (payment.status === "canceled" && captured === 0);
  return isTrue
    ? []
    : [
        `${json.id} was told to be ${json.status} with ${json.amount_captured}, it is ${payment.status} with ${captured}`,
      ];
}

function refundTold(json: AnyDocument, body: object, refunds: ReadonlyMap<string, RefundRow>): string[] {
  const refund = refunds.get(json.id ?? "");
  if (refund === undefined) return [`${json.id} was told to be ${json.status} and is not there`];
  const { amount } = body as { amount: number };
  return [
    ...(json.status === refund.status
      ? []
      : [`${json.id} was told to be ${json.status}, it is ${refund.status}`]),
    ...(Number(refund.amount) === amount
      ? []
      : [`${json.id} is of ${refund.amount}, ${amount} was asked for`]),
  ];
}

export interface Review {
  readonly what: string;
  readonly isExplained: boolean;
}

/** Reviews that are open at the end. One thing explains one: the provider keeps a failure under a refund's only key. */
export function openReviews(seen: Snapshot): Review[] {
  return seen.reviews.map(({ payment_id: payment, attempt_id: attempt, reason }) => ({
    what: `${payment} is before a person: ${reason} of ${attempt}`,
    isExplained: reason === "provider_key_spent" && seen.spentKeys.has(`payment-attempt:${attempt}`),
  }));
}
