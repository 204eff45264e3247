import type { WebhookEndpoint } from "../domain/webhook.js";
import type { Queryable } from "./db.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface EndpointName {
  readonly tenantId: string;
  readonly id: string;
}

export async function insertEndpoint(
  db: Queryable,
  endpoint: EndpointName & { url: string; events: readonly string[] | null; secret: string },
): Promise<WebhookEndpoint> {
  const events = endpoint.events === null ? null : JSON.stringify(endpoint.events);
  const [row] = await db<Row[]>`
    insert into webhook_endpoints (tenant_id, id, url, events, secret)
    values (${endpoint.tenantId}, ${endpoint.id}, ${endpoint.url}, ${events}::text::json, ${endpoint.secret})
    returning *`;
  if (row === undefined) throw new Error("the inserted endpoint was not returned");
  return endpointOf(row);
}

export async function countEndpoints(db: Queryable, tenantId: string): Promise<number> {
  const [row] = await db<Row[]>`
    select count(*)::int as endpoints from webhook_endpoints where tenant_id = ${tenantId}`;
  return Number(row?.["endpoints"]);
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

/** The secret until now signs beside the new one for `overlapMs`; one from before it no longer does. Null: no such endpoint. */
export async function rotateSecret(
  db: Queryable,
  name: EndpointName,
  secret: string,
  overlapMs: number,
): Promise<WebhookEndpoint | null> {
  const [row] = await db<Row[]>`
    update webhook_endpoints
       set previous_secret = secret, secret = ${secret}, updated_at = now(),
           previous_secret_expires_at = now() + ${overlapMs}::float8 * interval '1 millisecond'
     where tenant_id = ${name.tenantId} and id = ${name.id}
    returning *`;
  return row === undefined ? null : endpointOf(row);
}

/** Null: no such endpoint. Of one that is enabled already nothing changes but that it counts as not failing. */
export async function enableEndpoint(db: Queryable, name: EndpointName): Promise<WebhookEndpoint | null> {
  const [row] = await db<Row[]>`
    update webhook_endpoints
       set enabled = true, disabled_reason = null, failing_since = null, updated_at = now()
     where tenant_id = ${name.tenantId} and id = ${name.id}
    returning *`;
  return row === undefined ? null : endpointOf(row);
}

/** Null: there is none, another was first, or (where it is for failing) it has taken something since. */
export async function disableEndpoint(
  db: Queryable,
  name: EndpointName,
  reason: "gone" | "failing",
  failingForMs: number,
): Promise<WebhookEndpoint | null> {
  const [row] = await db<Row[]>`
    update webhook_endpoints
       set enabled = false, disabled_reason = ${reason}, updated_at = now()
     where tenant_id = ${name.tenantId} and id = ${name.id} and enabled
       and (${reason}::text = 'gone'
            or failing_since <= now() - ${failingForMs}::float8 * interval '1 millisecond')
    returning *`;
  return row === undefined ? null : endpointOf(row);
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
