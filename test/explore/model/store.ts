import type { Attempt } from "../../../src/domain/attempt.js";
import type { Instruction } from "../../../src/domain/instruction.js";
import type { Payment } from "../../../src/domain/payment.js";
import type { Refund } from "../../../src/domain/refund.js";
import { pair, type Ref } from "../refs.js";
import { agedAttempt } from "./aging.js";
import { BUDGET_MS, sinceStart, textAt } from "./clock.js";
import type { Context } from "./context.js";
import {
  type AttemptRow,
  type KeyRow,
  type OpenReview,
  type PaymentRow,
  type RefundRow,
  replaced,
  type SideRow,
  type Tables,
  type Write,
} from "./rows.js";

/** The store's statements, one function each, with what each guards against. The rows are those of `rows.ts`. */

/** As `claimAttempts` of src/store/attempts.ts; null: it is not due, or somebody holds its lease. */
export function claim(
  context: Context,
  tables: Tables,
  at: number,
  account: string | null,
  moment: number,
): { readonly tables: Tables; readonly markedNow: boolean } | null {
  const ref = tables.attempts[at]!;
  if (!ref.value.due || ref.value.lease === "live") return null;
  const claimed = context.memos.claimed.get(`${ref.id} ${account ?? ""} ${moment}`, () =>
    claimedAttempt(context, ref.value, account, moment),
  );
  const attempts = replaced(tables.attempts, at, claimed.attempt);
  return { tables: { ...tables, attempts }, markedNow: claimed.markedNow };
}

function claimedAttempt(context: Context, row: AttemptRow, account: string | null, moment: number) {
  const { rules, refs } = context;
  const nowMs = context.atMs(moment);
  const markedNow =
    row.state === "started" &&
    (!rules.freshIsFirstRun || row.run === 1) &&
    account !== null &&
    (!rules.freshIsYoung || nowMs - sinceStart(row.created_at) < BUDGET_MS) &&
    (!rules.freshIsOurAccount || (row.provider_account ?? account) === account);
  const isCharge = row.kind === "charge";
  const sent = markedNow ? textAt(nowMs) : null;
  const claimed: AttemptRow = {
    ...row,
    lease: "live",
    due: true,
    nudged: false,
    provider_account: row.provider_account ?? account,
    state: !markedNow ? row.state : isCharge ? "creating" : "sending",
    create_first_sent_at: row.create_first_sent_at ?? (isCharge ? sent : null),
    effect_first_sent_at: row.effect_first_sent_at ?? (isCharge ? null : sent),
  };
  return { attempt: refs.attempts.of(agedAttempt(context, claimed, moment)), markedNow };
}

/** As `nudgeAttempt` of src/store/provider-events.ts: news of the attempt, whatever it is. */
export function nudge({ memos, refs }: Context, tables: Tables, at: number): Tables {
  const ref = tables.attempts[at]!;
  const nudged = memos.nudged.get(ref.id, () => {
    const isLeased = ref.value.lease === "live";
    return refs.attempts.of({ ...ref.value, nudged: isLeased, due: true });
  });
  return { ...tables, attempts: replaced(tables.attempts, at, nudged) };
}

/** As `resolveReview` of src/store/reviews.ts, for a review and a fence that are as they were read. */
export function instruct(
  { refs }: Context,
  tables: Tables,
  { at, paymentAt, instruction }: { at: number; paymentAt: number; instruction: Instruction },
): Tables {
  const row = tables.attempts[at]!.value;
  const side = tables.sides[paymentAt]!.value;
  const instructed: AttemptRow = {
    ...row,
    instruction: JSON.stringify(instruction),
    nudged: row.lease === "live",
    due: true,
  };
  const resolved: SideRow = {
    ...side,
    reviews: side.reviews.map((review) =>
      review.attemptId === row.id ? { ...review, resolution: instruction.resolution } : review,
    ),
  };
  return {
    ...tables,
    attempts: replaced(tables.attempts, at, refs.attempts.of(instructed)),
    sides: replaced(tables.sides, paymentAt, refs.sides.of(resolved)),
  };
}

/** Nobody renews the lease any more, and it ends. */
export function endLease({ memos, refs }: Context, tables: Tables, at: number): Tables {
  const ref = tables.attempts[at]!;
  const over = memos.over.get(ref.id, () => refs.attempts.of({ ...ref.value, lease: "over" }));
  return { ...tables, attempts: replaced(tables.attempts, at, over) };
}

/** As `advanceAttempts` of src/store/advance.ts: all of it or, where a row is not what the writer read, nothing. */
export function advance(context: Context, tables: Tables, ref: Ref<Write>, moment: number): Tables | null {
  const { value: input } = ref;
  const attemptAt = tables.attempts.findIndex(({ value }) => value.id === input.attempt_id);
  const paymentAt = tables.payments.findIndex(({ value }) => value.id === input.payment_id);
  const refundAt = tables.refunds.findIndex(({ value }) => value.id === input.refund?.id);
  const attempt = tables.attempts[attemptAt];
  const payment = tables.payments[paymentAt];
  if (attempt === undefined || payment === undefined) return null;
  const owned =
    (!context.rules.advanceNamesFence || attempt.value.fence === input.fence) &&
    attempt.value.state === input.from_state &&
    (input.from_version === null || payment.value.version === input.from_version) &&
    (input.refund === null || tables.refunds[refundAt]?.value.version === input.refund.from_version);
  if (!owned) return null;
  const moved = context.memos.moved.get(pair(attempt.id, ref.id), () =>
    context.refs.attempts.of(agedAttempt(context, movedAttempt(context, attempt.value, input), moment)),
  );
  const paid = context.memos.paid.get(pair(payment.id, ref.id), () =>
    context.refs.payments.of(paidPayment(payment.value, input)),
  );
  const side = tables.sides[paymentAt]!;
  const told = context.memos.told.get(pair(side.id, ref.id), () =>
    context.refs.sides.of(toldSide(context, side.value, input)),
  );
  return {
    attempts: replaced(tables.attempts, attemptAt, moved),
    payments: replaced(tables.payments, paymentAt, paid),
    sides: replaced(tables.sides, paymentAt, told),
    refunds: refundAt < 0 ? tables.refunds : refunded(context, tables, refundAt, input),
    keys: input.key === null ? tables.keys : finished(context, tables, input),
    orders: input.payment?.holds_order_id === false ? released(context, tables, input) : tables.orders,
  };
}

/** Whether there was a wait is all that decides; how many there were counts for the back-off alone. */
const MOST_WAITS = 1;

/** The reasons that the machine's own decisions read. What a person may decide depends on others, too. */
const READ_REASONS: ReadonlySet<string | null> = new Set([
  "key_mismatch",
  "provider_key_mismatch",
  "state_conflict",
]);

function movedAttempt({ scenario }: Context, row: AttemptRow, input: Write): AttemptRow {
  const { sending, at: now } = input;
  // While it recovers, a reason tells whether there was an answer.
  const keepsReasons = scenario.person !== null || scenario.recovers;
  const isEffect = sending === "capture" || sending === "cancel" || sending === "refund";
  return {
    ...row,
    state: input.to_state,
    provider_payment_id: row.provider_payment_id ?? input.provider_payment_id,
    unresolved: input.unresolved,
    key_spent: input.key_spent,
    fence_round: input.fence_round,
    waits: Math.min(input.waits, MOST_WAITS),
    wait_reason: keepsReasons || READ_REASONS.has(input.wait_reason) ? input.wait_reason : null,
    unknown_since: input.unknown_since,
    instruction: input.close_review || input.instruction !== null ? null : row.instruction,
    create_first_sent_at: row.create_first_sent_at ?? (sending === "create" ? now : null),
    confirm_first_sent_at: row.confirm_first_sent_at ?? (sending === "confirm" ? now : null),
    fence_first_sent_at: row.fence_first_sent_at ?? (sending === "fence" ? now : null),
    effect_first_sent_at: row.effect_first_sent_at ?? (isEffect ? now : null),
    lease: input.lease_ms === null ? "none" : "live",
    // Without a lease the mark has done what it does; the next claim takes it away.
    nudged: input.lease_ms === null ? false : row.nudged,
    due: input.lease_ms !== null || row.nudged || input.due_in_ms !== null,
  };
}

function paidPayment(row: PaymentRow, { payment }: Write): PaymentRow {
  if (payment === null || row.status !== payment.from_status) return row;
  const { from_status: _from, to_status: status, updated_at: _at, ...columns } = payment;
  return { ...row, status, version: row.version + 1, ...columns };
}

/** The first leg claims its fact: posted once, whatever is written again. */
function toldSide(context: Context, side: SideRow, input: Write): SideRow {
  const known = new Set(side.ledger.map((entry) => entry.fact));
  const fresh = input.ledger.filter((entry) => !known.has(entry.fact));
  const entries = fresh.map(({ currency: _currency, ...entry }) => entry);
  return { ...side, ledger: [...side.ledger, ...entries], reviews: reviewsAfter(context, side, input) };
}

/** Each attempt's own, whatever is open of others. */
function reviewsAfter({ scenario }: Context, side: SideRow, input: Write): readonly OpenReview[] {
  const others = side.reviews.filter((review) => review.attemptId !== input.attempt_id);
  const open = side.reviews.find((review) => review.attemptId === input.attempt_id) ?? null;
  const own = reviewAfter(open, input);
  const seen = own === null || scenario.person !== null ? own : { ...own, reason: "" };
  return [...others, ...(seen === null ? [] : [seen])].toSorted((one, other) =>
    one.attemptId < other.attemptId ? -1 : 1,
  );
}

function reviewAfter(open: OpenReview | null, input: Write): OpenReview | null {
  const { review, close_review: closes, instruction, attempt_id: attemptId } = input;
  if (open === null) return review === null ? null : { attemptId, reason: review.reason, resolution: null };
  if (closes) return null;
  const tellsMore = review !== null && review.yields_to?.split(",").includes(open.reason) === false;
  return {
    ...open,
    reason: tellsMore ? review.reason : open.reason,
    resolution: instruction === "returned" ? null : open.resolution,
  };
}

function refunded(context: Context, tables: Tables, at: number, { refund }: Write): Tables["refunds"] {
  const { value: row } = tables.refunds[at]!;
  if (refund === null) return tables.refunds;
  const written: RefundRow = {
    ...row,
    status: refund.to_status,
    version: row.version + 1,
    provider_refund_id: refund.provider_refund_id,
    failure: refund.failure,
  };
  return replaced(tables.refunds, at, context.refs.refunds.of(written));
}

function finished(context: Context, tables: Tables, { key, run, ...input }: Write): Tables["keys"] {
  const at = context.scenario.requests.findIndex(
    (request) => request.key === input.idempotency_key && request.operation === input.operation,
  );
  const row = tables.keys[at];
  if (key === null || row === undefined || row === null || row.value.run !== run) return tables.keys;
  const { state } = row.value;
  const isLate =
    context.rules.moneyAnswersTheKey && state === "failed_retryable" && key.state === "completed";
  if (state !== "in_progress" && !isLate) return tables.keys;
  const done: KeyRow = { ...row.value, state: key.state, status: key.status };
  return replaced(tables.keys, at, context.refs.keys.of(done));
}

function released(context: Context, tables: Tables, input: Write): Tables["orders"] {
  const { merchant_order_id: orderId, payment_id: paymentId } = input;
  if (orderId === null || tables.orders.value[orderId] !== paymentId) return tables.orders;
  const { [orderId]: _freed, ...others } = tables.orders.value;
  return context.refs.orders.of(others);
}

/** The rows as the shipped code reads them. */

export function readAttempt(context: Context, ref: Ref<AttemptRow>): Attempt {
  return context.memos.attempt.get(ref.id, () => context.shipped.attemptOf({ ...ref.value }));
}

export function readPayment(context: Context, ref: Ref<PaymentRow>, charge: Ref<AttemptRow>): Payment {
  const { provider_payment_id: objectId } = charge.value;
  return context.memos.payment.get(`${ref.id} ${objectId ?? ""}`, () => {
    const columns = Object.entries(ref.value).map(([name, value]) => [`p_${name}`, value] as const);
    const row = { ...Object.fromEntries(columns), p_updated_at: ref.value.created_at };
    return context.shipped.paymentOf({ ...row, provider_payment_id: objectId });
  });
}

export function readRefund(context: Context, ref: Ref<RefundRow> | null): Refund | null {
  if (ref === null) return null;
  return context.memos.refund.get(ref.id, () => {
    const columns = Object.entries(ref.value).map(([name, value]) => [`r_${name}`, value] as const);
    return context.shipped.refundOf({ ...Object.fromEntries(columns), r_updated_at: ref.value.created_at });
  });
}
