import type { JsonValue } from "../domain/documents.js";
import type { OutboxEvent } from "../domain/events.js";
import { BROKER_ID } from "../domain/webhook.js";
import type { Queryable } from "./db.js";
import type { KeyedChange } from "./key-claims.js";
import { jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface Relayed {
  /** Events that have been seen. */
  readonly events: number;
  readonly deliveries: number;
}

/**
 * Makes the deliveries of events that have none yet: one for each enabled endpoint that wants the type and stood when
 * the event was written, and one for the broker where there is one. An event is seen by what it is and not by a place in
 * a row, so one whose transaction committed late is not passed over. Rows that another relay holds are skipped.
 */
export async function relayEvents(db: Queryable, limit: number, toBroker: boolean): Promise<Relayed> {
  const [made] = await db<Row[]>`
    with unseen as (
      select o.tenant_id, o.id from outbox o
       where o.relayed_at is null
       order by o.created_at limit ${limit} for update skip locked
    ), seen as (
      update outbox o set relayed_at = now()
        from unseen u where o.tenant_id = u.tenant_id and o.id = u.id
      returning o.tenant_id, o.id, o.type, o.payment_id, o.sequence, o.ordinal, o.created_at
    ), made as (
      insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal)
      select s.tenant_id, e.id, s.id, s.payment_id, s.sequence, s.ordinal
        from seen s join webhook_endpoints e on e.tenant_id = s.tenant_id
       where e.enabled and e.created_at <= s.created_at and ${wants(db)}
      union all
      select s.tenant_id, ${BROKER_ID}, s.id, s.payment_id, s.sequence, s.ordinal
        from seen s where ${toBroker}::boolean
      on conflict do nothing
      returning 1
    )
    select (select count(*) from seen)::int as events, (select count(*) from made)::int as deliveries`;
  return { events: Number(made?.["events"]), deliveries: Number(made?.["deliveries"]) };
}

/** The ids of the enabled endpoints that want the event's type; null: the tenant has no such event. */
export async function readRedelivery(
  db: Queryable,
  tenantId: string,
  eventId: string,
): Promise<readonly string[] | null> {
  const rows = await db<Row[]>`
    select e.id from outbox s
      left join webhook_endpoints e on e.tenant_id = s.tenant_id and e.enabled and ${wants(db)}
     where s.tenant_id = ${tenantId} and s.id = ${eventId}
     order by e.id`;
  if (rows.length === 0) return null;
  return rows.map((row) => textOrNull(row["id"])).filter((id) => id !== null);
}

/**
 * Makes the event due again, from its first try on, for these endpoints; also where a delivery of it has been purged or
 * was never made. What has become of an endpoint since it was read, the delivery's claim finds out.
 */
export function redelivering(db: Queryable, eventId: string, endpointIds: readonly string[]): KeyedChange {
  const effect = db`made as (
      insert into deliveries as d (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal)
      select s.tenant_id, e.id, s.id, s.payment_id, s.sequence, s.ordinal
        from claimed c join outbox s on s.tenant_id = c.tenant_id and s.id = ${eventId}
             cross join json_array_elements_text(${JSON.stringify(endpointIds)}::text::json) as e(id)
       order by e.id
      on conflict (tenant_id, endpoint_id, event_id) do update
        set state = 'pending', tries = 0, due_at = now(), delivered_at = null
    )`;
  return { held: null, effect };
}

/** Whether the endpoint `e` wants the event `s`. */
function wants(db: Queryable) {
  return db`(e.events is null or s.type in (select json_array_elements_text(e.events)))`;
}

export async function readEvent(
  db: Queryable,
  tenantId: string,
  eventId: string,
): Promise<OutboxEvent | null> {
  const [row] = await db<Row[]>`
    select * from outbox where tenant_id = ${tenantId} and id = ${eventId}`;
  return row === undefined ? null : eventOf(row);
}

/** Newest first, from before the event with the id `before` where one is given. */
export async function listEvents(
  db: Queryable,
  tenantId: string,
  page: { limit: number; before: string | null },
): Promise<OutboxEvent[]> {
  const rows = await db<Row[]>`
    select * from outbox
     where tenant_id = ${tenantId} ${page.before === null ? db`` : db`and id < ${page.before}`}
     order by id desc limit ${page.limit}`;
  return rows.map(eventOf);
}

function eventOf(row: Row): OutboxEvent {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    type: row["type"] as string,
    object: jsonOrNull<JsonValue>(row["data"]),
    createdAt: requiredDate(row["created_at"]),
  };
}
