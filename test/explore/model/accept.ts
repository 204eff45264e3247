import type { EffectRequest } from "../../../src/domain/admit-effect.js";
import type { EffectInput } from "../../../src/domain/provider.js";
import { OUR_ACCOUNT } from "./accounts.js";
import { textAt } from "./clock.js";
import type { Context } from "./context.js";
import {
  type AttemptRow,
  type EffectRows,
  type KeyRow,
  type PaymentRow,
  type RefundRow,
  replaced,
  type Tables,
} from "./rows.js";
import type { ClientRequest } from "./scenario.js";
import type { To } from "./step.js";
import { readPayment } from "./store.js";
import { isRecovering, type World } from "./world.js";

export const TENANT = "ten_1";
export const SECRET = "the installation's secret";
export const CURRENCY = "usd";

type Payment = ClientRequest & { readonly operation: "payments.create" };
type Effect = Exclude<ClientRequest, Payment>;

/** A request as one of its runs. */
interface Run<Request extends ClientRequest> {
  readonly request: Request;
  /** The request's place in the scenario. */
  readonly at: number;
  readonly number: number;
  readonly attemptId: string;
  readonly createdAt: string;
}

/**
 * A request arrives. With a key that has its answer, or is at work, nothing is written; a key that is new, or whose last
 * run is proven to be without effect, is accepted as src/store/accept.ts and accept-effect.ts do.
 */
export function accepts(context: Context, world: World, at: number, to: To): void {
  const request = context.scenario.requests[at];
  if (request === undefined) throw new Error(`the scenario has no request ${at}`);
  const key = world.tables.keys[at]?.value ?? null;
  const number = (key?.run ?? 0) + 1;
  const isFree = key === null || key.state === "failed_retryable";
  if (!isFree || number > context.scenario.runs) return;
  const { recoveryAcceptsNothing, recoveryAcceptsNoEffect } = context.rules;
  const isRefused =
    request.operation === "payments.create" ? recoveryAcceptsNothing : recoveryAcceptsNoEffect;
  if (isRefused && isRecovering(world)) return;
  // One draw an accept, so that an id which is not derived is another one the next time.
  const attemptId = context.memos.attemptId.get(`${at} ${number} ${world.accepted.length}`, () => {
    const name = { tenantId: TENANT, operation: request.operation, key: request.key };
    return context.shipped.attemptIdOf(SECRET, name, number);
  });
  const stands = world.tables.attempts.some(({ value }) => value.id === attemptId);
  if (context.rules.acceptMindsAttempts && stands) return;
  if (key === null && context.rules.acceptMindsOtherRuns && world.recovery !== "none") {
    const isOtherRun = otherRunsOf(context, request);
    if (world.tables.attempts.some(({ value }) => isOtherRun(value.id))) return;
  }
  const run = { at, number, attemptId, createdAt: textAt(context.atMs(world.moment)) };
  if (request.operation === "payments.create") acceptsPayment(context, world, { ...run, request }, to);
  else acceptsEffect(context, world, { ...run, request }, to);
}

/** Whether an id is that of a run of the request's key, which may have been lost with its record. */
function otherRunsOf(context: Context, { operation, key }: ClientRequest): (id: string) => boolean {
  const name = { tenantId: TENANT, operation, key };
  const ids = Array.from({ length: context.scenario.runs }, (_, at) =>
    context.shipped.attemptIdOf(SECRET, name, at + 1),
  );
  return (id) => ids.includes(id);
}

function acceptsPayment(context: Context, world: World, run: Run<Payment>, to: To): void {
  const { refs, rules } = context;
  const { tables } = world;
  const { request, at, number, attemptId } = run;
  const { orderId } = request;
  if (rules.acceptMindsOrderIds && orderId !== null && tables.orders.value[orderId] !== undefined) return;
  // Ids are never given twice, also where the tables have forgotten the first.
  const paymentId = `pay_${world.accepted.length + 1}`;
  const rows = context.memos.accepted.get(`${paymentId} ${attemptId} ${run.createdAt}`, () => {
    const payment = paymentRow(run, paymentId);
    const attempt = chargeAttempt(context, payment, run);
    return { payment: refs.payments.of(payment), attempt: refs.attempts.of(attempt) };
  });
  const next: Tables = {
    ...tables,
    attempts: [...tables.attempts, rows.attempt],
    payments: [...tables.payments, rows.payment],
    sides: [...tables.sides, refs.sides.of({ ledger: [], reviews: [], told: [] })],
    keys: withKey(context, tables, run, "in_progress", paymentId),
    orders:
      orderId === null ? tables.orders : refs.orders.of({ ...tables.orders.value, [orderId]: paymentId }),
  };
  const accepted = [...world.accepted, { attemptId, paymentId, request: at }];
  const again = number > 1 ? ", sent again," : "";
  to(
    { ...world, tables: next, accepted },
    () => `the client's request ${request.key}${again} is accepted as ${paymentId}`,
  );
}

function withKey(
  { refs }: Context,
  { keys }: Tables,
  { at, number }: Run<ClientRequest>,
  state: KeyRow["state"],
  paymentId: string,
): Tables["keys"] {
  const status = state === "completed" ? REFUSED : null;
  return replaced(keys, at, refs.keys.of({ state, run: number, status, payment_id: paymentId }));
}

const REFUSED = 409;

function paymentRow({ request, attemptId, createdAt }: Run<Payment>, id: string): PaymentRow {
  return {
    tenant_id: TENANT,
    id,
    attempt_id: attemptId,
    status: "processing",
    version: 1,
    amount: request.amount,
    currency: CURRENCY,
    capture_method: request.captureMethod,
    payment_method: "pm_card",
    merchant_order_id: request.orderId,
    holds_order_id: request.orderId !== null,
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
}

function chargeAttempt({ shipped }: Context, payment: PaymentRow, run: Run<Payment>): AttemptRow {
  const input = {
    amount: payment.amount,
    currency: CURRENCY,
    payment_method: payment.payment_method,
    capture_method: run.request.captureMethod,
    merchant_order_id: payment.merchant_order_id,
    customer: null,
    description: null,
    statement_descriptor: null,
    return_url: null,
    metadata: {},
  };
  const reference = { attemptId: run.attemptId, tenantId: TENANT };
  const prepared = shipped.prepareChargeParameters(input, reference);
  if (!prepared.ok) throw new Error(prepared.detail);
  return attemptRow(payment, run, "charge", prepared.parameters);
}

function acceptsEffect(context: Context, world: World, run: Run<Effect>, to: To): void {
  const { tables } = world;
  const { request } = run;
  const paymentId = tables.keys[request.of]?.value.payment_id;
  const paymentAt = tables.payments.findIndex(({ value }) => value.id === paymentId);
  const row = tables.payments[paymentAt];
  const charge = tables.attempts.find(({ value }) => value.id === row?.value.attempt_id);
  if (row === undefined || charge === undefined) return;
  const effect = effectOf(request);
  const admission = context.shipped.admit(readPayment(context, row, charge), effect);
  const { id } = row.value;
  if (admission.type === "refused") {
    if (admission.passing) return;
    const keys = withKey(context, tables, run, "completed", id);
    to(
      { ...world, tables: { ...tables, keys } },
      () => `the client's ${effect.kind} is refused: ${admission.code}`,
    );
    return;
  }
  const refundId = effect.kind === "refund" ? `re_${tables.refunds.length + 1}` : null;
  const known = `${row.id} ${charge.id} ${run.attemptId} ${refundId ?? ""} ${run.createdAt}`;
  const rows = context.memos.acceptedEffect.get(known, () =>
    effectRows(context, { row: row.value, charge: charge.value, run, effect, refundId }, admission.amount),
  );
  const next: Tables = {
    ...tables,
    attempts: [...tables.attempts, rows.attempt],
    payments: replaced(tables.payments, paymentAt, rows.payment),
    refunds: rows.refund === null ? tables.refunds : [...tables.refunds, rows.refund],
    keys: withKey(context, tables, run, "in_progress", id),
  };
  const fault =
    effect.kind === "refund" && (row.value.disputes ?? []).some(({ status }) => status !== "won")
      ? `a refund of ${id} is accepted, and its money is with a dispute`
      : null;
  to({ ...world, tables: next }, () => `the client's ${effect.kind} ${request.key} is accepted`, fault);
}

function effectRows(
  { refs, shipped }: Context,
  made: {
    readonly row: PaymentRow;
    readonly charge: AttemptRow;
    readonly run: Run<Effect>;
    readonly effect: EffectRequest;
    readonly refundId: string | null;
  },
  amount: number | null,
): EffectRows {
  const { row, charge, run, effect, refundId } = made;
  const chargeId = charge.provider_payment_id;
  if (chargeId === null) throw new Error(`${row.id} is ${row.status} and has no provider object`);
  const reference = { attemptId: run.attemptId, tenantId: TENANT };
  const prepared = shipped.prepareEffectParameters(inputOf(effect, chargeId, amount), reference);
  if (!prepared.ok) throw new Error(prepared.detail);
  const attempt: AttemptRow = {
    ...attemptRow(row, run, effect.kind, prepared.parameters),
    amount,
    refund_id: refundId,
    provider_account: charge.provider_account,
    provider_payment_id: chargeId,
  };
  const payment: PaymentRow = {
    ...row,
    version: row.version + 1,
    open_effect: refundId === null ? attempt.id : row.open_effect,
    refund_reserved: row.refund_reserved + (refundId === null ? 0 : (amount ?? 0)),
  };
  const refund = refundId === null ? null : refundRow(row, run, refundId, amount ?? 0);
  return {
    attempt: refs.attempts.of(attempt),
    payment: refs.payments.of(payment),
    refund: refund === null ? null : refs.refunds.of(refund),
  };
}

function refundRow(payment: PaymentRow, run: Run<Effect>, id: string, amount: number): RefundRow {
  return {
    tenant_id: TENANT,
    id,
    payment_id: payment.id,
    attempt_id: run.attemptId,
    status: "processing",
    version: 1,
    amount,
    currency: payment.currency,
    provider: payment.provider,
    provider_refund_id: null,
    failure: null,
    external: false,
    created_at: run.createdAt,
  };
}

function effectOf({ operation, amount }: Effect): EffectRequest {
  switch (operation) {
    case "payments.capture":
      return { kind: "capture", amount };
    case "payments.cancel":
      return { kind: "cancel", reason: null };
    case "refunds.create":
      return { kind: "refund", amount, reason: null, metadata: {} };
  }
}

function inputOf(effect: EffectRequest, chargeId: string, amount: number | null): EffectInput {
  if (effect.kind === "cancel") return { call: "cancel", reason: null };
  if (amount === null) throw new Error(`a ${effect.kind} was admitted without an amount`);
  return effect.kind === "capture"
    ? { call: "capture", amount, currency: CURRENCY }
    : { call: "refund", chargeId, amount, currency: CURRENCY, reason: null };
}

/** With the defaults of src/store/schema.ts. */
function attemptRow(
  payment: PaymentRow,
  { request, number, attemptId, createdAt }: Run<ClientRequest>,
  kind: AttemptRow["kind"],
  parameters: string,
): AttemptRow {
  return {
    tenant_id: TENANT,
    id: attemptId,
    payment_id: payment.id,
    kind,
    operation: request.operation,
    idempotency_key: request.key,
    run: number,
    request_id: "req_1",
    amount: null,
    refund_id: null,
    state: "started",
    fence: 1,
    lease: "none",
    due: true,
    nudged: false,
    provider: payment.provider,
    provider_account: OUR_ACCOUNT,
    livemode: false,
    parameters,
    provider_payment_id: null,
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
    created_at: createdAt,
  };
}
