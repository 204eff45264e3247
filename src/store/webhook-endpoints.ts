import type { JsonValue } from "../domain/documents.js";
import type { WebhookEndpoint } from "../domain/webhook.js";
import type { Queryable } from "./db.js";
import { hastening } from "./deliveries.js";
import type { KeyedChange } from "./key-claims.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface EndpointName {
  readonly tenantId: string;
  readonly id: string;
}

/** How many endpoints a tenant has, and the database's time of that. */
export async function countEndpoints(
  db: Queryable,
  tenantId: string,
): Promise<{ readonly endpoints: number; readonly at: string }> {
  const [row] = await db<Row[]>`
    select count(*)::int as endpoints, now() as at from webhook_endpoints where tenant_id = ${tenantId}`;
  return { endpoints: Number(row?.["endpoints"]), at: row?.["at"] as string };
}

/** `at`: when it was made, as the database wrote it. */
export function insertingEndpoint(
  db: Queryable,
  endpoint: EndpointName & { url: string; events: readonly string[] | null; secret: string; at: string },
): KeyedChange {
  const events = endpoint.events === null ? null : JSON.stringify(endpoint.events);
  const { id, url, secret, at } = endpoint;
  const effect = db`made as (
      insert into webhook_endpoints (tenant_id, id, url, events, secret, created_at, updated_at)
      select c.tenant_id, ${id}::text, ${url}::text, ${events}::text::json, ${secret}::text,
             ${at}::text::timestamptz, ${at}::text::timestamptz
        from claimed c
    )`;
  return { held: null, effect };
}

/** An endpoint as a change of it is judged: what is decided from it holds while neither of its times has changed. */
export interface ReadEndpoint {
  readonly endpoint: WebhookEndpoint;
  /** The row's times, to the microsecond, as the database wrote them. */
  readonly updatedAt: string;
  readonly failingSince: string | null;
  /** The database's time of the reading. */
  readonly at: string;
}

export async function readForChange(db: Queryable, name: EndpointName): Promise<ReadEndpoint | null> {
  const [row] = await db<Row[]>`
    select *, now() as at from webhook_endpoints where tenant_id = ${name.tenantId} and id = ${name.id}`;
  if (row === undefined) return null;
  return {
    endpoint: endpointOf(row),
    updatedAt: row["updated_at"] as string,
    failingSince: textOrNull(row["failing_since"]),
    at: row["at"] as string,
  };
}

function held(db: Queryable, { endpoint, updatedAt, failingSince }: ReadEndpoint) {
  return db`
    select e.tenant_id, e.id from webhook_endpoints e
     where e.tenant_id = ${endpoint.tenantId} and e.id = ${endpoint.id}
       and e.updated_at = ${updatedAt}::text::timestamptz
       and e.failing_since is not distinct from ${failingSince}::text::timestamptz
       for update`;
}

export async function readEndpoint(db: Queryable, name: EndpointName): Promise<WebhookEndpoint | null> {
  const [row] = await db<Row[]>`
    select * from webhook_endpoints where tenant_id = ${name.tenantId} and id = ${name.id}`;
  return row === undefined ? null : endpointOf(row);
}

/** Newest first, from before the endpoint with the id `before` where one is given. */
export async function listEndpoints(
  db: Queryable,
  tenantId: string,
  page: { limit: number; before: string | null },
): Promise<WebhookEndpoint[]> {
  const rows = await db<Row[]>`
    select * from webhook_endpoints
     where tenant_id = ${tenantId} ${page.before === null ? db`` : db`and id < ${page.before}`}
     order by id desc limit ${page.limit}`;
  return rows.map(endpointOf);
}

/** Its deliveries stay until they are purged; those still open are ended by the next claim. False: there is none. */
export async function deleteEndpoint(db: Queryable, name: EndpointName): Promise<boolean> {
  const rows = await db<Row[]>`
    delete from webhook_endpoints where tenant_id = ${name.tenantId} and id = ${name.id} returning id`;
  return rows.length > 0;
}

/** The secret until now signs beside the new one for a while; one from before it no longer does. */
export function rotatingSecret(
  db: Queryable,
  read: ReadEndpoint,
  made: { readonly secret: string; readonly previousExpiresAt: Date },
): KeyedChange {
  const effect = db`rotated as (
      update webhook_endpoints e
         set previous_secret = e.secret, secret = ${made.secret}, updated_at = ${read.at}::text::timestamptz,
             previous_secret_expires_at = ${made.previousExpiresAt.toISOString()}::text::timestamptz
        from claimed c, held h
       where e.tenant_id = c.tenant_id and e.id = h.id
    )`;
  return { held: held(db, read), effect };
}

/** Of one that is enabled already nothing changes but that it counts as not failing. Makes at most `hastened` due. */
export function enablingEndpoint(db: Queryable, read: ReadEndpoint, hastened: number): KeyedChange {
  const effect = db`enabled as (
      update webhook_endpoints e
         set enabled = true, disabled_reason = null, failing_since = null, updated_at = ${read.at}::text::timestamptz
        from claimed c, held h
       where e.tenant_id = c.tenant_id and e.id = h.id
    ), ${hastening(db, hastened)}`;
  return { held: held(db, read), effect };
}

/** With the event that says so. False, and nothing is written: it is no longer as it was read. */
export async function disableEndpoint(
  db: Queryable,
  read: ReadEndpoint,
  reason: "gone" | "failing",
  event: { readonly id: string; readonly type: string; readonly object: JsonValue },
): Promise<boolean> {
  const rows = await db<Row[]>`
    with held as materialized (${held(db, read)}
    ), told as (
      insert into outbox (tenant_id, id, type, data)
      select h.tenant_id, ${event.id}::text, ${event.type}::text, ${JSON.stringify(event.object)}::text::json from held h
    )
    update webhook_endpoints e
       set enabled = false, disabled_reason = ${reason}, updated_at = ${read.at}::text::timestamptz
      from held h
     where e.tenant_id = h.tenant_id and e.id = h.id
    returning e.id`;
  return rows.length > 0;
}

function endpointOf(row: Row): WebhookEndpoint {
  return {
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    url: row["url"] as string,
    events: jsonOrNull<readonly string[]>(row["events"]),
    enabled: row["enabled"] as boolean,
    disabledReason: textOrNull(row["disabled_reason"]) as WebhookEndpoint["disabledReason"],
    failingSince: dateOrNull(row["failing_since"]),
    previousSecretExpiresAt: dateOrNull(row["previous_secret_expires_at"]),
    createdAt: requiredDate(row["created_at"]),
    updatedAt: requiredDate(row["updated_at"]),
  };
}
