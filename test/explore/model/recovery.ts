import type { OurCharge } from "../../../src/domain/reconcile.js";
import type { Ref } from "../refs.js";
import { CURRENCY, TENANT } from "./accept.js";
import { OUR_ACCOUNT } from "./accounts.js";
import { dateAt, KEY_KEPT_MS, textAt } from "./clock.js";
import type { Context } from "./context.js";
import { withOutsideRefund } from "./outside.js";
import type { AttemptRow, PaymentRow, Tables } from "./rows.js";
import type { To } from "./step.js";
import { nudge } from "./store.js";
import type { Intent, StripeRefund } from "./stripe-objects.js";
import { listedCharge, listedRefund } from "./wire.js";
import { nameOf } from "./words.js";
import { isRecovering, type World } from "./world.js";

/** After a restore that was noticed: what src/operations/recover.ts and the comparison do until sends go out again. */

/** As `markOpenAttempts` of src/store/recovery.ts; nobody holds a lease after a restore. */
export function markedOpen(context: Context, tables: Tables, moment: number): Tables {
  const { refs, shipped } = context;
  const now = textAt(context.atMs(moment));
  const attempts = tables.attempts.map((ref): Ref<AttemptRow> => {
    const { value: row } = ref;
    if (!row.due) return ref;
    const isUnsaid = row.state === "started" || row.state === "charge_created";
    const unknown = row.kind === "charge" ? "create_unknown" : "send_unknown";
    return refs.attempts.of({
      ...row,
      state: row.state === "started" ? unknown : row.state,
      unresolved: row.unresolved || isUnsaid,
      unknown_since: row.unknown_since ?? (isUnsaid ? now : null),
      wait_reason: shipped.DATABASE_CHANGED,
    });
  });
  return { ...tables, attempts };
}

/** The comparison of a recovery, object by object, and its end. */
export function recovers(context: Context, world: World, to: To): void {
  if (!isRecovering(world)) return;
  let isMissing = false;
  for (const intent of world.stripe.value.intents) {
    for (const { repair } of differencesOf(context, world, intent)) {
      if (repair.type === "rebuild_payment") {
        isMissing = true;
        const tables = withRebuilt(context, world, intent);
        to({ ...world, tables }, () => `the recovery makes a payment again from ${intent.id}`);
      } else if (repair.type === "nudge") {
        const at = world.tables.attempts.findIndex(({ value }) => value.id === repair.attempt.id);
        const { value: row } = world.tables.attempts[at]!;
        if (row.lease === "live" || row.due) continue;
        const tables = nudge(context, world.tables, at);
        to({ ...world, tables }, () => `the recovery has ${nameOf(tables, at)} looked at`);
      }
    }
  }
  for (const refund of world.stripe.value.refunds) {
    if (!lacksRefund(context, world, refund)) continue;
    isMissing = true;
    const tables = withRebuiltRefund(context, world, refund);
    to({ ...world, tables }, () => `the recovery makes a refund again from ${refund.id}`);
  }
  // Assumed: a refund that was under way when the database was lost has been made by then, or never will be.
  if (world.flying.some(({ value }) => value.call === "refund")) return;
  if (isMissing || world.tables.attempts.some(({ value }) => isUnanswered(context, value))) return;
  to({ ...world, recovery: "over" }, () => "the recovery ends: everything has had an answer");
}

function isUnanswered({ shipped }: Context, { due, wait_reason: reason }: AttemptRow): boolean {
  return due && reason !== null && shipped.NOT_ANSWERED.includes(reason);
}

function differencesOf(context: Context, { tables, moment }: World, intent: Intent) {
  const charge = listedCharge(context.shipped, intent);
  const ours = (fits: (row: AttemptRow) => boolean) => {
    const row = tables.attempts.find(({ value }) => value.kind === "charge" && fits(value))?.value;
    return row === undefined ? null : ourCharge(tables, row);
  };
  const owner = ours((row) => row.provider_payment_id === intent.id);
  const marked = ours((row) => row.id === charge.attemptId);
  return context.shipped.compareCharge(
    { ...charge, createdAt: dateAt(intent.createdAtMs) },
    { owner, marked, isTenantKnown: true },
    {
      settledBefore: null,
      keysGoneBefore: dateAt(context.atMs(moment) - KEY_KEPT_MS),
      isRestored: true,
    },
  );
}

/** A refund of ours whose row was lost, of a charge that is known. */
function lacksRefund({ shipped }: Context, { tables }: World, refund: StripeRefund): boolean {
  const known = tables.refunds.some(({ value }) => value.provider_refund_id === refund.id);
  const charge = tables.attempts.find(
    ({ value }) => value.kind === "charge" && value.provider_payment_id === refund.intentId,
  );
  const theirs = listedRefund(shipped, refund);
  // Its attempt stands, and asks for it.
  const isMarked = tables.attempts.some(({ value }) => value.id === theirs.attemptId);
  if (known || charge === undefined || isMarked) return false;
  const counterpart = {
    charge: ourCharge(tables, charge.value),
    refund: null,
    marked: null,
    isTenantKnown: true,
  };
  return shipped
    .compareRefund(theirs, counterpart, { settledBefore: null, isRestored: true })
    .some(({ repair }) => repair.type === "rebuild_refund");
}

function withRebuiltRefund(context: Context, world: World, refund: StripeRefund): Tables {
  const { tables } = world;
  const charge = tables.attempts.find(
    ({ value }) => value.kind === "charge" && value.provider_payment_id === refund.intentId,
  )!;
  const paymentAt = tables.payments.findIndex(({ value }) => value.id === charge.value.payment_id);
  const payment = tables.payments[paymentAt]!;
  return withOutsideRefund(context, world, { refund, charge, payment, paymentAt });
}

function ourCharge({ payments }: Tables, row: AttemptRow): OurCharge {
  const payment = payments.find(({ value }) => value.id === row.payment_id)!.value;
  return {
    tenantId: row.tenant_id,
    id: row.id,
    paymentId: row.payment_id,
    kind: row.kind,
    livemode: row.livemode,
    objectId: row.provider_payment_id,
    ended: row.state === "completed",
    inWork: row.lease === "live",
    isDue: row.due,
    status: payment.status as OurCharge["status"],
    amount: payment.amount,
    currency: payment.currency,
    amountCaptured: payment.amount_captured,
    amountCapturable: payment.amount_capturable,
    hasOpenEffect: payment.open_effect !== null,
    changedAt: dateAt(0),
  };
}

/** As `insertRebuiltPayment` of src/store/rebuilt-payments.ts. */
function withRebuilt({ refs, shipped }: Context, { tables }: World, intent: Intent): Tables {
  const charge = listedCharge(shipped, intent);
  const { attemptId } = charge;
  if (attemptId === null) throw new Error(`${intent.id} carries no mark`);
  const id = `pay_of_${intent.id}`;
  const createdAt = textAt(intent.createdAtMs);
  const payment: PaymentRow = {
    tenant_id: TENANT,
    id,
    attempt_id: attemptId,
    status: "processing",
    version: 1,
    amount: intent.amount,
    currency: CURRENCY,
    capture_method: intent.captureMethod,
    payment_method: "pm_1",
    merchant_order_id: null,
    holds_order_id: false,
    metadata: {},
    provider: "stripe",
    next_action: null,
    failure: null,
    amount_capturable: 0,
    amount_captured: 0,
    amount_refunded: 0,
    refund_reserved: 0,
    open_effect: null,
    authorized_until: null,
    cancellation_reason: null,
    disputes: null,
    livemode: false,
    created_at: createdAt,
  };
  const attempt: AttemptRow = {
    tenant_id: TENANT,
    id: attemptId,
    payment_id: id,
    kind: "charge",
    operation: "payments.create",
    idempotency_key: `recovered:${intent.id}`,
    run: 1,
    request_id: "req_1",
    amount: null,
    refund_id: null,
    state: charge.status === "created" ? "fencing" : "following",
    fence: 1,
    lease: "none",
    due: true,
    nudged: false,
    provider: "stripe",
    provider_account: OUR_ACCOUNT,
    livemode: false,
    parameters: "",
    provider_payment_id: intent.id,
    unresolved: false,
    key_spent: false,
    create_first_sent_at: null,
    confirm_first_sent_at: null,
    fence_first_sent_at: null,
    effect_first_sent_at: null,
    fence_round: 1,
    waits: 0,
    wait_reason: shipped.DATABASE_CHANGED,
    unknown_since: null,
    instruction: null,
    created_at: createdAt,
  };
  return {
    ...tables,
    attempts: [...tables.attempts, refs.attempts.of(attempt)],
    payments: [...tables.payments, refs.payments.of(payment)],
    sides: [...tables.sides, refs.sides.of({ ledger: [], reviews: [], told: [] })],
  };
}
