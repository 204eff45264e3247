import type { Queryable } from "./db.js";
import { dateOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export type ProviderEventState = "pending" | "applied" | "parked";

export interface NewProviderEvent {
  readonly provider: string;
  readonly eventId: string;
  readonly type: string;
  readonly livemode: boolean;
  readonly objectId: string;
  /** The raw body, byte for byte. */
  readonly payload: string;
}

/** Names a row of the inbox. */
export type EventName = Pick<NewProviderEvent, "provider" | "eventId">;

export interface ClaimedEvent extends NewProviderEvent {
  /** This one included. */
  readonly tries: number;
  readonly receivedAt: Date;
  /** What the last try came to; null: there was none. */
  readonly outcome: string | null;
  /** The database's time of the claim: what is read at the provider now is read after it. */
  readonly claimedAt: Date;
}

/** False: an event of this id is stored already, whatever became of it. */
export async function insertProviderEvent(db: Queryable, event: NewProviderEvent): Promise<boolean> {
  const inserted = await db<Row[]>`
    insert into provider_events (provider, event_id, type, livemode, object_id, payload)
    values (${event.provider}, ${event.eventId}, ${event.type}, ${event.livemode}, ${event.objectId}, ${event.payload})
    on conflict do nothing
    returning event_id`;
  return inserted.length === 1;
}

/** Claims due events of a provider. `due_at`, pushed forward, is the lease: a worker that dies is followed after it. */
export async function claimProviderEvents(
  db: Queryable,
  request: { readonly provider: string; readonly limit: number; readonly leaseMs: number },
): Promise<ClaimedEvent[]> {
  const rows = await db<Row[]>`
    with due as (
      select provider, event_id from provider_events
       where due_at <= now() and provider = ${request.provider}
       order by due_at limit ${request.limit}
       for update skip locked
    )
    update provider_events e
       set tries = e.tries + 1, due_at = now() + ${request.leaseMs}::float8 * interval '1 millisecond'
      from due
     where e.provider = due.provider and e.event_id = due.event_id
    returning e.*, now() as claimed_at`;
  return rows.map((row) => ({
    provider: row["provider"] as string,
    eventId: row["event_id"] as string,
    type: row["type"] as string,
    livemode: row["livemode"] as boolean,
    objectId: row["object_id"] as string,
    payload: row["payload"] as string,
    tries: Number(row["tries"]),
    receivedAt: requiredDate(row["received_at"]),
    outcome: textOrNull(row["outcome"]),
    claimedAt: requiredDate(row["claimed_at"]),
  }));
}

/**
 * There is news of this attempt: it is due now, or as soon as its lease is given back where somebody is driving it, so
 * that what was read before the news does not stand. Writes nothing about an outcome, and ends the event in the same
 * statement. False: nothing is written, because somebody holds the attempt's row just now.
 */
export async function nudgeAttempt(
  db: Queryable,
  event: EventName,
  attempt: { readonly tenantId: string; readonly id: string },
): Promise<boolean> {
  const nudged = await db<Row[]>`
    with free as (
      select tenant_id, id from attempts
       where tenant_id = ${attempt.tenantId} and id = ${attempt.id}
       for update skip locked
    ), nudged as (
      update attempts a
         set nudged = true,
             due_at = case when a.lease_expires_at > now() then a.due_at
                           else least(coalesce(a.due_at, now()), now()) end
        from free where a.tenant_id = free.tenant_id and a.id = free.id
      returning a.id
    ), applied as (
      update provider_events set state = 'applied', due_at = null, applied_at = now(), outcome = 'nudged'
       where provider = ${event.provider} and event_id = ${event.eventId} and state <> 'applied'
         and exists (select from nudged)
    )
    select id from nudged`;
  return nudged.length === 1;
}

/** Ends an event that has no effect. False: it was applied before, by another worker whose lease ran into this one. */
export async function markEventApplied(db: Queryable, event: EventName, outcome: string): Promise<boolean> {
  const applied = await db<Row[]>`
    update provider_events set state = 'applied', due_at = null, applied_at = now(), outcome = ${outcome}
     where provider = ${event.provider} and event_id = ${event.eventId} and state <> 'applied'
    returning event_id`;
  return applied.length === 1;
}

/** What proves to be about somebody else's object is not kept: the inbox grows by what is ours alone. */
export async function discardEvent(db: Queryable, event: EventName): Promise<void> {
  await db`delete from provider_events
            where provider = ${event.provider} and event_id = ${event.eventId} and state <> 'applied'`;
}

/** Due again in `ms`; `uncounted` takes the try back. False: somebody has claimed or applied it since, and it is theirs. */
export async function deferEvent(
  db: Queryable,
  event: ClaimedEvent,
  wait: { readonly ms: number; readonly outcome: string; readonly uncounted: boolean },
): Promise<boolean> {
  const deferred = await db<Row[]>`
    update provider_events
       set due_at = now() + ${wait.ms}::float8 * interval '1 millisecond', outcome = ${wait.outcome},
           tries = tries - ${wait.uncounted ? 1 : 0}::int
     where provider = ${event.provider} and event_id = ${event.eventId} and state = 'pending'
       and tries = ${event.tries}
    returning event_id`;
  return deferred.length === 1;
}

/** Out of the worker's way until a person replays it. False: somebody has claimed or applied it since. */
export async function parkEvent(db: Queryable, event: ClaimedEvent, outcome: string): Promise<boolean> {
  const parked = await db<Row[]>`
    update provider_events set state = 'parked', due_at = null, outcome = ${outcome}
     where provider = ${event.provider} and event_id = ${event.eventId} and state = 'pending'
       and tries = ${event.tries}
    returning event_id`;
  return parked.length === 1;
}

/** Makes parked events due, with all their tries before them; one, or all where none is named. Yields how many. */
export async function replayParkedEvents(db: Queryable, eventId: string | null): Promise<number> {
  const replayed = await db<Row[]>`
    update provider_events set state = 'pending', tries = 0, due_at = now()
     where state = 'parked' ${eventId === null ? db`` : db`and event_id = ${eventId}`}
    returning event_id`;
  return replayed.length;
}

/** An event without its payload, which may name a customer. */
export interface ListedEvent extends Omit<NewProviderEvent, "payload"> {
  readonly state: ProviderEventState;
  readonly tries: number;
  readonly dueAt: Date | null;
  readonly outcome: string | null;
  readonly receivedAt: Date;
}

/** What is not applied, oldest first; with `parkedOnly`, what waits for a person. */
export async function listUnappliedEvents(
  db: Queryable,
  wanted: { readonly parkedOnly: boolean; readonly limit: number },
): Promise<ListedEvent[]> {
  // Each branch has a partial index of its own: the applied ones, which are many, are never looked at.
  const pending = db`union all select * from provider_events where due_at is not null`;
  const rows = await db<Row[]>`
    select provider, event_id, type, livemode, object_id, state, tries, due_at, outcome, received_at
      from (select * from provider_events where state = 'parked' ${wanted.parkedOnly ? db`` : pending}) as unapplied
     order by received_at, event_id limit ${wanted.limit}`;
  return rows.map((row) => ({
    provider: row["provider"] as string,
    eventId: row["event_id"] as string,
    type: row["type"] as string,
    livemode: row["livemode"] as boolean,
    objectId: row["object_id"] as string,
    state: row["state"] as ProviderEventState,
    tries: Number(row["tries"]),
    dueAt: dateOrNull(row["due_at"]),
    outcome: textOrNull(row["outcome"]),
    receivedAt: requiredDate(row["received_at"]),
  }));
}

/** Deletes at most `limit` events that were applied longer ago than `retentionMs`. Parked and pending ones stay. */
export async function purgeAppliedEvents(db: Queryable, retentionMs: number, limit: number): Promise<number> {
  const purged = await db<Row[]>`
    with old as materialized (
      select provider, event_id from provider_events
       where state = 'applied' and applied_at < now() - ${retentionMs}::float8 * interval '1 millisecond'
       order by applied_at limit ${limit} for update skip locked
    )
    delete from provider_events e using old
     where e.provider = old.provider and e.event_id = old.event_id
    returning e.event_id`;
  return purged.length;
}
