import { PawlError } from "../domain/errors.js";
import type { OutboxEvent } from "../domain/events.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/outbox.js";
import type { Caller, Deps } from "./deps.js";
import { type Page, type PageRequest, pageOf, readCursor } from "./paging.js";

/** Throws not_found, for another tenant's event too. */
export async function getEvent(
  deps: Pick<Deps, "db">,
  caller: Caller,
  eventId: string,
): Promise<OutboxEvent> {
  const event = await withDatabase(() => store.readEvent(deps.db.sql, caller.tenantId, eventId));
  if (event === null) throw new PawlError("not_found", "There is no event with this id.");
  return event;
}

/** Newest first. */
export async function listEvents(
  deps: Pick<Deps, "db">,
  caller: Caller,
  page: PageRequest,
): Promise<Page<OutboxEvent>> {
  const before = readCursor(page.cursor, "evt");
  const rows = await withDatabase(() =>
    store.listEvents(deps.db.sql, caller.tenantId, { limit: page.limit + 1, before }),
  );
  return pageOf(rows, page.limit);
}
