import type { ChargeView } from "../../../src/domain/charge-change.js";
import type { ProviderCall } from "../../../src/domain/provider.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import { OUR_ACCOUNT } from "./accounts.js";
import { BUDGET_MS, BUDGET_OVER, sinceStart } from "./clock.js";
import type { Context } from "./context.js";
import type { AttemptRow, LedgerRow, PaymentRow, SideRow, Tables } from "./rows.js";
import { refundedOf } from "./stripe-calls.js";
import type { Intent, StripeRefund } from "./stripe-objects.js";
import { isRecovering, type World } from "./world.js";

/** What must hold, each told in words where it does not: of every commit, of every send, of every state. */

const TERMINAL = ["succeeded", "failed", "canceled"];

/** What is wrong with one commit, whatever the rest of the world is; null: nothing. */
export function brokenBy(view: ChargeView, row: AdvanceRow): string | null {
  return untoldFact(view, row) ?? unbalanced(row);
}

/** What is wrong with a send: the barrier and the budget. */
export function brokenBySending(world: World, at: number, call: ProviderCall, nowMs: number): string | null {
  const { tables, doubts } = world;
  if (isRecovering(world)) return `${call} is sent while the database recovers`;
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
    provenWrongly(context, world) ??
    wrongAmounts(context, world) ??
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

/** At most one refund an attempt and a client's key, and never more given back than was captured. */
function refundedTwice({ stripe, tables }: World): string | null {
  const made = stripe.value.refunds.filter(({ status }) => status !== "failed");
  const keyOf = (one: StripeRefund) =>
    tables.attempts.find(({ value }) => value.id === attemptOf(one))?.value.idempotency_key;
  const isSame = (one: StripeRefund, other: StripeRefund) =>
    (attemptOf(one) !== undefined && attemptOf(one) === attemptOf(other)) ||
    (keyOf(one) !== undefined && keyOf(one) === keyOf(other));
  const twice = made.find((one, at) => made.some((other, place) => place < at && isSame(one, other)));
  if (twice !== undefined) {
    const refund = tables.refunds.find(({ value }) => value.attempt_id === attemptOf(twice))?.value;
    return `Stripe has made ${refund?.id ?? "a refund"} twice`;
  }
  const over = stripe.value.intents.find((intent) => refundedOf(stripe.value, intent.id) > intent.received);
  return over === undefined ? null : `more was refunded of ${over.id} than was captured`;
}

/** "Proven to be without effect" is never said of an attempt whose object holds money, then or later. */
function provenWrongly(context: Context, { tables, stripe }: World): string | null {
  for (const { value: payment } of tables.payments) {
    const failure = payment.failure as { readonly retry?: string } | null;
    if (payment.status !== "failed" || failure?.retry !== "same_key") continue;
    const charged = stripe.value.intents.find(
      (intent) => attemptOf(intent) === payment.attempt_id && holdsMoney(intent),
    );
    if (charged !== undefined && !isAskedAbout(context, tables, payment.attempt_id))
      return `${payment.id} was proven to be without effect, and ${charged.id} is charged`;
  }
  for (const { value: refund } of tables.refunds) {
    const failure = refund.failure as { readonly retry?: string } | null;
    if (refund.status !== "failed" || failure?.retry !== "same_key") continue;
    const made = stripe.value.refunds.find((one) => attemptOf(one) === refund.attempt_id);
    if (made !== undefined && !isAskedAbout(context, tables, refund.attempt_id))
      return `${refund.id} was proven to be without effect, and ${made.id} is made`;
  }
  return null;
}

/**
 * It ended on the word of its row alone, in the one minute in which that is believed and after a restore that nobody has
 * noticed, and an answer is still awaited.
 */
function isAskedAbout({ scenario }: Context, { attempts }: Tables, attemptId: string): boolean {
  const { allowed, recovers, moments } = scenario;
  if (!allowed.includes("restore") || recovers || !moments.includes(BUDGET_OVER)) return false;
  const attempt = attempts.find(({ value }) => value.id === attemptId)?.value;
  return attempt !== undefined && attempt.due && (attempt.unresolved || attempt.state !== "completed");
}

/** captured ≥ refunded ≥ 0, and the books say what the payment says. */
function wrongAmounts({ scenario }: Context, { tables }: World): string | null {
  const isOutside = scenario.dashboard.includes("refund");
  for (const [at, { value: payment }] of tables.payments.entries()) {
    const { amount_captured: captured, amount_refunded: refunded, refund_reserved: reserved } = payment;
    // What somebody gives back outside is counted beside what is reserved for a refund that the provider then refuses.
    const inOrder =
      captured >= (isOutside ? refunded : reserved) &&
      reserved >= refunded &&
      refunded >= 0 &&
      payment.amount >= captured;
    if (!inOrder)
      return `${payment.id} has captured ${captured}, refunded ${refunded} and reserved ${reserved}`;
    const side = tables.sides[at]?.value;
    const wrong = wrongBooks(payment, side?.ledger ?? []) ?? wrongDisputes(payment, side);
    if (wrong !== null) return wrong;
  }
  return null;
}

function balanceOf(ledger: readonly LedgerRow[], account: string): number {
  return ledger.reduce((sum, entry) => {
    const debit = entry.debit_account === account ? entry.amount : 0;
    return sum + debit - (entry.credit_account === account ? entry.amount : 0);
  }, 0);
}

/** What disputes have taken is in the books as disputed, or as lost; each dispute and each movement is told once. */
function wrongDisputes({ id, disputes }: PaymentRow, side: SideRow | undefined): string | null {
  if (disputes === null || side === undefined) return null;
  const movements = disputes.flatMap((dispute) => dispute.movements);
  const taken = disputes.map((one) => one.movements.reduce((sum, { amount }) => sum - amount, 0));
  const lost = taken.filter((_, at) => disputes[at]?.status === "lost").reduce((sum, one) => sum + one, 0);
  const shown = [taken.reduce((sum, one) => sum + one, 0) - lost, lost];
  const books = [balanceOf(side.ledger, "disputed"), balanceOf(side.ledger, "dispute_losses")];
  if (books.some((sum, at) => sum !== shown[at])) {
    return `the ledger of ${id} has disputed and lost ${books.join(", ")}; its disputes ${shown.join(", ")}`;
  }
  const told = [count(side.told, "dispute.opened"), count(side.told, "dispute.funds_")];
  const isToldOnce = told[0] === disputes.length && told[1] === movements.length;
  return isToldOnce ? null : `the disputes of ${id} are told as ${side.told.join(", ")}`;
}

function count(told: readonly string[], start: string): number {
  return told.filter((type) => type.startsWith(start)).length;
}

function wrongBooks(payment: PaymentRow, ledger: readonly LedgerRow[]): string | null {
  const balance = (account: string) => balanceOf(ledger, account);
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
    const reviews = tables.sides[at]?.value.reviews ?? [];
    if (OPEN.includes(payment.status) && !due && reviews.length === 0)
      return `${payment.id} is ${payment.status}, and nothing is due`;
    if (payment.status === "needs_review" && !isReviewed(tables, payment.attempt_id))
      return `${payment.id} needs a review, and none is open`;
    if (payment.open_effect !== null && !due) return `${payment.id} waits for an effect that is not due`;
  }
  for (const { value: refund } of tables.refunds) {
    const attempt = tables.attempts.find(({ value }) => value.id === refund.attempt_id)?.value;
    const reviewed = isReviewed(tables, refund.attempt_id);
    if (["processing", "needs_review"].includes(refund.status) && attempt?.due !== true && !reviewed) {
      return `${refund.id} is ${refund.status}, and nothing is due`;
    }
    if (refund.status === "needs_review" && !reviewed) return `${refund.id} needs a review, and none is open`;
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
    if (payment === undefined || (tables.sides[at]?.value.reviews ?? []).length > 0) continue;
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
    return (
      isReviewed(tables, attempt.id) || tables.attempts.some(({ value }) => holdsUp(tables, value, attempt))
    );
  });
}

function isReviewed(tables: Tables, attemptId: string): boolean {
  return tables.sides.some(({ value }) => value.reviews.some((review) => review.attemptId === attemptId));
}

/** An earlier run of the key that is before a person, until whose word the next one sends nothing. */
function holdsUp(tables: Tables, earlier: AttemptRow, { idempotency_key, run }: AttemptRow): boolean {
  return earlier.idempotency_key === idempotency_key && earlier.run < run && isReviewed(tables, earlier.id);
}
