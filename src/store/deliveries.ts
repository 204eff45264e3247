import type { JsonValue } from "../domain/documents.js";
import type { OutboxEvent } from "../domain/events.js";
import { BROKER_ID, type DeliveryFault, type DeliveryResult } from "../domain/webhook.js";
import type { Queryable } from "./db.js";
import { rowIfAny, rowOf } from "./look-ups.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface ClaimDeliveries {
  /** At most so many in all. */
  readonly limit: number;
  /** At most so many to an endpoint that `roomAt` does not name. */
  readonly room: number;
  /** At most so many to these, which have some under way here already. */
  readonly roomAt: ReadonlyMap<string, number>;
  readonly leaseMs: number;
  /** Whether this process has a broker; without one its deliveries are left alone. */
  readonly toBroker: boolean;
}

export interface ClaimedDelivery {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly event: OutboxEvent;
  /** Counts this one. */
  readonly tries: number;
  /** The end of the lease, as the database wrote it: with `tries` what every write of the outcome names. */
  readonly leasedUntil: string;
  /** Null for the broker. */
  readonly target: { readonly url: string; readonly secrets: readonly string[] } | null;
}

/** So many due deliveries of one endpoint are looked at in a round: those that must wait are moved out of the way. */
const LOOKED_AT = 32;
/** How late a statement may still write an event whose transaction began before another one's was relayed. */
const LATEST_COMMIT = "30 seconds";
/** When what waits for something that is about to happen is looked at again. */
const SOON = "100 milliseconds";
/** A disabled endpoint's deliveries are looked at again so much later; enabling it makes them due at once. */
const HELD = "1 hour";

/**
 * Claims deliveries that are due: counts the try, and pushes `due_at` to the end of the lease. Endpoint by endpoint, so
 * that however much waits for one of them, the others are reached. Of one payment only the earliest open delivery is
 * taken, and none while an earlier event of it is not relayed yet; what has to wait for it is pushed to when it is tried
 * next, out of the way. A row that another process has touched since it was looked at is left to that one.
 */
export async function claimDeliveries(db: Queryable, claim: ClaimDeliveries): Promise<ClaimedDelivery[]> {
  const roomAt = [...claim.roomAt].map(([id, room]) => ({ endpoint_id: id, room }));
  const rows = await db<Row[]>`
    with recursive waiting as (
      (select endpoint_id from deliveries where due_at is not null order by endpoint_id limit 1)
      union all
      select (select d.endpoint_id from deliveries d where d.due_at is not null and d.endpoint_id > w.endpoint_id
               order by d.endpoint_id limit 1)
        from waiting w where w.endpoint_id is not null
    ), busy as materialized (
      select * from json_to_recordset(${JSON.stringify(roomAt)}::text::json) as x(endpoint_id text, room int)
    ), roomy as materialized (
      select w.endpoint_id, coalesce(b.room, ${claim.room}::int) as room
        from waiting w left join busy b on b.endpoint_id = w.endpoint_id
       where w.endpoint_id is not null and (w.endpoint_id <> ${BROKER_ID} or ${claim.toBroker}::boolean)
    ), due as materialized (
      select d.*, r.room from roomy r cross join lateral (
        select tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, due_at from deliveries d
         where d.endpoint_id = r.endpoint_id and d.due_at <= now()
         order by d.due_at limit ${LOOKED_AT}) d
       where r.room > 0
    ), judged as materialized (
      select d.*, e.enabled, e.id is null and d.endpoint_id <> ${BROKER_ID} as orphaned,
             p.due_at as behind
        from due d
        ${rowIfAny(db, "webhook_endpoints", "e", db`d.tenant_id`, db`d.endpoint_id`)}
        left join lateral (${earlierDelivery(db)}) p on true
    ), ready as materialized (
      select * from (
        select j.*, row_number() over (partition by endpoint_id order by due_at, event_id) as place from judged j
         where not orphaned and coalesce(enabled, true) and behind is null) r
       where place <= room order by place, due_at limit ${claim.limit}
    ), chosen as materialized (
      select tenant_id, endpoint_id, event_id, due_at, case when early then 'wait' else 'send' end as verdict,
             now() + ${SOON}::interval as until
        from (select d.*, exists (${earlierEvent(db)}) as early from ready d) d
      union all
      select tenant_id, endpoint_id, event_id, due_at, case when orphaned then 'end' else 'wait' end,
             case when enabled is false then now() + ${HELD}::interval
                  else greatest(behind, now() + ${SOON}::interval) end
        from judged where orphaned or enabled is false or behind is not null
    ), locked as materialized (
      select c.* from chosen c cross join lateral (
        select from deliveries d
         where d.tenant_id = c.tenant_id and d.endpoint_id = c.endpoint_id and d.event_id = c.event_id
           and d.state = 'pending' and d.due_at = c.due_at
           for update skip locked) d
    ), claimed as (
      update deliveries d
         set tries = d.tries + case l.verdict when 'send' then 1 else 0 end,
             state = case l.verdict when 'end' then 'failed' else d.state end,
             last_error = case l.verdict when 'end' then 'endpoint_deleted' else d.last_error end,
             due_at = case l.verdict when 'send' then now() + ${claim.leaseMs}::float8 * interval '1 millisecond'
                                     when 'wait' then l.until end
        from locked l
       where d.tenant_id = l.tenant_id and d.endpoint_id = l.endpoint_id and d.event_id = l.event_id
      returning d.tenant_id, d.endpoint_id, d.event_id, d.tries, d.due_at, l.verdict
    )
    select c.*, o.type, o.data, o.created_at, e.url, e.secret,
           case when e.previous_secret_expires_at > now() then e.previous_secret end as previous_secret
      from claimed c
      ${rowOf(db, "outbox", "o", db`c.tenant_id`, db`c.event_id`)}
      ${rowIfAny(db, "webhook_endpoints", "e", db`c.tenant_id`, db`c.endpoint_id`)}
     where c.verdict = 'send'`;
  return rows.map(claimedOf);
}

/** The first delivery to the same endpoint that comes before `d` and has not ended. */
function earlierDelivery(db: Queryable) {
  return db`
    select f.due_at from deliveries f
     where f.payment_id = d.payment_id and f.endpoint_id = d.endpoint_id and f.tenant_id = d.tenant_id
       and f.state = 'pending' and (f.sequence, f.ordinal) < (d.sequence, d.ordinal)
     order by f.sequence, f.ordinal limit 1`;
}

/** An event of the same payment that comes before `d` and is still to be relayed. */
function earlierEvent(db: Queryable) {
  return db`
    select from outbox own, outbox o
     where own.tenant_id = d.tenant_id and own.id = d.event_id
       and o.relayed_at is null and o.created_at <= own.created_at + ${LATEST_COMMIT}::interval
       and o.tenant_id = d.tenant_id and o.payment_id = d.payment_id
       and (o.sequence, o.ordinal) < (d.sequence, d.ordinal)`;
}

function claimedOf(row: Row): ClaimedDelivery {
  const tenantId = row["tenant_id"] as string;
  const secrets = [textOrNull(row["secret"]), textOrNull(row["previous_secret"])].filter(
    (one) => one !== null,
  );
  const url = textOrNull(row["url"]);
  return {
    tenantId,
    endpointId: row["endpoint_id"] as string,
    event: {
      tenantId,
      id: row["event_id"] as string,
      type: row["type"] as string,
      object: jsonOrNull<JsonValue>(row["data"]),
      createdAt: requiredDate(row["created_at"]),
    },
    tries: Number(row["tries"]),
    leasedUntil: row["due_at"] as string,
    target: url === null ? null : { url, secrets },
  };
}

export interface Recorded {
  /** This try's outcome was the one to write; false: the delivery has been taken over, or asked for again. */
  readonly recorded: boolean;
  /** The endpoint has taken nothing for so long that it must be disabled. */
  readonly failingTooLong: boolean;
}

/**
 * Writes what a try came to, and since when its endpoint takes nothing. `retryInMs`: null ends a failed delivery. Where
 * the delivery has ended, the one that waited for it is due: written even where it is due already, so that a claim which
 * still saw it wait leaves it alone. Compare-and-set on the lease: a worker that comes late changes nothing.
 */
export async function recordDelivery(
  db: Queryable,
  claimed: ClaimedDelivery,
  result: DeliveryResult,
  after: { readonly retryInMs: number | null; readonly disableAfterMs: number },
): Promise<Recorded> {
  const state = result.delivered ? "delivered" : after.retryInMs === null ? "failed" : "pending";
  const [row] = await db<Row[]>`
    with tried as (
      update deliveries d
         set state = ${state}::delivery_state, last_tried_at = now(), last_status = ${result.status}::int,
             last_error = ${result.fault}::text, last_answer = ${result.answer}::text,
             due_at = case when ${state} = 'pending'
                           then now() + ${after.retryInMs}::float8 * interval '1 millisecond' end,
             delivered_at = case when ${state} = 'delivered' then now() end
       where d.tenant_id = ${claimed.tenantId} and d.endpoint_id = ${claimed.endpointId}
         and d.event_id = ${claimed.event.id} and d.state = 'pending' and d.tries = ${claimed.tries}
         and d.due_at = ${claimed.leasedUntil}::text::timestamptz
      returning d.*
    ), next as (
      update deliveries n set due_at = now()
        from tried t cross join lateral (
             select f.event_id from deliveries f
              where f.payment_id = t.payment_id and f.endpoint_id = t.endpoint_id and f.tenant_id = t.tenant_id
                and f.state = 'pending' and (f.sequence, f.ordinal) > (t.sequence, t.ordinal)
              order by f.sequence, f.ordinal limit 1) f
       where t.state <> 'pending' and n.tenant_id = t.tenant_id and n.endpoint_id = t.endpoint_id
         and n.event_id = f.event_id and n.state = 'pending'
    ), health as (
      update webhook_endpoints e
         set failing_since = case when ${result.delivered}::boolean then null else now() end
        from tried t
       where e.tenant_id = t.tenant_id and e.id = t.endpoint_id
         and (e.failing_since is null) <> ${result.delivered}::boolean
    )
    select exists (select from webhook_endpoints e
                    where e.tenant_id = t.tenant_id and e.id = t.endpoint_id and e.enabled
                      and not ${result.delivered}::boolean
                      and e.failing_since <= now() - ${after.disableAfterMs}::float8 * interval '1 millisecond'
                  ) as failing_too_long
      from tried t`;
  return { recorded: row !== undefined, failingTooLong: row?.["failing_too_long"] === true };
}

export interface Delivery {
  readonly endpointId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly paymentId: string | null;
  readonly state: "pending" | "delivered" | "failed";
  readonly tries: number;
  readonly dueAt: Date | null;
  readonly lastTriedAt: Date | null;
  readonly lastStatus: number | null;
  readonly lastError: DeliveryFault | null;
  readonly lastAnswer: string | null;
  readonly createdAt: Date;
  readonly deliveredAt: Date | null;
}

/** The newest events first, from before the event `before` where one is given. */
export async function listDeliveries(
  db: Queryable,
  endpoint: { readonly tenantId: string; readonly id: string },
  page: { readonly limit: number; readonly before: string | null },
): Promise<Delivery[]> {
  const rows = await db<Row[]>`
    select d.*, o.type from deliveries d ${rowOf(db, "outbox", "o", db`d.tenant_id`, db`d.event_id`)}
     where d.tenant_id = ${endpoint.tenantId} and d.endpoint_id = ${endpoint.id}
           ${page.before === null ? db`` : db`and d.event_id < ${page.before}`}
     order by d.event_id desc limit ${page.limit}`;
  return rows.map((row) => ({
    endpointId: row["endpoint_id"] as string,
    eventId: row["event_id"] as string,
    eventType: row["type"] as string,
    paymentId: textOrNull(row["payment_id"]),
    state: row["state"] as Delivery["state"],
    tries: Number(row["tries"]),
    dueAt: dateOrNull(row["due_at"]),
    lastTriedAt: dateOrNull(row["last_tried_at"]),
    lastStatus: row["last_status"] === null ? null : Number(row["last_status"]),
    lastError: textOrNull(row["last_error"]) as DeliveryFault | null,
    lastAnswer: textOrNull(row["last_answer"]),
    createdAt: requiredDate(row["created_at"]),
    deliveredAt: dateOrNull(row["delivered_at"]),
  }));
}

/**
 * For a key's claim that holds an endpoint: makes what waits for it due now, the first to be tried anyway first. Not more
 * than `limit`: the rest comes when it was to come.
 */
export function hastening(db: Queryable, limit: number) {
  return db`waiting as materialized (
      select w.* from claimed c cross join held h cross join lateral (
        select tenant_id, endpoint_id, event_id from deliveries
         where endpoint_id = h.id and tenant_id = c.tenant_id and due_at > now()
         order by due_at limit ${limit} for update skip locked) w
    ), hastened as (
      update deliveries d set due_at = now()
        from waiting w
       where d.tenant_id = w.tenant_id and d.endpoint_id = w.endpoint_id and d.event_id = w.event_id
    )`;
}

/**
 * Deletes at most `limit` deliveries that have ended and are older than `retentionMs`, by when they were made and last
 * tried, and yields how many. Rows that another purge holds are skipped.
 */
export async function purgeEndedDeliveries(
  db: Queryable,
  limit: number,
  retentionMs: number,
): Promise<number> {
  const rows = await db<Row[]>`
    with old as (
      select tenant_id, endpoint_id, event_id from deliveries
       where due_at is null and created_at <= now() - ${retentionMs}::float8 * interval '1 millisecond'
         and coalesce(last_tried_at, created_at) <= now() - ${retentionMs}::float8 * interval '1 millisecond'
       order by created_at limit ${limit} for update skip locked
    )
    delete from deliveries d using old
     where d.tenant_id = old.tenant_id and d.endpoint_id = old.endpoint_id and d.event_id = old.event_id
    returning d.event_id`;
  return rows.length;
}
