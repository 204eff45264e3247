import { withDatabase } from "../store/db.js";
import { type Relayed, relayEvents as relay } from "../store/outbox.js";
import type { Deps } from "./deps.js";

/** One statement of some 20 ms; a backlog takes several of them. */
export const RELAY_BATCH_SIZE = 500;

/** Hands one batch of new events to their endpoints, and to the broker where there is one. */
export function relayEvents(deps: Pick<Deps, "db" | "broker">): Promise<Relayed> {
  return withDatabase(() => relay(deps.db.sql, RELAY_BATCH_SIZE, deps.broker !== null));
}
