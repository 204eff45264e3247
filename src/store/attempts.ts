import type { Attempt, AttemptKind, AttemptState } from "../domain/attempt.js";
import type { EarlierRun } from "../domain/earlier-runs.js";
import type { Payment, PaymentStatus } from "../domain/payment.js";
import type { Refund, RefundStatus } from "../domain/refund.js";
import type { Queryable } from "./db.js";
import { isInPlace, TELLS_NO_MORE, type Tells } from "./in-place.js";
import { rowIfAny, rowOf } from "./look-ups.js";
import {
  attemptOf,
  dateOrNull,
  PAYMENT_COLUMNS,
  paymentOf,
  REFUND_COLUMNS,
  type Row,
  refundOf,
  requiredDate,
  textOrNull,
} from "./rows.js";

const OF_PAYMENT = PAYMENT_COLUMNS.map((column) => `p.${column} as p_${column}`).join(", ");
const OF_REFUND = REFUND_COLUMNS.map((column) => `r.${column} as r_${column}`).join(", ");

export interface ClaimRequest {
  readonly owner: string;
  readonly limit: number;
  readonly leaseMs: number;
  readonly retryBudgetMs: number;
  /** The account that this worker speaks for; null while it is not known, and then no create is marked. */
  readonly account: string | null;
  readonly livemode: boolean;
  readonly tells: Tells;
  /** `left`: only what a worker left with a lease that has ended. */
  readonly which: "due" | "left";
}

export interface ClaimedAttempt {
  readonly attempt: Attempt;
  readonly payment: Payment;
  /** Of a refund's attempt. */
  readonly refund: Refund | null;
  /** The claim has recorded that the attempt's first call is about to be sent. */
  readonly markedNow: boolean;
  /** The database's time of the claim. */
  readonly claimedAt: Date;
}

/**
 * Claims due attempts: raises their fence and leases them, so that the writes of any earlier owner are refused from
 * here on. For a fresh attempt the claim is also the record that its first call is about to be sent; a later run of a key
 * asks first, since an earlier one may have been sent after all, and so does one in a database that is not in place. An attempt under a live lease is never taken, however due
 * it is. The form for a database that cannot lock across tenants would first select and then update with the same
 * conditions; it belongs here, behind this one function.
 */
export async function claimAttempts(db: Queryable, request: ClaimRequest): Promise<ClaimedAttempt[]> {
  const rows = await db<Row[]>`
    with due as (
      select a.tenant_id, a.id, a.payment_id, a.refund_id,
             a.state = 'started' and a.run = 1 and a.livemode = ${request.livemode}
               and a.created_at > now() - ${request.retryBudgetMs}::float8 * interval '1 millisecond'
               and ${request.account}::text is not null
               and coalesce(a.provider_account, ${request.account}::text) = ${request.account}::text
               and ${isInPlace(db, request.tells)} as fresh
        from attempts a
       where a.due_at <= now()
         and ${
           request.which === "due"
             ? db`(a.lease_expires_at is null or a.lease_expires_at <= now())`
             : db`a.lease_expires_at <= now()`
         }
       order by a.due_at
       limit ${request.limit}
       for update skip locked
    )
    update attempts a
       set fence = a.fence + 1,
           lease_owner = ${request.owner},
           lease_expires_at = now() + ${request.leaseMs}::float8 * interval '1 millisecond',
           due_at = now() + ${request.leaseMs}::float8 * interval '1 millisecond',
           nudged = false,
           provider_account = coalesce(a.provider_account, ${request.account}::text),
           state = case when not due.fresh then a.state
                        when a.kind = 'charge' then 'creating' else 'sending' end,
           create_first_sent_at = case when due.fresh and a.kind = 'charge'
                                       then coalesce(a.create_first_sent_at, now())
                                       else a.create_first_sent_at end,
           effect_first_sent_at = case when due.fresh and a.kind <> 'charge'
                                       then coalesce(a.effect_first_sent_at, now())
                                       else a.effect_first_sent_at end
      from due
      ${rowOf(db, "payments", "p", db`due.tenant_id`, db`due.payment_id`)}
      ${rowIfAny(db, "refunds", "r", db`due.tenant_id`, db`due.refund_id`)}
     where a.tenant_id = due.tenant_id and a.id = due.id
    returning a.*, due.fresh, now() as claimed_at, ${db.unsafe(OF_PAYMENT)}, ${db.unsafe(OF_REFUND)}`;
  return rows.map((row) => ({
    attempt: attemptOf(row),
    payment: paymentOf(row),
    refund: refundOf(row),
    markedNow: row["fresh"] as boolean,
    claimedAt: requiredDate(row["claimed_at"]),
  }));
}

/** An attempt with what it works on, read by somebody who does not hold it. */
export interface ReadAttempt {
  readonly attempt: Attempt;
  readonly payment: Payment;
  readonly refund: Refund | null;
  /** When a worker looks at it next; null: nothing is left to do. */
  readonly dueAt: Date | null;
  /** The database's time of the reading. */
  readonly now: Date;
}

export async function readAttempt(
  db: Queryable,
  tenantId: string,
  attemptId: string,
): Promise<ReadAttempt | null> {
  const [row] = await db<Row[]>`
    select a.*, now() as read_at, ${db.unsafe(OF_PAYMENT)}, ${db.unsafe(OF_REFUND)}
      from attempts a
      ${rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`)}
      ${rowIfAny(db, "refunds", "r", db`a.tenant_id`, db`a.refund_id`)}
     where a.tenant_id = ${tenantId} and a.id = ${attemptId}`;
  if (row === undefined) return null;
  return {
    attempt: attemptOf(row),
    payment: paymentOf(row),
    refund: refundOf(row),
    dueAt: dateOrNull(row["due_at"]),
    now: requiredDate(row["read_at"]),
  };
}

/**
 * The attempts with these ids, as the runs of a key before its present one. Those that the provider's word is still
 * awaited for are due at once, where nobody holds them.
 */
export async function hurryEarlierRuns(
  db: Queryable,
  tenantId: string,
  attemptIds: readonly string[],
): Promise<EarlierRun[]> {
  const rows = await db<Row[]>`
    with earlier as materialized (
      select a.tenant_id, a.id, a.kind, a.state, a.unresolved, p.status as payment_status, r.status as refund_status
        from attempts a
        ${rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`)}
        ${rowIfAny(db, "refunds", "r", db`a.tenant_id`, db`a.refund_id`)}
       where a.tenant_id = ${tenantId} and a.id = any(string_to_array(${attemptIds.join(",")}, ','))
    ), free as (
      select a.* from earlier e cross join lateral (
          select a.tenant_id, a.id from attempts a
           where a.tenant_id = e.tenant_id and a.id = e.id and coalesce(a.due_at > now(), true)
             and (a.lease_expires_at is null or a.lease_expires_at <= now())
             for update skip locked) a
       where e.unresolved or e.state <> 'completed'
    ), hurried as (
      update attempts a set due_at = now() from free f where a.tenant_id = f.tenant_id and a.id = f.id
    )
    select * from earlier`;
  return rows.map((row) => ({
    kind: row["kind"] as AttemptKind,
    state: row["state"] as AttemptState,
    unresolved: row["unresolved"] as boolean,
    paymentStatus: row["payment_status"] as PaymentStatus,
    refundStatus: textOrNull(row["refund_status"]) as RefundStatus | null,
  }));
}

/** Payment and refund as they are now, for a worker that still holds the attempt in this state. */
export interface Held {
  readonly payment: Payment;
  readonly refund: Refund | null;
  /** The data stands where it was recorded to stand, and no recovery is under way. */
  readonly inPlace: boolean;
}

/** Null: the attempt is no longer held under this fence, or has moved on. */
export async function readHeld(
  db: Queryable,
  held: {
    readonly tenantId: string;
    readonly attemptId: string;
    readonly fence: number;
    readonly state: string;
  },
  tells: Tells = TELLS_NO_MORE,
): Promise<Held | null> {
  const [row] = await db<Row[]>`
    select a.provider_payment_id, ${isInPlace(db, tells)} as in_place, ${db.unsafe(OF_PAYMENT)}, ${db.unsafe(OF_REFUND)}
      from attempts a
      ${rowOf(db, "payments", "p", db`a.tenant_id`, db`a.payment_id`)}
      ${rowIfAny(db, "refunds", "r", db`a.tenant_id`, db`a.refund_id`)}
     where a.tenant_id = ${held.tenantId} and a.id = ${held.attemptId} and a.fence = ${held.fence}
       and a.state = ${held.state}::attempt_state`;
  if (row === undefined) return null;
  return { payment: paymentOf(row), refund: refundOf(row), inPlace: row["in_place"] as boolean };
}
