import { beginRecoverySince } from "../../src/operations/recover.js";
import { EPOCH_MS, really } from "./host.js";
import { type Loss, readLoss } from "./loss.js";
import type { Random } from "./random.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import type { Surroundings } from "./surroundings.js";

/** What tells that rows are older than what was sent; `asked_for`: nothing does, and a person knows. */
export const MOVES = ["cluster_changed", "database_restored", "timeline_changed", "asked_for"] as const;
export type Move = (typeof MOVES)[number];

export interface RestorePlan {
  /** Of when the rows are that are put back, and when. */
  readonly keptAtMs: number;
  /** Right behind the next such statement after that: with what it wrote, and nothing that followed. Null: any moment. */
  readonly keptBehind: string | null;
  readonly atMs: number;
  readonly move: Move;
  /** Processes go on over it, as over a failover; otherwise they are stopped before. */
  readonly processesLive: boolean;
  /** Until a person says `pawl recover`. */
  readonly personAfterMs: number;
  /** How much earlier than needed the person lets it begin. */
  readonly marginMs: number;
}

export function drawRestore(random: Random, stormMs: number): RestorePlan | null {
  if (!random.chance(0.3)) return null;
  const move = random.pick(MOVES);
  const isFailover = move === "timeline_changed";
  // Most of what clients want happens in the first minutes.
  const atMs = random.duration(15_000, stormMs);
  // A replica is behind by little, a backup may be from long before.
  const isClose = isFailover && random.chance(0.6);
  const ageMs = isClose ? random.duration(50, 30_000) : random.whole(1_000, atMs);
  return {
    keptBehind: random.pick([null, "acceptPayments", "acceptEffect", "claimAttempts", "advanceAttempts"]),
    keptAtMs: Math.max(2_000, atMs - ageMs),
    atMs,
    move,
    processesLive: random.chance(isFailover ? 0.6 : 0.25) && move !== "asked_for",
    personAfterMs: random.duration(1_000, 600_000),
    marginMs: random.pick([0, 60_000, 3_600_000]),
  };
}

const OPERATOR_LOOKS_MS = 120_000;
/** Statements that begin or end a recovery. */
const RECOVERY_WRITES: ReadonlySet<string> = new Set(["beginRecovery", "endRecovery", "endRecoveryByHand"]);

/** An older state of the database is put back, and the people and processes that recover from that. */
export class Restore {
  loss: Loss | null = null;
  /** Since when all processes may only ask, by the installation's row; null: they may send. */
  recoveringSinceMs: number | null = null;
  readonly #plan: RestorePlan;
  readonly #world: Surroundings;
  readonly #database: SimulatedDatabase;
  #isBegun = false;
  /** What the rows are kept behind of; null: they are not waited for. */
  #awaited: string | null = null;
  #keptAtMs: number;

  constructor(plan: RestorePlan, world: Surroundings, database: SimulatedDatabase) {
    this.#plan = plan;
    this.#world = world;
    this.#database = database;
    this.#keptAtMs = plan.keptAtMs;
  }

  begin(): void {
    const { scheduler } = this.#world;
    const { keptAtMs, keptBehind, atMs } = this.#plan;
    scheduler.plan(keptAtMs, null, async () => {
      if (keptBehind === null) await this.#keep();
      else this.#awaited = keptBehind;
    });
    scheduler.plan(atMs, null, () => this.#putBack());
  }

  /** A statement of this function of the store has just been executed. */
  async executed(what: string): Promise<void> {
    if (what === this.#awaited) await this.#keep();
    if (RECOVERY_WRITES.has(what)) await this.#recoveryWritten();
  }

  async #keep(): Promise<void> {
    this.#awaited = null;
    const { scheduler } = this.#world;
    this.#keptAtMs = scheduler.nowMs;
    scheduler.tell("the rows are kept as they are now");
    await this.#database.keep();
  }

  /** Since when nothing may be sent: from the move on where it can be seen; null: everything may. */
  get heldBackSinceMs(): number | null {
    if (this.recoveringSinceMs === null && this.#isBegun) return null;
    return this.#plan.move === "asked_for" ? this.recoveringSinceMs : (this.loss?.restoredAtMs ?? null);
  }

  /** Where nothing tells of the move, no process is started before a person has said that it has happened. */
  get mayStart(): boolean {
    return this.loss === null || this.#plan.move !== "asked_for" || this.#isBegun;
  }

  /** There may be something to see in where the database is, or a recovery is under way. */
  get isMoving(): boolean {
    return this.recoveringSinceMs !== null || (this.loss !== null && !this.#isBegun);
  }

  async #recoveryWritten(): Promise<void> {
    const [row] = await really(
      () =>
        this.#database.sql<{ since: string | null }[]>`select recovering_since as since from installation`,
    );
    const { since = null } = row ?? {};
    const before = this.recoveringSinceMs;
    if (since !== null) this.#isBegun = true;
    if (since === null) this.recoveringSinceMs = null;
    else this.recoveringSinceMs ??= this.#world.scheduler.nowMs;
    if (before === null || since !== null) return;
    this.#world.scheduler.tell("the recovery has ended");
    for (const fault of await this.#notTakenIn(before)) this.#world.fault(fault);
  }

  /** Money that moved under our marks before the recovery began is on a row of ours when it has ended, whoever asks for it again. */
  async #notTakenIn(beganAtMs: number): Promise<string[]> {
    const { sql } = this.#database;
    const { model } = this.#world;
    const charges = await really(
      () => sql<{ id: string }[]>`
        select provider_payment_id as id from attempts where kind = 'charge' and provider_payment_id is not null`,
    );
    const refunds = await really(
      () => sql<{ attempt_id: string; id: string | null }[]>`
        select attempt_id, provider_refund_id as id from refunds`,
    );
    const known = new Set(charges.map(({ id }) => id));
    const paid = [...model.intents.values()].filter(
      ({ id, paidAtMs, captured, capturable }) =>
        captured + capturable > 0 && (paidAtMs ?? Infinity) < beganAtMs && !known.has(id),
    );
    const given = [...model.refunds.values()].filter(
      ({ id, attemptId, createdAtMs, status }) =>
        attemptId !== null &&
        createdAtMs < beganAtMs &&
        status !== "failed" &&
        !refunds.some((row) => row.id === id || row.attempt_id === attemptId),
    );
    return [...paid, ...given].map(({ id }) => `${id} moved money, and the recovery has not taken it in`);
  }

  async #putBack(): Promise<void> {
    const { move, processesLive, personAfterMs } = this.#plan;
    const { scheduler, merchants, polling } = this.#world;
    if (this.#awaited !== null) await this.#keep();
    const keptAtMs = this.#keptAtMs;
    const how = processesLive ? "under living processes" : "while no process lives";
    scheduler.tell(`the rows of ${keptAtMs} ms are put back (${move}) ${how}`);
    if (!processesLive) this.#world.killAll();
    const { sql } = this.#database;
    this.loss = await readLoss(sql, { keptAtMs, restoredAtMs: scheduler.nowMs });
    await this.#database.putBack();
    await really(() => sql.unsafe(MOVED[move]));
    merchants.forget(this.loss);
    polling.wrote();
    this.#world.watchDatabases();
    if (move !== "timeline_changed") scheduler.plan(personAfterMs, null, () => this.#operate());
    scheduler.plan(this.#world.random.world.duration(1_000, 1_200_000), "clients ask again", () =>
      merchants.askAgain(),
    );
  }

  /** The person at the command line comes again until it is over. */
  async #operate(): Promise<void> {
    const { scheduler } = this.#world;
    if (this.#isBegun && this.recoveringSinceMs === null) return;
    const running = await really(
      () =>
        this.#database.sql`select from reconciliation_runs where state = 'running' and trigger = 'recover'`,
    );
    if (running.length === 0) this.#recover(this.#keptAtMs - this.#plan.marginMs);
    scheduler.plan(OPERATOR_LOOKS_MS, null, () => this.#operate());
  }

  /** As `pawl recover --since` does it; the worker of any process goes on with it. */
  #recover(sinceMs: number): void {
    const since = new Date(EPOCH_MS + sinceMs);
    this.#world.asOperator("pawl recover", async (deps) => {
      const account = await deps.comparison.accountOrThrow();
      await beginRecoverySince(deps, account, since);
    });
  }
}

/** What the database tells of itself is another thing than the row says. */
const MOVED: Readonly<Record<Move, string>> = {
  cluster_changed: `update installation set system_identifier =
    'elsewhere/' || coalesce(split_part(system_identifier, '/', 2), '0.0')`,
  database_restored: `update installation set system_identifier =
    coalesce(split_part(system_identifier, '/', 1), '-') || '/0.0'`,
  timeline_changed: `update installation set cluster_timeline = 0, system_identifier = coalesce(system_identifier,
    '-/' || (select oid::text from pg_database where datname = current_database()) || '.' ||
    'public.installation'::regclass::oid::text)`,
  asked_for: "select 1",
};
