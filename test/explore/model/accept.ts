import type { EffectRequest } from "../../../src/domain/admit-effect.js";
import type { EffectInput } from "../../../src/domain/provider.js";
import { OUR_ACCOUNT } from "./accounts.js";
import { textAt } from "./clock.js";
import type { Context } from "./context.js";
import {
  type AttemptRow,
  type KeyRow,
  type PaymentRow,
  type RefundRow,
  replaced,
  type Tables,
} from "./rows.js";
import type { ClientRequest } from "./scenario.js";
import type { To } from "./step.js";
import { readPayment } from "./store.js";
import type { World } from "./world.js";

const TENANT = "ten_1";
const SECRET = "the installation's secret";
const CURRENCY = "usd";

/**
 * A request arrives. With a key that has its answer, or is at work, nothing is written; a key that is new, or whose last
 * run is proven to be without effect, is accepted as src/store/accept.ts and accept-effect.ts do.
 */
export function accepts(context: Context, world: World, at: number, to: To): void {
  const request = context.scenario.requests[at]!;
  const key = world.tables.keys[at]?.value ?? null;
  if (key !== null && key.state !== "failed_retryable") return;
  const run = (key?.run ?? 0) + 1;
  if (run > context.scenario.runs) return;
  const name = { tenantId: TENANT, operation: request.operation, key: request.key };
  const attemptId = context.shipped.attemptIdOf(SECRET, name, run);
  // The derived id stands already: the key's record was purged, and the request is refused.
  if (world.tables.attempts.some(({ value }) => value.id === attemptId)) return;
  if (request.operation === "payments.create")
    acceptsPayment(context, world, at, request, { attemptId, run }, to);
  else acceptsEffect(context, world, at, request, { attemptId, run }, to);
}

interface Derived {
  readonly attemptId: string;
  readonly run: number;
}

function acceptsPayment(
  context: Context,
  world: World,
  at: number,
  request: ClientRequest & { operation: "payments.create" },
  derived: Derived,
  to: To,
): void {
  const { refs, rules } = context;
  const { tables } = world;
  const { orderId } = request;
  if (rules.acceptMindsOrderIds && orderId !== null && tables.orders.value[orderId] !== undefined) return;
  const payment = paymentRow(context, world, request, derived);
  const attempt = chargeAttempt(context, payment, request, derived);
  const key: KeyRow = { state: "in_progress", run: derived.run, status: null, payment_id: payment.id };
  const next: Tables = {
    ...tables,
    attempts: [...tables.attempts, refs.attempts.of(attempt)],
    payments: [...tables.payments, refs.payments.of(payment)],
    sides: [...tables.sides, refs.sides.of({ ledger: [], review: null })],
    keys: replaced(tables.keys, at, refs.keys.of(key)),
    orders:
      orderId === null ? tables.orders : refs.orders.of({ ...tables.orders.value, [orderId]: payment.id }),
  };
  const accepted = [...world.accepted, { attemptId: derived.attemptId, paymentId: payment.id, request: at }];
  const says = () =>
    `the client's request ${request.key}${derived.run > 1 ? ", sent again," : ""} is accepted as ${payment.id}`;
  to({ ...world, tables: next, accepted }, says);
}

function paymentRow(
  context: Context,
  world: World,
  request: ClientRequest & { operation: "payments.create" },
  { attemptId }: Derived,
): PaymentRow {
  return {
    tenant_id: TENANT,
    // Ids are never given twice, also where the tables have forgotten the first.
    id: `pay_${world.accepted.length + 1}`,
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
    livemode: false,
    created_at: textAt(context.atMs(world.moment)),
  };
}

function chargeAttempt(
  { shipped }: Context,
  payment: PaymentRow,
  request: ClientRequest & { operation: "payments.create" },
  { attemptId, run }: Derived,
): AttemptRow {
  const prepared = shipped.prepareChargeParameters(
    {
      amount: request.amount,
      currency: CURRENCY,
      payment_method: payment.payment_method,
      capture_method: request.captureMethod,
      merchant_order_id: request.orderId,
      customer: null,
      description: null,
      statement_descriptor: null,
      return_url: null,
      metadata: {},
    },
    { attemptId, tenantId: TENANT },
  );
  if (!prepared.ok) throw new Error(prepared.detail);
  const { parameters } = prepared;
  return attemptRow(payment, {
    id: attemptId,
    kind: "charge",
    run,
    parameters,
    key: request.key,
    operation: request.operation,
  });
}

function acceptsEffect(
  context: Context,
  world: World,
  at: number,
  request: Exclude<ClientRequest, { operation: "payments.create" }>,
  derived: Derived,
  to: To,
): void {
  const { refs, shipped } = context;
  const { tables } = world;
  const paymentId = tables.keys[request.of]?.value.payment_id;
  const paymentAt = tables.payments.findIndex(({ value }) => value.id === paymentId);
  const row = tables.payments[paymentAt];
  const charge = tables.attempts.find(({ value }) => value.id === row?.value.attempt_id);
  if (row === undefined || charge === undefined) return;
  const payment = readPayment(context, row, charge);
  const effect = effectOf(request);
  const admission = shipped.admit(payment, effect);
  if (admission.type === "refused") {
    if (admission.passing) return;
    const answered: KeyRow = { state: "completed", run: derived.run, status: 409, payment_id: payment.id };
    const keys = replaced(tables.keys, at, refs.keys.of(answered));
    to(
      { ...world, tables: { ...tables, keys } },
      () => `the client's ${effect.kind} is refused: ${admission.code}`,
    );
    return;
  }
  const chargeId = payment.providerPaymentId;
  if (chargeId === null) throw new Error(`${payment.id} is ${payment.status} and has no provider object`);
  const prepared = shipped.prepareEffectParameters(inputOf(effect, chargeId, admission.amount), {
    attemptId: derived.attemptId,
    tenantId: TENANT,
  });
  if (!prepared.ok) throw new Error(prepared.detail);
  const refund =
    effect.kind === "refund" ? refundRow(context, world, row.value, derived, admission.amount ?? 0) : null;
  const attempt: AttemptRow = {
    ...attemptRow(row.value, { ...derivedRow(derived, effect, request), parameters: prepared.parameters }),
    amount: admission.amount,
    refund_id: refund?.id ?? null,
    provider_account: charge.value.provider_account,
    provider_payment_id: chargeId,
    created_at: textAt(context.atMs(world.moment)),
  };
  const paid: PaymentRow = {
    ...row.value,
    version: row.value.version + 1,
    open_effect: effect.kind === "refund" ? row.value.open_effect : attempt.id,
    refund_reserved: row.value.refund_reserved + (refund?.amount ?? 0),
  };
  const key: KeyRow = { state: "in_progress", run: derived.run, status: null, payment_id: paid.id };
  const next: Tables = {
    ...tables,
    attempts: [...tables.attempts, refs.attempts.of(attempt)],
    payments: replaced(tables.payments, paymentAt, refs.payments.of(paid)),
    refunds: refund === null ? tables.refunds : [...tables.refunds, refs.refunds.of(refund)],
    keys: replaced(tables.keys, at, refs.keys.of(key)),
  };
  to({ ...world, tables: next }, () => `the client's ${effect.kind} ${request.key} is accepted`);
}

function derivedRow(
  { attemptId, run }: Derived,
  effect: EffectRequest,
  { key, operation }: ClientRequest,
): Omit<NewAttempt, "parameters"> {
  return { id: attemptId, kind: effect.kind, run, key, operation };
}

function refundRow(
  context: Context,
  world: World,
  payment: PaymentRow,
  { attemptId }: Derived,
  amount: number,
): RefundRow {
  return {
    tenant_id: TENANT,
    id: `re_${world.tables.refunds.length + 1}`,
    payment_id: payment.id,
    attempt_id: attemptId,
    status: "processing",
    version: 1,
    amount,
    currency: payment.currency,
    provider: payment.provider,
    provider_refund_id: null,
    failure: null,
    external: false,
    created_at: textAt(context.atMs(world.moment)),
  };
}

function effectOf({
  operation,
  amount,
}: Exclude<ClientRequest, { operation: "payments.create" }>): EffectRequest {
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

interface NewAttempt {
  readonly id: string;
  readonly kind: AttemptRow["kind"];
  readonly run: number;
  readonly parameters: string;
  readonly key: string;
  readonly operation: string;
}

/** With the defaults of src/store/schema.ts. */
function attemptRow(payment: PaymentRow, made: NewAttempt): AttemptRow {
  return {
    tenant_id: TENANT,
    id: made.id,
    payment_id: payment.id,
    kind: made.kind,
    operation: made.operation,
    idempotency_key: made.key,
    run: made.run,
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
    parameters: made.parameters,
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
    created_at: payment.created_at,
  };
}
