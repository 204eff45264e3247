import type { DisputeReading } from "../../../src/domain/dispute.js";
import { ATTEMPT_METADATA_KEY } from "../../../src/providers/stripe/outcome.js";
import type { Ref } from "../refs.js";
import { CURRENCY, SECRET, TENANT } from "./accept.js";
import { dateAt, textAt } from "./clock.js";
import type { Context } from "./context.js";
import {
  type AttemptRow,
  type PaymentRow,
  type RefundRow,
  replaced,
  type SideRow,
  type Tables,
} from "./rows.js";
import type { To } from "./step.js";
import { nudge, readPayment } from "./store.js";
import { isDisputed, refundedOf } from "./stripe-calls.js";
import type { Intent, Stripe, StripeDispute, StripeRefund } from "./stripe-objects.js";
import { listedRefund } from "./wire.js";
import { type DisputeRead, sorted, type World } from "./world.js";

/**
 * What happens to a payment and no attempt of ours brought about: refunds made at the dashboard, and disputes. What
 * follows is written as src/operations/record-external-refund.ts and record-dispute.ts do, in one statement that names
 * the payment's version: what was read of the payment is as it is when it is written, what was read of Stripe need not be.
 */

export const OUTSIDE_AMOUNT = 30;
const FEE = 15;

/** Null: there is not so much left, or the money is disputed. */
export function refundedAtDashboard(stripe: Stripe, intent: Intent): Stripe | null {
  const left = intent.received - refundedOf(stripe, intent.id);
  if (intent.status !== "succeeded" || left < OUTSIDE_AMOUNT || isDisputed(stripe, intent.id)) return null;
  const made: StripeRefund = {
    id: `re_stripe_${stripe.refunds.length + 1}`,
    account: intent.account,
    intentId: intent.id,
    amount: OUTSIDE_AMOUNT,
    currency: intent.currency,
    status: "succeeded",
    metadata: {},
  };
  return { ...stripe, refunds: [...stripe.refunds, made] };
}

/** A webhook tells of a refund without our marks: recorded once, and followed by an attempt of its own. */
export function tellsOfRefund(context: Context, world: World, refund: StripeRefund, to: To): void {
  const { tables } = world;
  const known = tables.refunds.find(({ value }) => value.provider_refund_id === refund.id);
  if (known !== undefined) {
    const at = tables.attempts.findIndex(({ value }) => value.id === known.value.attempt_id);
    const { value: row } = tables.attempts[at]!;
    if (row.lease === "live" || row.due) return;
    to({ ...world, tables: nudge(context, tables, at) }, () => `a webhook tells again of ${refund.id}`);
    return;
  }
  const charge = chargeOf(tables, refund.intentId);
  const paymentAt = tables.payments.findIndex(({ value }) => value.id === charge?.value.payment_id);
  const payment = tables.payments[paymentAt];
  if (charge === undefined || payment === undefined) return;
  const found = listedRefund(context.shipped, refund);
  const is = context.shipped.judgeOutsideRefund(readPayment(context, payment, charge), found);
  if (is !== "refund") return;
  const next = withOutsideRefund(context, world, { refund, charge, payment, paymentAt });
  to({ ...world, tables: next }, () => `a webhook tells of ${refund.id}, which was made outside`);
}

function chargeOf(tables: Tables, intentId: string): Ref<AttemptRow> | undefined {
  return tables.attempts.find(
    ({ value }) => value.kind === "charge" && value.provider_payment_id === intentId,
  );
}

/** As `writeOutsideFact` of src/store/outside-facts.ts. */
export function withOutsideRefund(
  context: Context,
  { tables, moment }: World,
  about: {
    readonly refund: StripeRefund;
    readonly charge: Ref<AttemptRow>;
    readonly payment: Ref<PaymentRow>;
    readonly paymentAt: number;
  },
): Tables {
  const { refs, shipped } = context;
  const { refund, charge, payment, paymentAt } = about;
  const mark = refund.metadata[ATTEMPT_METADATA_KEY] ?? null;
  // One of ours is made again under its own attempt, as src/operations/rebuild-rows.ts does it.
  const operation = mark === null ? "refunds.external" : "refunds.create";
  const now = textAt(context.atMs(moment));
  const id = `re_of_${refund.id}`;
  const attempt: AttemptRow = {
    ...charge.value,
    id: mark ?? shipped.attemptIdOf(SECRET, { tenantId: TENANT, operation, key: refund.id }, 1),
    kind: "refund",
    operation,
    idempotency_key: refund.id,
    run: 1,
    amount: refund.amount,
    refund_id: id,
    state: "following",
    fence: 1,
    lease: "none",
    due: true,
    nudged: false,
    parameters: "",
    unresolved: false,
    key_spent: false,
    create_first_sent_at: null,
    confirm_first_sent_at: null,
    fence_first_sent_at: null,
    effect_first_sent_at: null,
    fence_round: 1,
    waits: 0,
    wait_reason: null,
    unknown_since: null,
    instruction: null,
    created_at: now,
  };
  const row: RefundRow = {
    tenant_id: TENANT,
    id,
    payment_id: payment.value.id,
    attempt_id: attempt.id,
    status: "processing",
    version: 1,
    amount: refund.amount,
    currency: CURRENCY,
    provider: "stripe",
    provider_refund_id: refund.id,
    failure: null,
    external: true,
    created_at: now,
  };
  const paid: PaymentRow = {
    ...payment.value,
    version: payment.value.version + 1,
    refund_reserved: payment.value.refund_reserved + refund.amount,
  };
  return {
    ...tables,
    attempts: [...tables.attempts, refs.attempts.of(attempt)],
    refunds: [...tables.refunds, refs.refunds.of(row)],
    payments: replaced(tables.payments, paymentAt, refs.payments.of(paid)),
  };
}

/** Who paid disputes what is left of it, once; the bank decides, and may hear an appeal. */
export function disputes(context: Context, world: World, to: To): void {
  if (!context.scenario.disputes) return;
  const stripe = world.stripe.value;
  const becomes = (next: StripeDispute, says: () => string) => {
    const others = stripe.disputes.filter(({ id }) => id !== next.id);
    to({ ...world, stripe: context.refs.stripe.of({ ...stripe, disputes: [...others, next] }) }, says);
  };
  for (const intent of stripe.intents) {
    const amount = intent.received - refundedOf(stripe, intent.id);
    if (stripe.disputes.length > 0 || intent.status !== "succeeded" || amount === 0) continue;
    const movements = [{ id: "txn_taken", amount: -amount, fee: FEE }];
    const opened = { id: "dp_1", intentId: intent.id, amount, status: "needs_response", movements } as const;
    becomes(opened, () => `${intent.id} is disputed, and ${amount} are taken`);
  }
  for (const dispute of stripe.disputes) {
    if (dispute.status === "won") continue;
    const back = { id: "txn_given_back", amount: dispute.amount, fee: -FEE };
    const won = { ...dispute, status: "won", movements: [...dispute.movements, back] } as const;
    const how = dispute.status === "lost" ? "on appeal" : "and the money comes back";
    becomes(won, () => `the dispute ${dispute.id} is won, ${how}`);
    if (dispute.status !== "lost") {
      becomes({ ...dispute, status: "lost" }, () => `the dispute ${dispute.id} is lost`);
    }
  }
}

const MOST_READINGS = 2;

/** A webhook tells of a dispute, and a worker reads it: what it writes later may be old by then. */
export function readsDispute(context: Context, world: World, dispute: StripeDispute, to: To): void {
  const reading = context.refs.readings.of({ dispute, isNewer: true });
  if (world.readings.length >= MOST_READINGS || world.readings.includes(reading)) return;
  if (chargeOf(world.tables, dispute.intentId) === undefined) return;
  const readings = sorted([...world.readings, reading]);
  to({ ...world, readings }, () => `a webhook tells of ${dispute.id}, and it is read: ${dispute.status}`);
}

/** What was read is written, or changes nothing. */
export function writesOfDisputes(context: Context, world: World, to: To): void {
  for (const reading of world.readings) {
    const { dispute } = reading.value;
    const others = world.readings.filter((one) => one !== reading);
    const written = advanced(context, world, reading.value);
    if (written === null) {
      to({ ...world, readings: others }, () => `what was read of ${dispute.id} changes nothing`);
      continue;
    }
    const older = others.map(({ value }) => context.refs.readings.of({ ...value, isNewer: false }));
    const readings = sorted([...new Set(older)]);
    const says = () => `what was read of ${dispute.id} is written: ${dispute.status}`;
    to({ ...world, tables: written, readings }, says, wentBack(world.tables, written, dispute.id));
  }
}

/** A dispute that has ended is not opened again here: an appeal leads from one end to the other. */
function wentBack(before: Tables, after: Tables, id: string): string | null {
  const statusIn = ({ payments }: Tables) =>
    payments.flatMap(({ value }) => value.disputes ?? []).find((one) => one.id === id)?.status;
  const [from, to] = [statusIn(before), statusIn(after)];
  const isBack = to === "open" && (from === "won" || from === "lost");
  return isBack ? `${id} was ${from}, and is shown as ${to} again` : null;
}

function advanced(
  context: Context,
  { tables, moment }: World,
  { dispute, isNewer }: DisputeRead,
): Tables | null {
  const { shipped, refs } = context;
  const charge = chargeOf(tables, dispute.intentId);
  const at = tables.payments.findIndex(({ value }) => value.id === charge?.value.payment_id);
  const payment = tables.payments[at]!.value;
  const side = tables.sides[at]!.value;
  const nowMs = context.atMs(moment);
  const times = { now: dateAt(nowMs), beganAt: dateAt(nowMs + (isNewer ? 1 : -1)) };
  const advance = shipped.advanceDispute(payment.disputes ?? [], readingOf(dispute), times);
  if (advance.type !== "advanced") return null;
  const known = new Set(side.ledger.map((entry) => entry.fact));
  const entries = advance.facts
    .flatMap((fact) => shipped.postingsOf(fact))
    .filter(({ fact }) => !known.has(fact))
    .map(({ currency: _currency, debitAccount, creditAccount, ...entry }) => ({
      ...entry,
      debit_account: debitAccount,
      credit_account: creditAccount,
    }));
  const paid: PaymentRow = { ...payment, version: payment.version + 1, disputes: advance.disputes };
  const told: SideRow = {
    ...side,
    ledger: [...side.ledger, ...entries],
    told: [...side.told, ...advance.events],
  };
  return {
    ...tables,
    payments: replaced(tables.payments, at, refs.payments.of(paid)),
    sides: replaced(tables.sides, at, refs.sides.of(told)),
  };
}

function readingOf({ id, intentId, amount, status, movements }: StripeDispute): DisputeReading {
  return {
    id,
    chargeId: intentId,
    status: status === "needs_response" ? "open" : status,
    amount,
    currency: CURRENCY,
    reason: "fraudulent",
    livemode: false,
    movements: movements.map((one) => ({
      transactionId: one.id,
      amount: one.amount,
      fee: one.fee,
      currency: CURRENCY,
    })),
  };
}
