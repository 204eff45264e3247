import { type Backlog, readBacklog as read } from "../store/backlog.js";
import { withDatabase } from "../store/db.js";
import type { Deps } from "./deps.js";

/** For the operator's metrics. Throws service_unavailable where the database does not answer. */
export function readBacklog(deps: Pick<Deps, "db">): Promise<Backlog> {
  return withDatabase(() => read(deps.db.sql));
}
