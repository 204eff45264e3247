import type { ChargeView } from "../../../src/domain/charge-change.js";
import type { ProviderCall } from "../../../src/domain/provider.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import { OUR_ACCOUNT } from "./accounts.js";
import { BUDGET_MS, sinceStart } from "./clock.js";
import type { Context } from "./context.js";
import type { LedgerRow, PaymentRow, Tables } from "./rows.js";
import { refundedOf } from "./stripe-calls.js";
import type { Intent } from "./stripe-objects.js";
import type { World } from "./world.js";

/** What must hold, each told in words where it does not: of every commit, of every send, of every state. */

const TERMINAL = ["succeeded", "failed", "canceled"];

/** What is wrong with one commit, whatever the rest of the world is; null: nothing. */
export function brokenBy(view: ChargeView, row: AdvanceRow): string | null {
  return untoldFact(view, row) ?? unbalanced(row);
}

/** What is wrong with a send: the barrier and the budget. */
export function brokenBySending(
  { tables, doubts }: World,
  at: number,
  call: ProviderCall,
  nowMs: number,
): string | null {
  if ((doubts & (1 << at)) !== 0) {
    return `${call} is sent while an earlier send is unknown, and no question has been answered since`;
  }
  const created = tables.attempts[at]?.value.created_at ?? "";
  const isLate = call === "confirm" && nowMs - sinceStart(created) >= BUDGET_MS;
  return isLate ? "a confirm is sent after the budget" : null;
}

/** A terminal state is left by one thing alone: money that moved. What was, and is no more, is no such fact. */
export function leftAnEnd({ tables: before, stripe }: World, after: Tables, at: number): string | null {
  const attempt = after.attempts[at]?.value;
  const place = after.payments.findIndex(({ value }) => value.id === attempt?.payment_id);
  const [from, to] = [before.payments[place]?.value, after.payments[place]?.value];
  if (from === undefined || to === undefined || from.status === to.status) return null;
  if (!TERMINAL.includes(from.status)) return null;
  const holds = stripe.value.intents.some(
    (intent) => attemptOf(intent) === from.attempt_id && holdsMoney(intent),
  );
  if (from.status !== "succeeded" && holds) return null;
  return `${from.id} left ${from.status} for ${to.status}, and no money has moved`;
}

/** One event a fact: a status that changed is told, and nothing else is. */
function untoldFact(view: ChargeView, { payment, refund, event }: AdvanceRow): string | null {
  const facts = [
    ...(payment !== null && payment.to_status !== view.payment.status
      ? [`payment.${payment.to_status}`]
      : []),
    ...(refund !== null && refund.to_status !== view.refund?.status ? [`refund.${refund.to_status}`] : []),
  ];
  const told = event === null ? [] : [event.type];
  if (facts.length === told.length && facts[0] === told[0]) return null;
  return `a commit made the facts [${facts.join(", ")}] and told [${told.join(", ")}]`;
}

function unbalanced({ ledger }: AdvanceRow): string | null {
  const wrong = ledger.find((entry) => !(entry.amount > 0) || entry.debit_account === entry.credit_account);
  return wrong === undefined ? null : `the ledger's transfer ${wrong.fact} moves ${wrong.amount} nowhere`;
}

/** What is wrong with a state; null: nothing. */
export function brokenIn(context: Context, world: World): string | null {
  return (
    chargedTwice(context, world) ??
    refundedTwice(world) ??
    provenWrongly(world) ??
    wrongAmounts(world) ??
    stuck(context, world) ??
    forgotten(world)
  );
}

function holdsMoney({ status }: Intent): boolean {
  return status === "succeeded" || status === "requires_capture";
}

function attemptOf(intent: { readonly metadata: Readonly<Record<string, string>> }): string | undefined {
  return intent.metadata["payment_attempt_id"];
}

/** At most one successful charge an object, a payment, a client's key and an order id. */
function chargedTwice({ scenario }: Context, { stripe, accepted }: World): string | null {
  const seen = new Set<string>();
  for (const intent of stripe.value.intents) {
    if (intent.charges > 1) return `${intent.id} was charged ${intent.charges} times`;
    if (!holdsMoney(intent)) continue;
    const owner = accepted.find((one) => one.attemptId === attemptOf(intent));
    if (intent.account !== OUR_ACCOUNT)
      return `${intent.id} was charged through another account than the payment's`;
    if (owner === undefined) return `${intent.id} was charged for an attempt that was never accepted`;
    const request = scenario.requests[owner.request];
    const orderId = request?.operation === "payments.create" ? request.orderId : null;
    const names = [owner.paymentId, request?.key ?? "", ...(orderId === null ? [] : [orderId])];
    for (const name of names) {
      if (seen.has(name)) return `two charges for ${name}`;
      seen.add(name);
    }
  }
  return null;
}

/** At most one refund an attempt, and never more given back than was captured. */
function refundedTwice({ stripe, tables }: World): string | null {
  const made = stripe.value.refunds.filter(({ status }) => status !== "failed");
  const twice = made.find((one, at) =>
    made.some((other, place) => place < at && attemptOf(other) === attemptOf(one)),
  );
  if (twice !== undefined) {
    const refund = tables.refunds.find(({ value }) => value.attempt_id === attemptOf(twice))?.value;
    return `Stripe has made ${refund?.id ?? "a refund"} twice`;
  }
  const over = stripe.value.intents.find((intent) => refundedOf(stripe.value, intent.id) > intent.received);
  return over === undefined ? null : `more was refunded of ${over.id} than was captured`;
}

/** "Proven to be without effect" is never said of an attempt whose object holds money, then or later. */
function provenWrongly({ tables, stripe }: World): string | null {
  for (const { value: payment } of tables.payments) {
    const failure = payment.failure as { readonly retry?: string } | null;
    if (payment.status !== "failed" || failure?.retry !== "same_key") continue;
    const charged = stripe.value.intents.find(
      (intent) => attemptOf(intent) === payment.attempt_id && holdsMoney(intent),
    );
    if (charged !== undefined)
      return `${payment.id} was proven to be without effect, and ${charged.id} is charged`;
  }
  for (const { value: refund } of tables.refunds) {
    const failure = refund.failure as { readonly retry?: string } | null;
    if (refund.status !== "failed" || failure?.retry !== "same_key") continue;
    const made = stripe.value.refunds.find((one) => attemptOf(one) === refund.attempt_id);
    if (made !== undefined) return `${refund.id} was proven to be without effect, and ${made.id} is made`;
  }
  return null;
}

/** captured ≥ refunded ≥ 0, and the books say what the payment says. */
function wrongAmounts({ tables }: World): string | null {
  for (const [at, { value: payment }] of tables.payments.entries()) {
    const { amount_captured: captured, amount_refunded: refunded, refund_reserved: reserved } = payment;
    const inOrder =
      captured >= reserved && reserved >= refunded && refunded >= 0 && payment.amount >= captured;
    if (!inOrder)
      return `${payment.id} has captured ${captured}, refunded ${refunded} and reserved ${reserved}`;
    const wrong = wrongBooks(payment, tables.sides[at]?.value.ledger ?? []);
    if (wrong !== null) return wrong;
  }
  return null;
}

function wrongBooks(payment: PaymentRow, ledger: readonly LedgerRow[]): string | null {
  const balance = (account: string) =>
    ledger.reduce((sum, entry) => {
      const debit = entry.debit_account === account ? entry.amount : 0;
      return sum + debit - (entry.credit_account === account ? entry.amount : 0);
    }, 0);
  const accounts = new Set(ledger.flatMap((entry) => [entry.debit_account, entry.credit_account]));
  const total = [...accounts].reduce((sum, account) => sum + balance(account), 0);
  if (total !== 0) return `the ledger of ${payment.id} is ${total} and not zero`;
  const books = [balance("authorized"), -balance("sales"), balance("refunds")];
  const shown = [payment.amount_capturable, payment.amount_captured, payment.amount_refunded];
  if (books.every((sum, at) => sum === shown[at])) return null;
  return `the ledger of ${payment.id} has held, sold and refunded ${books.join(", ")}; the payment ${shown.join(", ")}`;
}

const OPEN = ["processing", "requires_action", "needs_review", "authorized"];

/** Nothing waits without a due time or a review. */
function stuck({ scenario }: Context, { tables }: World): string | null {
  for (const [at, { value: payment }] of tables.payments.entries()) {
    const due = tables.attempts.some(({ value }) => value.payment_id === payment.id && value.due);
    const reviewed = tables.sides[at]?.value.review !== null;
    if (OPEN.includes(payment.status) && !due && !reviewed)
      return `${payment.id} is ${payment.status}, and nothing is due`;
    if (payment.status === "needs_review" && !reviewed)
      return `${payment.id} needs a review, and none is open`;
    if (payment.open_effect !== null && !due) return `${payment.id} waits for an effect that is not due`;
  }
  for (const { value: refund } of tables.refunds) {
    const attempt = tables.attempts.find(({ value }) => value.id === refund.attempt_id)?.value;
    const at = tables.payments.findIndex(({ value }) => value.id === refund.payment_id);
    const watched = attempt?.due === true || tables.sides[at]?.value.review !== null;
    if (["processing", "needs_review"].includes(refund.status) && !watched) {
      return `${refund.id} is ${refund.status}, and nothing is due`;
    }
  }
  for (const [at, key] of tables.keys.entries()) {
    if (key?.value.state !== "in_progress") continue;
    const name = scenario.requests[at]?.key;
    const busy = tables.attempts.some(({ value }) => value.idempotency_key === name && value.due);
    if (!busy) return `the key ${name ?? ""} is in progress, and nothing is due`;
  }
  return null;
}

/** Where everything rests, money that moved is shown, or a person is asked. */
function forgotten({ tables, stripe, runs }: World): string | null {
  if (runs.length > 0 || tables.attempts.some(({ value }) => value.due)) return null;
  for (const made of stripe.value.refunds) {
    const refund = tables.refunds.find(({ value }) => value.attempt_id === attemptOf(made))?.value;
    if (made.status !== "failed" && refund?.status === "failed") {
      return `${made.id} is ${made.status}, ${refund.id} has failed, and nothing is due`;
    }
  }
  for (const intent of stripe.value.intents) {
    const at = tables.payments.findIndex(({ value }) => value.attempt_id === attemptOf(intent));
    const payment = tables.payments[at]?.value;
    if (payment === undefined || tables.sides[at]?.value.review !== null) continue;
    const shown = payment.status === "succeeded" ? payment.amount_captured : 0;
    if (intent.status === "succeeded" && shown !== intent.received) {
      return `${intent.id} has taken ${intent.received}, ${payment.id} shows ${shown}, and nothing is due`;
    }
    if (shown > 0 && intent.status !== "succeeded" && intent.id === providerObject(tables, payment)) {
      return `${payment.id} shows ${shown}, and ${intent.id} is ${intent.status}`;
    }
  }
  return null;
}

function providerObject(tables: World["tables"], payment: PaymentRow): string | null {
  return (
    tables.attempts.find(({ value }) => value.id === payment.attempt_id)?.value.provider_payment_id ?? null
  );
}

/** Whether all attempts have ended, wait for a customer or a bank, or are before a person. */
export function isEnd({ tables, runs }: World): boolean {
  if (runs.length > 0) return false;
  return tables.attempts.every(({ value: attempt }) => {
    if (attempt.state === "completed" || attempt.state === "following") return true;
    const at = tables.payments.findIndex(({ value }) => value.id === attempt.payment_id);
    return tables.sides[at]?.value.review !== null;
  });
}
