import type { AttemptKind } from "../domain/attempt.js";
import type { AttemptReference } from "../domain/provider-event.js";
import type { Queryable } from "./db.js";
import { rowOf } from "./look-ups.js";
import { type Row, textOrNull } from "./rows.js";

/** Whose charge object this is, across tenants; null: none of ours. */
export async function findChargeOfObject(
  db: Queryable,
  provider: string,
  objectId: string,
): Promise<AttemptReference | null> {
  const [row] = await db<Row[]>`
    select tenant_id, id, payment_id, kind, livemode, provider_payment_id from attempts
     where kind = 'charge' and provider_payment_id = ${objectId} and provider = ${provider}
     order by tenant_id, id limit 1`;
  return row === undefined ? null : referenceOf(row);
}

/** Those of these objects that are charge objects of ours. */
export async function findChargesOfObjects(
  db: Queryable,
  provider: string,
  objectIds: readonly string[],
): Promise<AttemptReference[]> {
  const rows = await db<Row[]>`
    select a.tenant_id, a.id, a.payment_id, a.kind, a.livemode, a.provider_payment_id
      from json_array_elements_text(${JSON.stringify(objectIds)}::text::json) as o(id)
      cross join lateral (select * from attempts a where a.kind = 'charge' and a.provider_payment_id = o.id
                             and a.provider = ${provider} offset 0) a`;
  return rows.map(referenceOf);
}

export async function findAttempt(
  db: Queryable,
  tenantId: string,
  attemptId: string,
): Promise<AttemptReference | null> {
  const [row] = await db<Row[]>`
    select tenant_id, id, payment_id, kind, livemode, provider_payment_id from attempts
     where tenant_id = ${tenantId} and id = ${attemptId}`;
  return row === undefined ? null : referenceOf(row);
}

export async function tenantExists(db: Queryable, tenantId: string): Promise<boolean> {
  const rows = await db<Row[]>`select id from tenants where id = ${tenantId}`;
  return rows.length === 1;
}

/** The attempt of the payment's refund with this id at the provider, ours or external; null: there is none. */
export async function findAttemptOfRefund(
  db: Queryable,
  payment: { readonly tenantId: string; readonly paymentId: string },
  providerRefundId: string,
): Promise<AttemptReference | null> {
  const [row] = await db<Row[]>`
    select a.tenant_id, a.id, a.payment_id, a.kind, a.livemode, a.provider_payment_id
      from refunds r ${rowOf(db, "attempts", "a", db`r.tenant_id`, db`r.attempt_id`)}
     where r.payment_id = ${payment.paymentId} and r.tenant_id = ${payment.tenantId}
       and r.provider_refund_id = ${providerRefundId}`;
  return row === undefined ? null : referenceOf(row);
}

function referenceOf(row: Row): AttemptReference {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    paymentId: row["payment_id"] as string,
    kind: row["kind"] as AttemptKind,
    livemode: row["livemode"] as boolean,
    objectId: textOrNull(row["provider_payment_id"]),
  };
}
