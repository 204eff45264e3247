import { withDatabase } from "../store/db.js";
import { type ListedEvent, listUnappliedEvents } from "../store/provider-events.js";
import type { Deps } from "./deps.js";

/** The provider's events that are not applied, oldest first; with `parkedOnly`, those that wait for a person. */
export function listProviderEvents(
  deps: Pick<Deps, "db">,
  wanted: { readonly parkedOnly: boolean; readonly limit: number },
): Promise<ListedEvent[]> {
  return withDatabase(() => listUnappliedEvents(deps.db.sql, wanted));
}
