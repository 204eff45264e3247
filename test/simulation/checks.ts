import type { Sql } from "../../src/store/db.js";
import { ledgerFaults } from "../support/ledger-faults.js";
import { bookFaults } from "./check-books.js";
import { eventFaults } from "./check-events.js";
import { reviewFaults } from "./check-reviews.js";
import {
  type AttemptRow,
  type EndState,
  type KeyRow,
  type PaymentRow,
  type RefundRow,
  readEndState,
  sumOf,
} from "./end-state.js";
import { EPOCH_MS } from "./host.js";
import { attemptOfKey, isForgotten } from "./loss.js";
import { nameOf } from "./plans.js";
import type { Intent } from "./provider-objects.js";
import type { SentCall } from "./wire-log.js";
import type { World } from "./world.js";

/** What our rows, the provider's objects and everybody's logs say against each other, when all is over. */
export async function faultsAtTheEnd(world: World, sql: Sql): Promise<string[]> {
  const rows = await readEndState(sql);
  const loss = world.restore?.loss ?? null;
  const forgotten = (earlier: SentCall, send: SentCall) => loss !== null && isForgotten(loss, earlier, send);
  return [
    ...world.log.unaskedSends(forgotten),
    ...world.log.lateSends(world.settings.providerKeyLifetimeMs, forgotten),
    ...(rows.recoveringSince === null ? [] : ["the recovery has not come to an end"]),
    ...rows.attempts.flatMap((attempt) => lateConfirms(attempt, world)),
    ...foreignSends(rows, world),
    ...mismatches(world),
    ...(world.merchants.active === 0 ? [] : [`${String(world.merchants.active)} clients wait for ever`]),
    ...(world.notices.open === 0
      ? []
      : [`${String(world.notices.open)} events of the provider's were never taken`]),
    ...openFindings(rows, world),
    ...rows.attempts.flatMap((attempt) => stuck(attempt, rows)),
    ...rows.payments.flatMap((payment) => [
      ...paymentFaults(payment, rows, world),
      ...orderFaults(payment, rows, world),
      ...refundFaults(payment, rows, world),
    ]),
    ...orphans(rows, world),
    ...rows.keys.flatMap((key) => keyFaults(key, rows, world)),
    ...reviewFaults(rows, world),
    ...eventFaults(rows, world),
    ...bookFaults(rows, world),
    ...(await ledgerFaults(sql)),
  ].map((fault) => world.story.named(fault));
}

/** A charge that is not confirmed when its budget ends never is. */
function lateConfirms(attempt: AttemptRow, { log, settings }: World): string[] {
  const endsAtMs = Date.parse(attempt.created_at) - EPOCH_MS + settings.retryBudgetMs;
  const late = log.entries.filter(
    (entry) =>
      entry.type === "send" && entry.key === `payment-attempt:${attempt.id}:confirm` && entry.atMs > endsAtMs,
  );
  return late.map(() => `${attempt.id} was confirmed after its budget`);
}

/** Nothing is sent for an attempt that was made for another account. */
function foreignSends(rows: EndState, { log }: World): string[] {
  const accounts = new Map(rows.attempts.map((attempt) => [attempt.id, attempt.provider_account]));
  const strange = log.sends.filter(({ key, account }) => {
    const own = accounts.get(attemptOfKey(key) ?? "") ?? account;
    return own !== account;
  });
  return strange.map(({ key, account }) => `${key} was sent to ${account}, and made for another`);
}

/** Whether a key is used for another request is known by its record: one that was lost tells nothing. */
function mismatches(world: World): string[] {
  const strange = world.model.mismatches.filter((key) => {
    const attemptId = attemptOfKey(key) ?? "";
    const isLost = world.restore?.loss?.attempts.has(attemptId) ?? false;
    return !(isLost && world.money.mayDiffer(attemptId));
  });
  return strange.map((key) => `${key} was sent with other parameters than before`);
}

/** A person must say what became of its charge, capture or cancel. */
function isInReview(paymentId: string, rows: EndState): boolean {
  return rows.attempts.some(
    (one) => one.payment_id === paymentId && one.kind !== "refund" && isWithPerson(one, rows),
  );
}

function isWithPerson(attempt: AttemptRow, rows: EndState): boolean {
  const refund = rows.refunds.find((one) => one.id === attempt.refund_id);
  return refund?.status === "needs_review" || rows.reviews.some((review) => review.attempt_id === attempt.id);
}

/** What the last comparison with the provider still shows, though nobody is asked to look. */
function openFindings(rows: EndState, world: World): string[] {
  const open = rows.findings.filter(
    (finding) =>
      finding.state === "open" &&
      !rows.reviews.some((review) => review.payment_id === finding.payment_id) &&
      !staysTrue(finding, world),
  );
  return open.map(({ kind, object_id: id, detail }) => `the comparison shows ${kind} of ${id}: ${detail}`);
}

/** A difference that a person has seen and taken, or that is left for a client's next try. */
function staysTrue({ kind, object_id: id }: EndState["findings"][number], world: World): boolean {
  const intent = world.model.intents.get(id);
  if (intent === undefined) return false;
  const isMarked = intent.marks.attemptId === intent.attemptId && intent.marks.tenantId === intent.tenantId;
  const isLost = world.restore?.loss?.attempts.has(intent.attemptId) ?? false;
  return (
    (kind === "foreign_object" && world.tampered.has(id, "marks")) ||
    // Its review has ended since the last comparison: the next one accepts it.
    (kind === "missing_there" && world.tampered.has(id, "deleted")) ||
    (kind === "amount_differs" &&
      (world.tampered.has(id, "amount") || (isLost && world.money.mayDiffer(intent.attemptId)))) ||
    (kind === "orphaned_object" && (isLost || !isMarked) && intent.status === "requires_confirmation")
  );
}

/** Ended, or a person's: nothing waits for what will never come. */
function stuck(attempt: AttemptRow, rows: EndState): string[] {
  if (isWithPerson(attempt, rows)) {
    const asks = attempt.state === "completed" || attempt.due_at !== null;
    return asks ? [] : [`${attempt.id} is in review and is not asked about any more`];
  }
  const isOver =
    attempt.state === "completed" && attempt.due_at === null && attempt.lease_expires_at === null;
  return isOver
    ? []
    : [
        `${attempt.id} (${attempt.kind}) is ${attempt.state}, due ${attempt.due_at ?? "never"}, ${attempt.wait_reason ?? ""}`,
      ];
}

/** What the provider's object must be for ours to be what it is, when nothing is left to happen. */
const PROVIDER_STATUS: Readonly<Record<string, Intent["status"]>> = {
  succeeded: "succeeded",
  failed: "canceled",
  canceled: "canceled",
};

function intentOf(payment: PaymentRow, rows: EndState, world: World): Intent | null {
  const attempt = rows.attempts.find((row) => row.id === payment.attempt_id);
  return world.model.intents.get(attempt?.provider_payment_id ?? "") ?? null;
}

function paymentFaults(payment: PaymentRow, rows: EndState, world: World): string[] {
  const { id, status } = payment;
  if (status === "needs_review") return [];
  const intent = intentOf(payment, rows, world);
  const shows = `${payment.amount_captured} captured, ${payment.amount_capturable} held`;
  if (intent === null) {
    // One that gives way to another run of its key, whose rows were lost and made again, is canceled.
    const mayLackIt = status === "failed" || (status === "canceled" && world.restore?.loss !== null);
    return mayLackIt && shows === "0 captured, 0 held" ? [] : [`${id} is ${status} without an object`];
  }
  const there = `${String(intent.captured)} captured, ${String(intent.capturable)} held`;
  const wanted = PROVIDER_STATUS[status] ?? "of no such status";
  // Nobody can pay what the provider does not know any more, whatever it was when it went.
  const isGone = status === "failed" && world.tampered.has(intent.id, "deleted");
  return [
    ...(intent.status === wanted || isGone || isInReview(id, rows)
      ? []
      : [`${id} is ${status}, its object ${intent.id} ${intent.status}`]),
    ...(shows === there || isInReview(id, rows)
      ? []
      : [`${id} shows ${shows}, its object ${intent.id} ${there}`]),
    ...(intent.attemptId === payment.attempt_id
      ? []
      : [`${id} has ${intent.id}, made for ${intent.attemptId}`]),
    ...(payment.open_effect === null || isInReview(id, rows)
      ? []
      : [`${id} still has ${payment.open_effect} in flight`]),
  ];
}

/** Money at the provider is on a payment of ours, whatever became of the answer. */
function orphans(rows: EndState, world: World): string[] {
  const known = new Set(rows.attempts.map((attempt) => attempt.provider_payment_id));
  const lost = [...world.model.intents.values()].filter(
    (intent) => (intent.captured > 0 || intent.capturable > 0) && !known.has(intent.id),
  );
  return lost.map((intent) => `${intent.id} holds money and no attempt of ours knows it`);
}

/** Held while its object can still be charged, and freed once it is proven that it cannot. */
function orderFaults(payment: PaymentRow, rows: EndState, world: World): string[] {
  const { id, merchant_order_id: orderId, status } = payment;
  const held = rows.heldOrders.filter((row) => row.payment_id === id).map((row) => row.merchant_order_id);
  if (held.join() !== (payment.holds_order_id ? [orderId] : []).join())
    return [`${id} and the held orders disagree`];
  if (orderId === null || isInReview(id, rows)) return [];
  const isOver = status === "failed" || status === "canceled";
  const intent = intentOf(payment, rows, world);
  // Nobody can charge what is deleted: freed before by a proof, or kept since no proof can come.
  if (isOver && intent !== null && world.tampered.has(intent.id, "deleted")) return [];
  const holds = !isOver || (intent !== null && intent.status !== "canceled");
  return payment.holds_order_id === holds ? [] : [`${id} ${holds ? "lost" : "keeps"} its order id`];
}

/** To the cent: what is refunded there is refunded here, once each; what is reserved is what has not failed. */
function refundFaults(payment: PaymentRow, rows: EndState, world: World): string[] {
  const { id } = payment;
  const ours = rows.refunds.filter((refund) => refund.payment_id === id);
  const intent = intentOf(payment, rows, world);
  const theirs = intent === null ? [] : world.model.refundsOf(intent);
  const refunded = sumOf(ours.filter((refund) => refund.status === "succeeded"));
  const reserved = sumOf(ours.filter((refund) => refund.status !== "failed"));
  const there = theirs.filter((refund) => refund.status !== "failed");
  const open = ours.filter((refund) => refund.status === "needs_review");
  return [
    ...(refunded === Number(payment.amount_refunded)
      ? []
      : [`${id} shows ${payment.amount_refunded} refunded, its refunds ${String(refunded)}`]),
    ...(reserved === Number(payment.refund_reserved)
      ? []
      : [`${id} reserves ${payment.refund_reserved}, its refunds ${String(reserved)}`]),
    ...(refunded <= Number(payment.amount_captured) ? [] : [`${id} refunds more than it captured`]),
    ...ours.flatMap((refund) => refundAgainstProvider(refund, world)),
    ...theirs.flatMap((refund) => {
      const its = ours.filter(
        (one) => one.provider_refund_id === refund.id || one.attempt_id === refund.attemptId,
      );
      const made = theirs.filter((one) => one.attemptId !== null && one.attemptId === refund.attemptId);
      // Made at the dashboard and failed: it moved nothing, and nobody asks for it after its row was lost.
      const isForgotten =
        (world.restore?.loss ?? null) !== null && refund.attemptId === null && refund.status === "failed";
      return [
        ...(its.length === 1 || isForgotten
          ? []
          : [`${refund.id} of ${id} has ${String(its.length)} refunds here`]),
        ...(made.length <= 1
          ? []
          : [`${made.map((one) => one.id).join(" and ")} were made for ${String(refund.attemptId)}`]),
      ];
    }),
    ...(open.length > 0 || sumOf(there) === refunded
      ? []
      : [`${id} shows ${String(refunded)} refunded, the provider ${String(sumOf(there))}`]),
  ];
}

function refundAgainstProvider(refund: RefundRow, world: World): string[] {
  const { id, status, amount, provider_refund_id: theirId } = refund;
  if (status === "needs_review") return [];
  const there = theirId === null ? null : (world.model.refunds.get(theirId) ?? null);
  if (there === null) return status === "failed" ? [] : [`${id} is ${status} and the provider has none`];
  return there.status === status && there.amount === Number(amount)
    ? []
    : [`${id} is ${status} of ${amount}, ${there.id} ${there.status} of ${String(there.amount)}`];
}

/** Every key is answered, may run again, or waits for a person; and nobody was told anything else. */
function keyFaults(key: KeyRow, rows: EndState, world: World): string[] {
  const name = nameOf(key.tenant_id, key.operation, key.key);
  const attempt = rows.attempts.find(
    (row) =>
      row.tenant_id === key.tenant_id &&
      row.operation === key.operation &&
      row.idempotency_key === key.key &&
      row.run === key.run,
  );
  const heard = world.merchants.answers.get(name) ?? null;
  // A key that was purged with its refusal, and runs again, has said nothing yet.
  const isNew = heard !== null && heard.atMs < Date.parse(key.created_at) - EPOCH_MS;
  const told = isNew ? null : (heard?.answer ?? null);
  switch (key.state) {
    case "completed": {
      const answer = `${String(key.response_status)} ${String(key.response_body)}`;
      return told === null || told === answer ? [] : [`${name} keeps ${answer} and told ${told}`];
    }
    case "failed_retryable":
      return attempt?.state === "completed" && told === null
        ? []
        : [`${name} may run again and is ${attempt?.state ?? "nothing"}`];
    default:
      return attempt !== undefined && isWithPerson(attempt, rows)
        ? []
        : [`${name} has no answer; its attempt is ${attempt?.state ?? "missing"}`];
  }
}
