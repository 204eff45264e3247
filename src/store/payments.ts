import type { AttemptKind, AttemptState } from "../domain/attempt.js";
import type { Payment, PaymentStatus } from "../domain/payment.js";
import type { TimelineEntry } from "../domain/timeline-entry.js";
import type { Queryable } from "./db.js";
import { rowIfAny, rowOf } from "./look-ups.js";
import { REBUILT_KEY } from "./rebuilt-payments.js";
import { PAYMENT_COLUMNS, paymentOf, type Row, requiredDate, textOrNull } from "./rows.js";

export interface PaymentFilter {
  readonly status?: PaymentStatus | undefined;
  readonly merchantOrderId?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** The charge attempt of a payment tells its provider object and, while it is open, its resolution. */
function selectPayment(db: Queryable) {
  return db`${selectColumns(db)}
    from payments p ${rowIfAny(db, "attempts", "a", db`p.tenant_id`, db`p.attempt_id`)}
    ${openEffect(db)}`;
}

/** The capture or cancel in flight. */
function openEffect(db: Queryable) {
  return rowIfAny(db, "attempts", "e", db`p.tenant_id`, db`p.open_effect`);
}

function selectColumns(db: Queryable) {
  return db`select ${db.unsafe(PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", "))},
      a.provider_payment_id, a.wait_reason, a.unknown_since, a.due_at, e.wait_reason as e_wait_reason,
      e.unknown_since as e_unknown_since, e.due_at as e_due_at`;
}

export async function readPayment(
  db: Queryable,
  tenantId: string,
  paymentId: string,
): Promise<Payment | null> {
  const [row] = await db<Row[]>`${selectPayment(db)} where p.tenant_id = ${tenantId} and p.id = ${paymentId}`;
  return row === undefined ? null : paymentOf(row);
}

export async function readOrderHolder(
  db: Queryable,
  tenantId: string,
  merchantOrderId: string,
): Promise<Payment | null> {
  // A look-up of its own: a join may begin with all payments, where the tables were empty when they were last analyzed.
  const [row] = await db<Row[]>`${selectPayment(db)}
    where p.tenant_id = ${tenantId} and p.id = (
      select o.payment_id from order_ids o where o.tenant_id = ${tenantId} and o.merchant_order_id = ${merchantOrderId})`;
  return row === undefined ? null : paymentOf(row);
}

/** An attempt that stands, and its payment. */
export interface StandingAttempt {
  readonly id: string;
  readonly kind: AttemptKind;
  readonly state: AttemptState;
  readonly unresolved: boolean;
  /** Made again from its object by a recovery. */
  readonly isRebuilt: boolean;
  readonly payment: Payment;
}

/** Those of these attempts that exist. */
export async function readStandingAttempts(
  db: Queryable,
  tenantId: string,
  attemptIds: readonly string[],
): Promise<StandingAttempt[]> {
  // From the attempts: a payment is found by its key, never by its attempt.
  const rows = await db<Row[]>`${selectColumns(db)}, a.id, a.kind, a.state, a.unresolved,
      coalesce(a.idempotency_key = ${REBUILT_KEY} || a.provider_payment_id, false) as rebuilt
    from attempts a ${rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`)} ${openEffect(db)}
    where a.tenant_id = ${tenantId} and a.id = any(string_to_array(${attemptIds.join(",")}, ','))`;
  return rows.map((row) => ({
    id: row["id"] as string,
    kind: row["kind"] as AttemptKind,
    state: row["state"] as AttemptState,
    unresolved: row["unresolved"] as boolean,
    isRebuilt: row["rebuilt"] as boolean,
    payment: paymentOf(row),
  }));
}

/** In the words of the index of payments that are neither on their way nor paid: the other two statuses have none. */
function hasStatus(db: Queryable, status: PaymentStatus) {
  const isCommon = status === "processing" || status === "succeeded";
  return isCommon ? db`p.status = ${status}` : db`p.rare_status = ${status}`;
}

/** Newest first; `before` is the id that the last page ended with. */
export async function listPayments(
  db: Queryable,
  tenantId: string,
  filter: PaymentFilter,
  page: { readonly limit: number; readonly before: string | null },
): Promise<Payment[]> {
  const rows = await db<Row[]>`${selectPayment(db)}
    where p.tenant_id = ${tenantId}
      ${page.before === null ? db`` : db`and p.id < ${page.before}`}
      ${filter.status === undefined ? db`` : db`and ${hasStatus(db, filter.status)}`}
      ${filter.merchantOrderId === undefined ? db`` : db`and p.merchant_order_id = ${filter.merchantOrderId}`}
      ${filter.createdAfter === undefined ? db`` : db`and p.created_at > ${filter.createdAfter.toISOString()}`}
      ${filter.createdBefore === undefined ? db`` : db`and p.created_at < ${filter.createdBefore.toISOString()}`}
    order by p.id desc limit ${page.limit}`;
  return rows.map(paymentOf);
}

/**
 * Which of these attempts need not be waited for any more: they have ended, or a person must decide. For callers that
 * wait in another process than the worker.
 */
export async function readSettled(
  db: Queryable,
  attempts: readonly { readonly tenantId: string; readonly attemptId: string }[],
): Promise<string[]> {
  const rows = await db<Row[]>`
    select a.id
      from (select unnest(string_to_array(${attempts.map((a) => a.tenantId).join(",")}, ',')) as tenant_id,
                   unnest(string_to_array(${attempts.map((a) => a.attemptId).join(",")}, ',')) as id) w
      ${rowOf(db, "attempts", "a", db`w.tenant_id`, db`w.id`)}
      ${rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`)}
      ${rowIfAny(db, "refunds", "r", db`a.tenant_id`, db`a.refund_id`)}
     where case a.kind when 'charge' then p.status <> 'processing'
                       when 'refund' then r.status <> 'processing'
                       else a.state = 'completed' end`;
  return rows.map((row) => row["id"] as string);
}

/** Oldest first, by the database's clock (ids are made by the clocks of many processes); `after` is the id that the last page ended with. */
export async function readTimeline(
  db: Queryable,
  tenantId: string,
  paymentId: string,
  page: { readonly limit: number; readonly after: string | null },
): Promise<TimelineEntry[]> {
  const rows = await db<Row[]>`
    select * from timeline
     where tenant_id = ${tenantId} and payment_id = ${paymentId}
       ${
         page.after === null
           ? db``
           : db`and (at, id) > (select at, id from timeline
                 where tenant_id = ${tenantId} and payment_id = ${paymentId} and id = ${page.after})`
       }
     order by at, id limit ${page.limit}`;
  return rows.map(timelineEntryOf);
}

export function timelineEntryOf(row: Row): TimelineEntry {
  return {
    id: row["id"] as string,
    refundId: textOrNull(row["refund_id"]),
    at: requiredDate(row["at"]),
    kind: row["kind"] as TimelineEntry["kind"],
    from: textOrNull(row["from_status"]),
    to: textOrNull(row["to_status"]),
    reason: row["reason"] as string,
    attemptId: textOrNull(row["attempt_id"]),
    call: textOrNull(row["call"]),
    providerKey: textOrNull(row["provider_key"]),
    fence: row["fence"] === null ? null : Number(row["fence"]),
    outcome: textOrNull(row["outcome"]),
    providerRequestId: textOrNull(row["provider_request_id"]),
    sentAt: row["sent_at"] === null ? null : requiredDate(row["sent_at"]),
  };
}

/** For the operator's command line: whose payment this is. A look-up in each tenant's part of the primary key. */
export async function findTenantOfPayment(db: Queryable, paymentId: string): Promise<string | null> {
  const [row] = await db<Row[]>`
    select p.tenant_id from tenants t ${rowOf(db, "payments", "p", db`t.id`, db`${paymentId}`)}`;
  return row === undefined ? null : (row["tenant_id"] as string);
}
