import { EPOCH_MS, really } from "./host.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import type { WorkerName } from "./simulated-process.js";
import type { Surroundings } from "./surroundings.js";

/** A worker that found nothing to do looks again no sooner than this. */
const LEAST_PAUSE_MS = 150;
const JITTER_MS = 40;
const NO_PROCESS_MS = 1_000;
/** With a provider that answers: many times what carrying out a decision takes. */
const CARRIED_OUT_IN_MS = 3 * 3_600_000;
/** How often a recovery that nobody has begun to work on is looked for. */
const RECOVERY_LOOKS_MS = 30_000;

interface DueTimes {
  readonly attempts: string | null;
  readonly events: string | null;
  readonly deliveries: string | null;
  readonly unrelayed: string | null;
  readonly uncounted: string | null;
  readonly overdrawn: string | null;
  readonly comparing: string | null;
  readonly recovering: string | null;
  readonly undecided: string | null;
  readonly neglected: string | null;
}

/**
 * In place of the workers' intervals: a worker looks, in some process, when there is something for it to find. A worker
 * that looked every half second for simulated days would find nothing else, only slower.
 */
export class Polling {
  readonly #world: Surroundings;
  readonly #database: SimulatedDatabase;
  readonly #planned = new Map<WorkerName, number>();
  readonly #lastAt = new Map<WorkerName, number>();
  /** Something was written since the due times were last looked at. */
  #stale = true;

  constructor(world: Surroundings, database: SimulatedDatabase) {
    this.#world = world;
    this.#database = database;
  }

  wrote(): void {
    this.#stale = true;
  }

  wake(worker: WorkerName, inMs: number): void {
    const { scheduler, random } = this.#world;
    const soonest = (this.#lastAt.get(worker) ?? -LEAST_PAUSE_MS) + LEAST_PAUSE_MS;
    const atMs = Math.max(scheduler.nowMs + inMs, inMs > 0 ? soonest : 0) + random.world.whole(1, JITTER_MS);
    if ((this.#planned.get(worker) ?? Infinity) <= atMs) return;
    this.#planned.set(worker, atMs);
    scheduler.plan(atMs - scheduler.nowMs, null, () => {
      // Another look, sooner than this one, has been planned since.
      if (this.#planned.get(worker) !== atMs) return;
      this.#planned.delete(worker);
      this.#poll(worker);
    });
  }

  /** Once, however often it is woken otherwise. */
  wakeOnce(worker: WorkerName, inMs: number): void {
    this.#world.scheduler.plan(inMs, null, () => this.#poll(worker));
  }

  #poll(worker: WorkerName): void {
    const { scheduler, random } = this.#world;
    const process = this.#world.anyProcess();
    if (process === null || process.frozenUntilMs > scheduler.nowMs) {
      const nightMs = this.#world.nightUntilMs - scheduler.nowMs;
      return this.wake(worker, Math.max(NO_PROCESS_MS, nightMs));
    }
    this.#lastAt.set(worker, scheduler.nowMs);
    const isReconciler = worker === "attempts" && random.world.chance(0.15);
    process.poll(isReconciler ? "reconciler" : worker);
  }

  /** Plans a look for whatever is due next. To be called when nothing else is about to happen. */
  async look(): Promise<void> {
    if (!this.#stale) return;
    this.#stale = false;
    const { sql } = this.#database;
    const { account, accountSinceMs, scheduler } = this.#world;
    const patienceMs = scheduler.nowMs - CARRIED_OUT_IN_MS;
    const isPatient = !this.#world.isCalm || patienceMs < accountSinceMs;
    const patience = new Date(EPOCH_MS + patienceMs).toISOString();
    // What a person must decide is asked about for ever; alone, it keeps nothing going.
    const [due] = await really(
      () => sql<DueTimes[]>`
      select (select min(a.due_at) from attempts a
               where ${this.#world.isCalm} = false or coalesce(a.provider_account, ${account}) = ${account}
                 and (a.instruction is not null or not exists (
                 select from reviews r where r.tenant_id = a.tenant_id and r.payment_id = a.payment_id
                    and r.attempt_id = a.id and r.closed_at is null
                 union all
                 select from refunds f where f.tenant_id = a.tenant_id and f.id = a.refund_id
                    and f.status = 'needs_review'))) as attempts,
             (select min(due_at) from provider_events) as events,
             (select min(due_at) from deliveries) as deliveries,
             (select min(created_at) from outbox where relayed_at is null) as unrelayed,
             (select 'now' from ledger_uncounted limit 1) as uncounted,
             (select 'now' from reconciliation_runs where state = 'running' and account = ${account}
               limit 1) as comparing,
             (select 'now' from installation where recovering_since is not null) as recovering,
             (select string_agg(id, ',' order by opened_at, id) from reviews
               where closed_at is null and resolution is null) as undecided,
             (select min(r.id) from reviews r join attempts a on a.tenant_id = r.tenant_id and a.id = r.attempt_id
               where ${isPatient} = false and r.closed_at is null and a.provider_account = ${account}
                 and r.resolved_at < ${patience}::text::timestamptz) as neglected,
             (select min(p.id) from payments p
               where p.refund_reserved > p.amount_captured and not exists (
                 select from refunds r where r.payment_id = p.id and r.external)) as overdrawn`,
    );
    if (due === undefined) throw new Error("no row");
    if (due.neglected !== null) this.#world.fault(`${due.neglected} was decided, and nobody carries it out`);
    if (due.overdrawn !== null) this.#world.fault(`${due.overdrawn} promises to give back more than it took`);
    this.#at("attempts", due.attempts);
    this.#at("provider-events", due.events);
    this.#at("webhooks", due.deliveries);
    this.#at("relay", due.unrelayed);
    if (due.comparing !== null) this.wake("comparison", 2_000);
    else if (due.recovering !== null) this.wake("comparison", RECOVERY_LOOKS_MS);
    if (due.undecided !== null) this.#world.people.expect(due.undecided.split(","));
    if (due.uncounted !== null) this.wake("ledger", 1_000);
  }

  #at(worker: WorkerName, due: string | null): void {
    if (due === null) return;
    // Never 0, so that a look which found nothing is not repeated at once.
    this.wake(worker, Math.max(1, Date.parse(due) - EPOCH_MS - this.#world.scheduler.nowMs));
  }
}
