import type { Deps } from "./deps.js";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
}

/** Longer than a healthy answer ever takes; a probe must not hang with the database. */
const DATABASE_PATIENCE_MS = 2_000;

/**
 * Ready: the database answers with the schema there, and the provider does not refuse our credential. A recovery is told
 * and leaves it ready, since reads and replays go on.
 */
export async function checkReadiness(deps: Deps): Promise<Readiness> {
  const database = await databaseState(deps);
  const refused = deps.account.refusedReason();
  const provider = refused === null ? "ok" : `degraded: ${refused}`;
  const recovering = deps.recovery.current();
  const recovery =
    recovering === null ? "ok" : `recovering since ${recovering.since.toISOString()}: ${recovering.reason}`;
  return { ready: database === "ok" && refused === null, checks: { database, provider, recovery } };
}

async function databaseState(deps: Deps): Promise<string> {
  const late = new AbortController();
  const answered = deps.db.sql`select 1 from installation`.then(
    () => "ok",
    () => "unreachable or not migrated",
  );
  const patience = deps.clock.sleep(DATABASE_PATIENCE_MS, late.signal).then(() => "no answer");
  const state = await Promise.race([answered, patience]);
  late.abort();
  return state;
}
