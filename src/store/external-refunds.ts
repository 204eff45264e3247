import type { AttemptReference } from "../domain/provider-event.js";
import type { Refund } from "../domain/refund.js";
import { findAttempt } from "./attempt-references.js";
import type { Queryable } from "./db.js";
import type { Row } from "./rows.js";

/** The attempt of the payment's refund with this id at the provider, ours or external; null: there is none. */
export async function findAttemptOfRefund(
  db: Queryable,
  payment: { readonly tenantId: string; readonly paymentId: string },
  providerRefundId: string,
): Promise<AttemptReference | null> {
  const [row] = await db<Row[]>`
    select attempt_id from refunds
     where payment_id = ${payment.paymentId} and tenant_id = ${payment.tenantId}
       and provider_refund_id = ${providerRefundId}`;
  return row === undefined ? null : findAttempt(db, payment.tenantId, row["attempt_id"] as string);
}

/**
 * Records a refund that was made outside, and its attempt, which follows it from now on. `chargeAttemptId`: of the
 * payment, whose account and object they are. False: it stands already, and nothing is written.
 */
export async function insertExternalRefund(
  db: Queryable,
  refund: Refund,
  chargeAttemptId: string,
  eventId: string,
): Promise<boolean> {
  const inserted = await db<Row[]>`
    with attempted as (
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, state, provider, provider_account, livemode, parameters, provider_payment_id)
      select c.tenant_id, ${refund.attemptId}, c.payment_id, 'refund', 'refunds.external', ${refund.providerRefundId},
             1, ${eventId}, ${refund.amount}::bigint, ${refund.id}, 'following', c.provider, c.provider_account,
             c.livemode, '', c.provider_payment_id
        from attempts c where c.tenant_id = ${refund.tenantId} and c.id = ${chargeAttemptId}
      on conflict do nothing
      returning tenant_id, payment_id, id
    )
    insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider,
      provider_refund_id, external, created_at, updated_at)
    select tenant_id, ${refund.id}, payment_id, id, ${refund.amount}::bigint, ${refund.currency}, '{}'::json,
           ${refund.provider}, ${refund.providerRefundId}, true, ${refund.createdAt.toISOString()},
           ${refund.updatedAt.toISOString()}
      from attempted
    returning id`;
  return inserted.length === 1;
}

/** Money that is on its way back already, whatever else was asked for. The payment's row is locked. */
export async function reserveExternalRefund(
  db: Queryable,
  refund: Refund,
  fromVersion: number,
): Promise<void> {
  const reserved = await db<Row[]>`
    update payments
       set refund_reserved = refund_reserved + ${refund.amount}::bigint, version = version + 1,
           updated_at = ${refund.updatedAt.toISOString()}
     where tenant_id = ${refund.tenantId} and id = ${refund.paymentId} and version = ${fromVersion}
    returning id`;
  if (reserved.length !== 1) throw new Error(`payment ${refund.paymentId} was written without its lock`);
}
