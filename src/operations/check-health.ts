import type { Deps } from "./deps.js";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
}

/** Longer than a healthy answer ever takes; a probe must not hang with the database. */
const DATABASE_PATIENCE_MS = 2_000;

/** Ready: the database answers with the schema there, and the provider does not refuse our credential. */
export async function checkReadiness(deps: Deps): Promise<Readiness> {
  const database = await databaseState(deps);
  const refused = deps.account.refusedReason();
  const provider = refused === null ? "ok" : `degraded: ${refused}`;
  return { ready: database === "ok" && refused === null, checks: { database, provider } };
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
