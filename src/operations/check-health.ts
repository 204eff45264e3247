import type { Deps } from "./deps.js";
import { accountsAwaited } from "./recover.js";

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
  const recovery = await recoveryState(deps, database === "ok");
  return { ready: database === "ok" && refused === null, checks: { database, provider, recovery } };
}

/** With the accounts that it waits for, where the database tells. */
async function recoveryState(deps: Deps, databaseAnswers: boolean): Promise<string> {
  const recovering = deps.recovery.current();
  if (recovering === null) return "ok";
  const said = `recovering since ${recovering.since.toISOString()}: ${recovering.reason}`;
  if (!databaseAnswers) return said;
  const asked = accountsAwaited(deps).catch(() => []);
  const accounts = await inTime<readonly string[]>(deps, asked, []);
  return accounts.length === 0 ? said : `${said}; these accounts are to be compared: ${accounts.join(", ")}`;
}

function databaseState(deps: Deps): Promise<string> {
  const answered = deps.db.sql`select 1 from installation`.then(
    () => "ok",
    () => "unreachable or not migrated",
  );
  return inTime(deps, answered, "no answer");
}

async function inTime<T>(deps: Deps, answer: Promise<T>, otherwise: T): Promise<T> {
  const late = new AbortController();
  const patience = deps.clock.sleep(DATABASE_PATIENCE_MS, late.signal).then(() => otherwise);
  const first = await Promise.race([answer, patience]);
  late.abort();
  return first;
}
