import { withDatabase } from "../store/db.js";
import { replayParkedEvents } from "../store/provider-events.js";
import type { Deps } from "./deps.js";

/** Makes a parked event due again, with all its tries before it. False: no event of this id is parked. */
export async function replayProviderEvent(deps: Pick<Deps, "db">, eventId: string): Promise<boolean> {
  return (await withDatabase(() => replayParkedEvents(deps.db.sql, eventId))) > 0;
}

/** All of them, after whatever parked them is mended. Yields how many. */
export function replayAllProviderEvents(deps: Pick<Deps, "db">): Promise<number> {
  return withDatabase(() => replayParkedEvents(deps.db.sql, null));
}
