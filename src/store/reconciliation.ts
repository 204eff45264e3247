import {
  type Difference,
  distinct,
  type FindingKind,
  type FindingState,
  type Side,
} from "../domain/finding.js";
import type { Queryable } from "./db.js";
import { dateOrNull, jsonOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

/** Who asked for a comparison; one of a recovery also takes in what is missing here. */
export type RunTrigger = "worker" | "command" | "recover";

export interface NewRun {
  readonly provider: string;
  readonly id: string;
  readonly account: string;
  readonly trigger: RunTrigger;
  readonly windowFrom: Date;
  readonly windowTo: Date;
  readonly phase: string;
}

export interface Run extends NewRun {
  readonly state: "running" | "completed" | "failed";
  /** The operation's own text: where in the phase it is. */
  readonly cursor: string | null;
  /** Steps committed so far: what the next one's commit names. */
  readonly pages: number;
  readonly objects: number;
  readonly repaired: number;
  readonly error: string | null;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
}

/** A run in the hands of one owner until its lease ends. */
export interface ClaimedRun extends Run {
  readonly owner: string;
  /** The database's time of the claim: what is read at the provider from now on is read after it. */
  readonly claimedAt: Date;
}

/** False: a run of this name was started before, by whomever. */
export async function insertRun(db: Queryable, run: NewRun): Promise<boolean> {
  const inserted = await db<Row[]>`
    insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, phase)
    values (${run.provider}, ${run.id}, ${run.account}, ${run.trigger}, ${run.windowFrom.toISOString()},
            ${run.windowTo.toISOString()}, ${run.phase})
    on conflict do nothing
    returning id`;
  return inserted.length === 1;
}

/**
 * Begins the comparison of the present stretch of time, once whoever asks; none while an earlier one runs, nor where
 * everything is younger than the lag. It reaches back to the end of the last one that was completed, however long ago
 * that was. False: nothing was begun.
 */
export async function startDueRun(
  db: Queryable,
  due: {
    readonly provider: string;
    readonly account: string;
    readonly everyMs: number;
    readonly windowMs: number;
    readonly lagMs: number;
    readonly phase: string;
  },
): Promise<boolean> {
  const { provider, account } = due;
  const started = await db<Row[]>`
    with stretch as (
      select floor(extract(epoch from now()) * 1000 / ${due.everyMs}::float8)::bigint as number,
             now() - ${due.lagMs}::float8 * interval '1 millisecond' as ends
    )
    insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, phase)
    select ${provider}, 'rec_' || ${account} || '_' || s.number, ${account}, 'worker',
           least(s.ends - ${due.windowMs}::float8 * interval '1 millisecond',
                 (select max(window_to) from reconciliation_runs where state = 'completed' and trigger = 'worker'
                     and provider = ${provider} and account = ${account})), s.ends, ${due.phase}
      from stretch s
     where exists (select from installation where created_at < s.ends)
       and not exists (select from reconciliation_runs where state = 'running' and provider = ${provider}
                          and account = ${account} and trigger = 'worker')
    on conflict do nothing
    returning id`;
  return started.length === 1;
}

/**
 * Takes a running comparison that nobody holds, or goes on with the one that this owner holds; the one that is named, or
 * that of a recovery, or the oldest of a worker, and last what a command left: years may be in its window. Null: there is
 * none, or somebody else is at it.
 */
export async function claimRun(
  db: Queryable,
  request: {
    readonly provider: string;
    readonly account: string;
    readonly owner: string;
    readonly leaseMs: number;
    readonly id: string | null;
  },
): Promise<ClaimedRun | null> {
  const [row] = await db<Row[]>`
    with next as (
      select provider, id from reconciliation_runs
       where state = 'running' and provider = ${request.provider} and account = ${request.account}
         and (lease_expires_at is null or lease_expires_at <= now() or lease_owner = ${request.owner})
         ${request.id === null ? db`` : db`and id = ${request.id}`}
       order by trigger = 'command', trigger = 'worker', started_at limit 1 for update skip locked
    )
    update reconciliation_runs r
       set lease_owner = ${request.owner},
           lease_expires_at = now() + ${request.leaseMs}::float8 * interval '1 millisecond'
      from next where r.provider = next.provider and r.id = next.id
    returning r.*, now() as claimed_at`;
  if (row === undefined) return null;
  return { ...runOf(row), owner: request.owner, claimedAt: requiredDate(row["claimed_at"]) };
}

/** Says that the owner goes on with the step that it began. False: the run was taken over, or has ended. */
export async function renewRun(db: Queryable, run: ClaimedRun, leaseMs: number): Promise<boolean> {
  const renewed = await db<Row[]>`
    update reconciliation_runs set lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
     where provider = ${run.provider} and id = ${run.id} and state = 'running' and lease_owner = ${run.owner}
       and pages = ${run.pages}
    returning id`;
  return renewed.length === 1;
}

/** What one step of a run brought. */
export interface RunStep {
  readonly phase: string;
  readonly cursor: string | null;
  readonly state: Run["state"];
  readonly objects: number;
  /** Null: nothing stands in the way. */
  readonly error: string | null;
  readonly leaseMs: number;
  readonly findings: readonly FoundDifference[];
}

export interface FoundDifference extends Omit<Difference, "repair"> {
  readonly state: FindingState;
}

/**
 * Commits a step: its findings and the cursor behind it, in one statement, under the lease and the step that it was
 * made from. A finding that was closed is opened again, save one that a person has accepted as just that; it keeps since
 * when it was seen. False: the run was taken over or has ended, nothing is written, and this owner must leave it alone.
 */
export async function commitStep(db: Queryable, run: ClaimedRun, step: RunStep): Promise<boolean> {
  const rows = distinct(step.findings).map((finding) => ({
    kind: finding.kind,
    object_id: finding.objectId,
    tenant_id: finding.tenantId,
    payment_id: finding.paymentId,
    state: finding.state,
    ours: finding.ours,
    theirs: finding.theirs,
    detail: finding.detail,
  }));
  const repaired = rows.filter(({ state }) => state === "repaired").length;
  const held = await db<Row[]>`
    with held as (
      update reconciliation_runs
         set phase = ${step.phase}, cursor = ${step.cursor}, state = ${step.state}, pages = pages + 1,
             objects = objects + ${step.objects}, repaired = repaired + ${repaired}, error = ${step.error},
             lease_expires_at = now() + ${step.leaseMs}::float8 * interval '1 millisecond',
             finished_at = case when ${step.state} = 'running' then null else now() end
       where provider = ${run.provider} and id = ${run.id} and state = 'running'
         and lease_owner = ${run.owner} and pages = ${run.pages}
      returning provider, id
    ), found as (
      insert into reconciliation_findings (provider, kind, object_id, tenant_id, payment_id, state, ours, theirs,
        detail, first_run, last_run, closed_at)
      select h.provider, f.kind, f.object_id, f.tenant_id, f.payment_id, f.state, f.ours, f.theirs, f.detail, h.id,
             h.id, case when f.state <> 'open' then now() end
        from held h, json_to_recordset(${JSON.stringify(rows)}::text::json) as f(kind text, object_id text,
             tenant_id text, payment_id text, state finding_state, ours json, theirs json, detail text)
       order by f.kind, f.object_id
      on conflict (provider, kind, object_id) do update
        set state = case when ${isStillAccepted(db)} then 'accepted' else excluded.state end,
            ours = excluded.ours, theirs = excluded.theirs, detail = excluded.detail,
            tenant_id = excluded.tenant_id, payment_id = excluded.payment_id, last_run = excluded.last_run,
            last_seen_at = now(),
            closed_at = case when ${isStillAccepted(db)} then reconciliation_findings.closed_at
                             else excluded.closed_at end
    )
    select id from held`;
  return held.length === 1;
}

/** A person has accepted the very difference that is found again. */
function isStillAccepted(db: Queryable) {
  return db`reconciliation_findings.state = 'accepted' and excluded.state in ('open', 'accepted')
            and reconciliation_findings.ours::jsonb is not distinct from excluded.ours::jsonb
            and reconciliation_findings.theirs::jsonb is not distinct from excluded.theirs::jsonb`;
}

export async function readRun(db: Queryable, provider: string, id: string): Promise<Run | null> {
  const [row] = await db<Row[]>`
    select * from reconciliation_runs where provider = ${provider} and id = ${id}`;
  return row === undefined ? null : runOf(row);
}

/** The running comparisons of an account, oldest first: few, and all in a partial index. */
export async function listRunning(db: Queryable, provider: string, account: string): Promise<Run[]> {
  const rows = await db<Row[]>`
    select * from reconciliation_runs
     where state = 'running' and provider = ${provider} and account = ${account} order by started_at`;
  return rows.map(runOf);
}

/** A difference as it stands. */
export interface Finding {
  readonly kind: FindingKind;
  readonly objectId: string;
  readonly tenantId: string | null;
  readonly paymentId: string | null;
  readonly state: FindingState;
  readonly ours: Side | null;
  readonly theirs: Side | null;
  readonly detail: string;
  readonly firstRun: string;
  readonly lastRun: string;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly closedAt: Date | null;
  /** A person's word, as it was last given: where the finding is open, it has come to differ otherwise since. */
  readonly accepted: { readonly reason: string; readonly by: string; readonly at: Date } | null;
}

/**
 * Open ones, those first that were looked at longest ago; with `unseen`, only what was last seen before that time, and by
 * a run of that account: another account's objects cannot be looked at with this one's credential.
 */
export async function listOpenFindings(
  db: Queryable,
  provider: string,
  wanted: {
    readonly unseen: { readonly before: Date; readonly account: string } | null;
    readonly limit: number;
  },
): Promise<Finding[]> {
  const { unseen } = wanted;
  const rows = await db<Row[]>`
    select * from reconciliation_findings f
     where state = 'open' and provider = ${provider}
       ${
         unseen === null
           ? db``
           : db`and last_seen_at < ${unseen.before.toISOString()}
                and coalesce((select r.account from reconciliation_runs r
                               where r.provider = f.provider and r.id = f.last_run), ${unseen.account})
                    = ${unseen.account}`
       }
     order by last_seen_at, kind, object_id limit ${wanted.limit}`;
  return rows.map(findingOf);
}

/** What names a finding among its provider's. */
export type FindingName = Pick<Finding, "kind" | "objectId">;

/** Deletes ended runs and closed findings that are older than that, at most `limit` of each. */
export async function purgeReconciliation(db: Queryable, ageMs: number, limit: number): Promise<number> {
  const [purged] = await db<Row[]>`
    with ended as materialized (
      select provider, id from reconciliation_runs
       where state <> 'running' and finished_at < now() - ${ageMs}::float8 * interval '1 millisecond'
       limit ${limit} for update skip locked
    ), old_runs as (
      delete from reconciliation_runs r using ended o
       where r.provider = o.provider and r.id = o.id
      returning r.id
    ), closed as materialized (
      select provider, kind, object_id from reconciliation_findings
       where state <> 'open'
         and greatest(closed_at, last_seen_at) < now() - ${ageMs}::float8 * interval '1 millisecond'
       limit ${limit} for update skip locked
    ), old_findings as (
      delete from reconciliation_findings f using closed o
       where f.provider = o.provider and f.kind = o.kind and f.object_id = o.object_id
      returning f.object_id
    )
    select (select count(*) from old_runs)::int + (select count(*) from old_findings)::int as rows`;
  return Number(purged?.["rows"] ?? 0);
}

function runOf(row: Row): Run {
  return {
    provider: row["provider"] as string,
    id: row["id"] as string,
    account: row["account"] as string,
    trigger: row["trigger"] as RunTrigger,
    windowFrom: requiredDate(row["window_from"]),
    windowTo: requiredDate(row["window_to"]),
    state: row["state"] as Run["state"],
    phase: row["phase"] as string,
    cursor: textOrNull(row["cursor"]),
    pages: Number(row["pages"]),
    objects: Number(row["objects"]),
    repaired: Number(row["repaired"]),
    error: textOrNull(row["error"]),
    startedAt: requiredDate(row["started_at"]),
    finishedAt: dateOrNull(row["finished_at"]),
  };
}

export function findingOf(row: Row): Finding {
  const acceptedAt = dateOrNull(row["accepted_at"]);
  return {
    kind: row["kind"] as FindingKind,
    objectId: row["object_id"] as string,
    tenantId: textOrNull(row["tenant_id"]),
    paymentId: textOrNull(row["payment_id"]),
    state: row["state"] as FindingState,
    ours: jsonOrNull<Side>(row["ours"]),
    theirs: jsonOrNull<Side>(row["theirs"]),
    detail: row["detail"] as string,
    firstRun: row["first_run"] as string,
    lastRun: row["last_run"] as string,
    firstSeenAt: requiredDate(row["first_seen_at"]),
    lastSeenAt: requiredDate(row["last_seen_at"]),
    closedAt: dateOrNull(row["closed_at"]),
    accepted:
      acceptedAt === null
        ? null
        : {
            reason: row["accepted_reason"] as string,
            by: row["accepted_by"] as string,
            at: acceptedAt,
          },
  };
}
