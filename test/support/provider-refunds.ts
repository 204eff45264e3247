import type { ProviderRefund, RefundLookupOutcome } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import type { Harness } from "./harness.js";
import { eventOf, NO_EVIDENCE, randomId, type Seeded, storeEvent, withProvider } from "./provider-events.js";

/** A refund at the provider, made outside unless told otherwise. */
export function refundOf(ours: Seeded, changes: Partial<ProviderRefund> = {}): ProviderRefund {
  return {
    id: randomId("re"),
    chargeId: ours.objectId,
    status: "succeeded",
    amount: 1_000,
    currency: "usd",
    attemptId: null,
    tenantId: null,
    failure: null,
    ...changes,
  };
}

/** An event that tells of it is in the inbox. */
export function tellOfRefund(
  harness: Harness,
  refund: ProviderRefund,
  type = "refund.created",
): Promise<string> {
  return storeEvent(harness, eventOf(type, { id: refund.id, payment_intent: refund.chargeId }));
}

/** A provider that has these refunds, and counts how often it is asked. */
export function havingRefunds(
  harness: Harness,
  ...refunds: readonly ProviderRefund[]
): { deps: Deps; asked: string[] } {
  const asked: string[] = [];
  const getRefund = async (id: string): Promise<RefundLookupOutcome> => {
    asked.push(id);
    const refund = refunds.find((one) => one.id === id);
    if (refund === undefined) return { type: "missing", evidence: NO_EVIDENCE };
    return { type: "found", refund, evidence: NO_EVIDENCE };
  };
  return { deps: withProvider(harness.deps, { getRefund }), asked };
}

/** Everything that refunds have left on a payment. */
export async function refundRowsOf(harness: Harness, { paymentId }: Seeded) {
  const { sql } = harness.deps.db;
  const texts = await sql<{ reason: string }[]>`select reason from reviews where payment_id = ${paymentId}`;
  return {
    payment: (
      await sql`select version, refund_reserved, amount_refunded, status from payments where id = ${paymentId}`
    )[0],
    refunds: await sql`
      select id, attempt_id, status, amount, currency, provider_refund_id, external from refunds
       where payment_id = ${paymentId} order by id`,
    attempts: await sql`
      select id, state, operation, idempotency_key, amount, refund_id, livemode, provider_account,
             provider_payment_id, due_at <= now() as due from attempts
       where payment_id = ${paymentId} and kind = 'refund' order by id`,
    timeline:
      await sql`select kind, refund_id, to_status, reason, attempt_id from timeline where payment_id = ${paymentId}`,
    outbox:
      await sql`select type, sequence, ordinal, data::text from outbox where payment_id = ${paymentId} order by id`,
    reviews: texts.map((row) => row.reason),
  };
}

/** A refund of ours, whose call is out. */
export async function seedRefund(
  harness: Harness,
  seeded: Seeded,
): Promise<{ tenantId: string; attemptId: string }> {
  const attemptId = randomId("att");
  const refundId = randomId("re");
  await harness.deps.db.sql.begin(async (tx) => {
    await tx`
      insert into attempts (tenant_id, id, payment_id, kind, operation, idempotency_key, run, request_id, amount,
        refund_id, state, provider, livemode, parameters, provider_payment_id, lease_owner, lease_expires_at, due_at)
      values (${seeded.tenantId}, ${attemptId}, ${seeded.paymentId}, 'refund', 'refunds.create', ${randomId("key")}, 1,
        'req_1', 1000, ${refundId}, 'sending', 'stripe', false, '', ${seeded.objectId}, 'somebody',
        now() + interval '1 minute', now() + interval '1 minute')`;
    await tx`
      insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider)
      values (${seeded.tenantId}, ${refundId}, ${seeded.paymentId}, ${attemptId}, 1000, 'usd', '{}', 'stripe')`;
    await tx`update payments set refund_reserved = 1000 where id = ${seeded.paymentId}`;
  });
  return { tenantId: seeded.tenantId, attemptId };
}
