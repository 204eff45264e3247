import { PawlError } from "../domain/errors.js";
import type { WebhookEndpoint } from "../domain/webhook.js";
import { withDatabase } from "../store/db.js";
import { type Delivery, listDeliveries as readDeliveries } from "../store/deliveries.js";
import { listEndpoints, readEndpoint } from "../store/webhook-endpoints.js";
import type { Caller, Deps } from "./deps.js";
import { type Page, type PageRequest, pageOf, readCursor } from "./paging.js";

/** Throws not_found, for another tenant's endpoint too. */
export async function getWebhookEndpoint(
  deps: Pick<Deps, "db">,
  caller: Caller,
  endpointId: string,
): Promise<WebhookEndpoint> {
  const name = { tenantId: caller.tenantId, id: endpointId };
  const endpoint = await withDatabase(() => readEndpoint(deps.db.sql, name));
  if (endpoint === null) throw new PawlError("not_found", "There is no webhook endpoint with this id.");
  return endpoint;
}

/** Newest first. */
export async function listWebhookEndpoints(
  deps: Pick<Deps, "db">,
  caller: Caller,
  page: PageRequest,
): Promise<Page<WebhookEndpoint>> {
  const before = readCursor(page.cursor, "we");
  const rows = await withDatabase(() =>
    listEndpoints(deps.db.sql, caller.tenantId, { limit: page.limit + 1, before }),
  );
  return pageOf(rows, page.limit);
}

/** The newest events first. Throws not_found. */
export async function listDeliveries(
  deps: Pick<Deps, "db">,
  caller: Caller,
  endpointId: string,
  page: PageRequest,
): Promise<Page<Delivery>> {
  const before = readCursor(page.cursor, "evt");
  const endpoint = await getWebhookEndpoint(deps, caller, endpointId);
  const rows = await withDatabase(() =>
    readDeliveries(deps.db.sql, endpoint, { limit: page.limit + 1, before }),
  );
  return pageOf(
    rows.map((row) => ({ ...row, id: row.eventId })),
    page.limit,
  );
}

export type { Delivery } from "../store/deliveries.js";
