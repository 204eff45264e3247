import { BROKER_ID } from "../domain/webhook.js";
import type { Queryable } from "./db.js";
import type { Row } from "./rows.js";

/** The workers whose work one statement can find for all of them. */
export const WORK = ["attempts", "provider-events", "relay", "webhooks", "ledger"] as const;
export type Work = (typeof WORK)[number];

export interface WorkQuestion {
  /** Whose work is looked for; the others' tables are not touched. */
  readonly asked: readonly Work[];
  readonly provider: string;
  /** Whether this process has a broker; without one its deliveries are left alone. */
  readonly toBroker: boolean;
}

/**
 * For which of them there is something to take up now: what their claims would find, by the same indexes. Somebody else
 * may be taking it up already; the claim finds out. Each sub-select stands alone and runs only where it is asked for.
 */
export async function findWork(db: Queryable, question: WorkQuestion): Promise<readonly Work[]> {
  const asks = (work: Work) => db`${question.asked.includes(work)}::boolean`;
  const [found] = await db<Row[]>`
    select case when ${asks("attempts")} then (
             select true from attempts
              where due_at <= now() and (lease_expires_at is null or lease_expires_at <= now())
              order by due_at limit 1) end as "attempts",
           case when ${asks("provider-events")} then (
             select true from provider_events where due_at <= now() and provider = ${question.provider}
              order by due_at limit 1) end as "provider-events",
           case when ${asks("relay")} then (
             select true from outbox where relayed_at is null order by created_at limit 1) end as "relay",
           case when ${asks("webhooks")} then (${dueDelivery(db, question.toBroker)}) end as "webhooks",
           case when ${asks("ledger")} then (
             select true from ledger_uncounted order by tenant_id, payment_id, fact, leg limit 1) end as "ledger"`;
  return question.asked.filter((work) => found?.[work] === true);
}

/** Endpoint by endpoint, so that nothing is read of all that waits for a disabled or a failing one. */
function dueDelivery(db: Queryable, toBroker: boolean) {
  return db`
    with recursive waiting as (
      (select endpoint_id from deliveries where due_at is not null order by endpoint_id limit 1)
      union all
      select (select d.endpoint_id from deliveries d where d.due_at is not null and d.endpoint_id > w.endpoint_id
               order by d.endpoint_id limit 1)
        from waiting w where w.endpoint_id is not null)
    select true from waiting w cross join lateral (
           select from deliveries d where d.endpoint_id = w.endpoint_id and d.due_at <= now()
            order by d.due_at limit 1) d
     where w.endpoint_id is not null and (w.endpoint_id <> ${BROKER_ID} or ${toBroker}::boolean)
     limit 1`;
}
