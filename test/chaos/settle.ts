import type postgres from "postgres";
import { until } from "../support/until.js";

/** What is looked at hours later, an authorisation for one, is at rest. */
const LATER = "30 seconds";

/** What is left to happen by itself, a sentence each; a refund that a person must decide about is not among it. */
async function unfinished(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ what: string }[]>`
    select a.kind || ' ' || a.id || ' of ' || a.payment_id || ' is ' || a.state || ' (' || coalesce(a.wait_reason, 'due')
           || '), its payment ' || p.status as what
      from attempts a join payments p on p.tenant_id = a.tenant_id and p.id = a.payment_id
      left join refunds r on r.tenant_id = a.tenant_id and r.id = a.refund_id
     where (a.due_at is not null or a.lease_expires_at is not null or a.state <> 'completed')
       and coalesce(r.status::text, p.status::text) <> 'needs_review'
       and not (a.kind = 'charge' and a.state = 'following' and a.lease_expires_at is null
                and a.due_at > now() + ${LATER}::interval)
    union all select 'event ' || id || ' is not relayed' from outbox where relayed_at is null
    union all select 'event ' || event_id || ' is not delivered (' || coalesce(last_error, 'due') || ')'
      from deliveries where state = 'pending'
    union all select 'provider event ' || event_id || ' waits (' || coalesce(outcome, 'due') || ')'
      from provider_events where due_at is not null
    union all select 'an entry of ' || payment_id || ' is not counted' from ledger_uncounted
    limit 500`;
  return rows.map((row) => row.what);
}

/** Waits until nothing is left to happen by itself; yields what was left when the patience was over. */
export async function settle(sql: postgres.Sql, patienceMs: number): Promise<string[]> {
  let left: string[] = [];
  await until(
    "an end of all work",
    async () => {
      left = await unfinished(sql);
      return left.length;
    },
    (count) => count === 0,
    patienceMs,
  ).catch(() => undefined);
  return left;
}
