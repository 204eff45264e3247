import { firstIdAt } from "../lib/ids.js";
import type { Queryable } from "./db.js";
import { dateOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

/** Which database the data stands in. A part that the database does not tell is null. */
export interface DataIdentity {
  /** Of the cluster: another one after a restore elsewhere or an upgrade that copies. */
  readonly cluster: string | null;
  /** Of the database and of a table in it: others after a dump is restored. */
  readonly database: string;
  /** Grows when a standby is promoted and when a backup is recovered. */
  readonly timeline: number | null;
}

/** What the installation's row says, and what is the case. */
export interface RecoveryReading {
  /** Null: nothing was recorded yet. */
  readonly recorded: DataIdentity | null;
  readonly present: DataIdentity;
  readonly recoveringSince: Date | null;
  readonly reason: string | null;
}

const NOT_TOLD = "-";

/**
 * A condition: this data has been through a recovery, so records of keys may have been lost. Why the last one began is
 * kept when it ends, and says so for ever.
 */
export function hasRecovered(db: Queryable) {
  return db`exists (select from installation where recovery_reason is not null)`;
}

/** The installation's row, and the parts of the identity that every role may read. */
export async function readRecovery(
  db: Queryable,
  control: Pick<DataIdentity, "cluster" | "timeline">,
): Promise<RecoveryReading> {
  const [row] = await db<Row[]>`
    select i.*, (select oid::text from pg_database where datname = current_database()) as database_oid,
           'installation'::regclass::oid::text as table_oid
      from installation i`;
  if (row === undefined) throw new Error("the installation row is missing");
  return {
    recorded: identityFrom(textOrNull(row["system_identifier"]), row["cluster_timeline"]),
    present: { ...control, database: `${String(row["database_oid"])}.${String(row["table_oid"])}` },
    recoveringSince: dateOrNull(row["recovering_since"]),
    reason: textOrNull(row["recovery_reason"]),
  };
}

/** Throws what PostgreSQL says where the role may not ask, or the server has no such function. */
export async function readClusterIdentifier(db: Queryable): Promise<string> {
  const [row] = await db<Row[]>`select system_identifier::text as id from pg_control_system()`;
  return row?.["id"] as string;
}

/**
 * The timeline that is written now: the last checkpoint's, which pg_control_checkpoint() tells, is older for a while
 * after a promotion. Throws where the role may not ask, and on a standby.
 */
export async function readTimeline(db: Queryable): Promise<number> {
  const [row] = await db<Row[]>`
    select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`;
  return Number(row?.["timeline"]);
}

/** One text for the column: cluster, database and table, so that a dump restored beside itself is seen too. */
function identifierOf({ cluster, database }: DataIdentity): string {
  return `${cluster ?? NOT_TOLD}/${database}`;
}

function identityFrom(identifier: string | null, timeline: unknown): DataIdentity | null {
  if (identifier === null) return null;
  const [cluster = NOT_TOLD, database = ""] = identifier.split("/");
  return {
    cluster: cluster === NOT_TOLD ? null : cluster,
    database,
    timeline: timeline === null ? null : Number(timeline),
  };
}

/** Writes down where the data is. What is not told now stays as it was recorded. */
export async function recordIdentity(db: Queryable, identity: DataIdentity): Promise<void> {
  await db`
    update installation set system_identifier = ${identifierOf(identity)},
           cluster_timeline = coalesce(${identity.timeline}::int, cluster_timeline)`;
}

/**
 * From now on every process only asks. Keeps since when and why where a recovery is under way already, unless it is a
 * new one (`anew`): the data was taken elsewhere in the middle of it, and its comparison tells nothing of what was lost.
 * With an identity, that one is recorded in the same commit, so that one change begins one recovery.
 */
export async function beginRecovery(
  db: Queryable,
  reason: string,
  identity: DataIdentity | null,
  anew: boolean,
): Promise<void> {
  const identifier = identity === null ? null : identifierOf(identity);
  // Whoever notices the same change a moment later finds its identity recorded.
  const isNew = db`(recovering_since is null
                    or (${anew}::boolean and system_identifier is distinct from ${identifier}::text))`;
  await db`
    update installation
       set recovery_reason = case when ${isNew} then ${reason} else recovery_reason end,
           recovering_since = case when ${isNew} then now() else recovering_since end,
           system_identifier = coalesce(${identifier}::text, system_identifier),
           cluster_timeline = coalesce(${identity?.timeline ?? null}::int, cluster_timeline)`;
}

/** What an open attempt waits for until it has been asked about since the database changed. */
export const DATABASE_CHANGED = "database_changed";
/** Disjoint parts of the open attempts, so that no statement runs long. */
export const MARK_PARTS = 16;

/**
 * What the rows of open attempts say of sends may be older than the sends: they are unknown until they are asked about,
 * which is due now. An attempt under a live lease keeps its state, and is due when the lease is given back. Yields how
 * many of this part were marked.
 */
export async function markOpenAttempts(db: Queryable, part: number): Promise<number> {
  const marked = await db<Row[]>`
    with open as (
      select tenant_id, id, fence, coalesce(lease_expires_at > now(), false) as leased from attempts
       where due_at is not null and (hashtext(id) & ${MARK_PARTS - 1}) = ${part}
         and (wait_reason is null or wait_reason not in ('key_mismatch', 'provider_key_mismatch'))
       order by tenant_id, id for update
    )
    update attempts a
       set state = case when o.leased or a.state <> 'started' then a.state
                        when a.kind = 'charge' then 'create_unknown' else 'send_unknown' end,
           unresolved = a.unresolved or (not o.leased and a.state in ('started', 'charge_created')),
           unknown_since = coalesce(a.unknown_since,
             case when not o.leased and a.state in ('started', 'charge_created') then now() end),
           wait_reason = ${DATABASE_CHANGED}, nudged = true,
           due_at = case when o.leased then a.due_at else least(a.due_at, now()) end
      from open o where a.tenant_id = o.tenant_id and a.id = o.id and a.fence = o.fence
    returning a.id`;
  return marked.length;
}

/** Reasons to wait that come from a question without an answer, or from none that could be asked. */
export const NOT_ANSWERED: readonly string[] = [
  DATABASE_CHANGED,
  "timeout",
  "connection_lost",
  "server_error",
  "unreadable",
  "refused",
  "unreachable",
  "rate_limited",
  "unauthorized",
  "forbidden",
  "provider_account_unknown",
];

/** When the oldest charge object was made that comparisons of this account have not found here; null: there is none. */
export async function readOldestMissing(
  db: Queryable,
  { provider, account }: { readonly provider: string; readonly account: string },
): Promise<Date | null> {
  const [row] = await db<Row[]>`
    select min((f.theirs ->> 'created_at')::timestamptz) as at
      from reconciliation_findings f join reconciliation_runs r on r.provider = f.provider and r.id = f.last_run
     where f.state = 'open' and f.kind = 'missing_here' and f.provider = ${provider} and r.account = ${account}`;
  return dateOrNull(row?.["at"]);
}

/** Open attempts that have had no answer since they were marked. */
export async function countUnanswered(db: Queryable): Promise<number> {
  const [row] = await db<Row[]>`
    select count(*)::int as attempts from attempts
     where due_at is not null and wait_reason = any(string_to_array(${NOT_ANSWERED.join(",")}, ','))`;
  return Number(row?.["attempts"] ?? 0);
}

/**
 * Accounts whose objects the recovery `i` has not compared, beside `own`: those that the data's newest day of comparisons
 * tells of. One that is known by its credential alone (`key_…`) may be any other by now, and is not waited for.
 */
function uncomparedAccounts(db: Queryable, own: string) {
  return db`
    select distinct o.account from reconciliation_runs o
     where o.trigger = 'worker' and o.account <> ${own} and not starts_with(o.account, 'key_')
       and not starts_with(${own}::text, 'key_')
       and o.started_at < i.recovering_since
       and o.started_at >= (select max(w.started_at) from reconciliation_runs w
                             where w.trigger = 'worker' and w.started_at < i.recovering_since) - interval '1 day'
       and not exists (select from reconciliation_runs r
                        where r.provider = o.provider and r.account = o.account and r.trigger = 'recover'
                          and r.state = 'completed' and r.started_at >= i.recovering_since)`;
}

/** Those of the recovery that is under way; none where there is none. */
export async function listUncomparedAccounts(db: Queryable, own: string): Promise<string[]> {
  const rows = await db<Row[]>`
    select u.account from installation i cross join lateral (${uncomparedAccounts(db, own)}) u order by u.account`;
  return rows.map((row) => row["account"] as string);
}

/** Whether a comparison of this account has taken in what the recovery that is under way was to take in. */
export async function isComparedInRecovery(
  db: Queryable,
  { provider, account }: { readonly provider: string; readonly account: string },
): Promise<boolean> {
  const [row] = await db<Row[]>`
    select exists (select from reconciliation_runs r join installation i on r.started_at >= i.recovering_since
                    where r.provider = ${provider} and r.account = ${account} and r.trigger = 'recover'
                      and r.state = 'completed') as compared`;
  return row?.["compared"] === true;
}

/**
 * Ends the recovery, unless another comparison that belongs to it still runs, or one of another account is still to come:
 * `run` is the caller's own, and ends none that began after it. What was kept back is due at once. False: it goes on.
 */
export async function endRecovery(
  db: Queryable,
  run: { readonly provider: string; readonly id: string; readonly account: string },
): Promise<boolean> {
  const ended = await db<Row[]>`
    with ended as (
      update installation i set recovering_since = null
        from reconciliation_runs own
       where own.provider = ${run.provider} and own.id = ${run.id} and own.started_at >= i.recovering_since
         and not exists (select from reconciliation_runs r
                          where r.state = 'running' and r.trigger = 'recover' and r.id <> own.id
                            and r.started_at >= i.recovering_since)
         and not exists (${uncomparedAccounts(db, run.account)})
      returning i.singleton
    ), ${releasedWith(db)}
    select singleton from ended`;
  return ended.length === 1;
}

/** Whether a recovery of the run's account has ended within that time; few runs are kept. */
export async function hasJustRecovered(
  db: Queryable,
  run: { readonly provider: string; readonly account: string },
  withinMs: number,
): Promise<boolean> {
  const [row] = await db<Row[]>`
    select exists (select from reconciliation_runs
                    where provider = ${run.provider} and account = ${run.account} and trigger = 'recover'
                      and state = 'completed'
                      and finished_at > now() - ${withinMs}::float8 * interval '1 millisecond') as recovered`;
  return row?.["recovered"] === true;
}

/** A person says that it is over: comparisons of the recovery end with that reason. False: none was under way. */
export async function endRecoveryByHand(db: Queryable, reason: string): Promise<boolean> {
  const ended = await db<Row[]>`
    with stopped as (
      update reconciliation_runs set state = 'failed', error = ${`ended by hand: ${reason}`}, finished_at = now()
       where state = 'running' and trigger = 'recover'
    ), ended as (
      update installation set recovering_since = null where recovering_since is not null
      returning singleton
    ), ${releasedWith(db)}
    select singleton from ended`;
  return ended.length === 1;
}

/** What was kept back is due in the commit that ends the recovery. */
function releasedWith(db: Queryable) {
  return db`released as (
      update attempts a set due_at = now() from ended
       where a.due_at > now() and a.wait_reason = 'recovering'
         and (a.lease_expires_at is null or a.lease_expires_at <= now())
    )`;
}

/**
 * The latest time before `before` of which the data still tells: what was lost was written after it, since commits are
 * lost from the end. From the newest payment of each tenant, by its id, and the newest comparison.
 */
export async function readNewestTrace(
  db: Queryable,
  before: Date,
): Promise<{ readonly paymentId: string | null; readonly at: Date }> {
  const [row] = await db<Row[]>`
    select i.created_at,
           (select max(started_at) from reconciliation_runs
             where started_at < ${before.toISOString()}::timestamptz) as compared_at,
           (select max(newest.id) from tenants t
             cross join lateral (select p.id from payments p
                                  where p.tenant_id = t.id and p.id < ${firstIdAt("pay", before)}
                                  order by p.id desc limit 1) as newest) as payment_id
      from installation i`;
  if (row === undefined) throw new Error("the installation row is missing");
  const times = [row["created_at"], row["compared_at"]].flatMap((at) =>
    at === null ? [] : [requiredDate(at)],
  );
  return {
    paymentId: textOrNull(row["payment_id"]),
    at: new Date(Math.max(...times.map((at) => at.getTime()))),
  };
}
