import type { Database } from "./db.js";

/** Hints between processes, each in a transaction of its own: NOTIFY inside the hot ones would serialise their commits. */
export type Channel = "pawl_attempts" | "pawl_outcomes" | "pawl_provider_events";

/** A payload is at most 8,000 bytes; an id is 36 characters. */
const IDS_PER_NOTICE = 200;

export async function notify(db: Database, channel: Channel, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += IDS_PER_NOTICE) {
    await db.sql`select pg_notify(${channel}, ${ids.slice(from, from + IDS_PER_NOTICE).join(",")})`;
  }
}

/**
 * Calls `hear` with the ids of each notice, on a connection of its own that is remade when it breaks. Behind a
 * transaction pooler nothing arrives: polling is the safety net.
 */
export async function listen(db: Database, channel: Channel, hear: (ids: string[]) => void): Promise<void> {
  await db.sql.listen(channel, (payload) => hear(payload === "" ? [] : payload.split(",")));
}
