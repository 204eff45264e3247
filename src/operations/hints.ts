import { Coalescer } from "../lib/coalesce.js";
import type { Logger } from "../lib/log.js";
import type { Database } from "../store/db.js";
import { type Channel, notify } from "../store/notify.js";

/** How long hints to other processes are gathered: well under what a waiting caller notices. */
const NOTICE_INTERVAL_MS = 20;

/** Tells other processes that there is something to look at. One that is lost costs them the time to their next poll. */
export function hintsOn(channel: Channel, db: Database, log: Logger): Coalescer<string> {
  return new Coalescer<string>(
    NOTICE_INTERVAL_MS,
    (ids) => notify(db, channel, ids),
    (error) => log.debug({ err: error, channel }, "a notice was lost; polling finds what it told"),
  );
}
