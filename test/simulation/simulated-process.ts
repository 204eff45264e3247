import { readConfig, type Settings } from "../../src/config.js";
import { PawlError } from "../../src/domain/errors.js";
import type { WebhookSender } from "../../src/domain/webhook.js";
import type { Clock } from "../../src/lib/clock.js";
import { createLogger, type Logger } from "../../src/lib/log.js";
import { createAccepter } from "../../src/operations/accept-batch.js";
import { createAdvanceBatch } from "../../src/operations/advance-batch.js";
import { askOnlyWhile } from "../../src/operations/ask-only.js";
import { OutcomeHub } from "../../src/operations/await-outcome.js";
import { AttemptPool } from "../../src/operations/claim-attempts.js";
import { DeliveryPool } from "../../src/operations/claim-deliveries.js";
import { ProviderEventPool } from "../../src/operations/claim-provider-events.js";
import type { Deps, Meter } from "../../src/operations/deps.js";
import { Doctor } from "../../src/operations/doctor.js";
import { KeyCache } from "../../src/operations/key-cache.js";
import { ProviderAccount } from "../../src/operations/provider-account.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { RecoveryWatch } from "../../src/operations/recovery-watch.js";
import { readNotice } from "../../src/providers/stripe/notice.js";
import type { Database } from "../../src/store/db.js";
import { WORKERS } from "../../workers/index.js";
import type { Worker, WorkerDeps } from "../../workers/worker.js";
import { EPOCH_MS } from "./host.js";
import type { Random } from "./random.js";
import type { Owner, Scheduler } from "./scheduler.js";
import { gatedDatabase, type SimulatedDatabase, type Statement } from "./simulated-database.js";
import type { StatementFate, Weather } from "./weather.js";

export type WorkerName = Worker["name"];

export interface ProcessParts {
  readonly name: string;
  /** Of the provider, whose credential it has. */
  readonly account: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly database: SimulatedDatabase;
  readonly settings: Settings;
  readonly weather: () => Weather;
  /** The port to the provider, and to merchants' receivers, of this process. */
  readonly provider: (owner: Owner) => Deps["provider"];
  readonly webhooks: (owner: Owner) => WebhookSender;
  /** An attempt or event is due in so long. */
  readonly due: (worker: WorkerName, ms: number) => void;
  readonly ready: (process: SimulatedProcess) => void;
  readonly died: (process: SimulatedProcess) => void;
  /** An error that nothing in the simulation explains. */
  readonly fault: (sentence: string) => void;
  readonly wrote: () => void;
  /** A statement of this function has been executed. */
  readonly executed: (what: string) => Promise<void>;
  /** Whether there may be something to see in where the database is. */
  readonly isMoving: () => boolean;
  /** The notice to other processes that an attempt has come to an outcome. */
  readonly settled: (process: SimulatedProcess, attemptId: string) => void;
}

export const INSTALLATION_SECRET = "0".repeat(64);

/** A death answers nobody: what waits on the process waits for ever. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** One process of Pawl: the real operations and workers, whose every step may be its last. */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly account: string;
  /** Resolves when it dies: whoever is connected to it sees that. */
  readonly dead: Promise<"dead">;
  alive = true;
  frozenUntilMs = 0;
  readonly #parts: ProcessParts;
  #deps: WorkerDeps | null = null;
  #tellOfDeath: () => void = () => undefined;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.account = parts.account;
    this.dead = new Promise((resolve) => {
      this.#tellOfDeath = () => resolve("dead");
    });
    void this.#start();
  }

  get isStarted(): boolean {
    return this.#deps !== null;
  }

  get deps(): WorkerDeps {
    if (this.#deps === null) throw new Error(`${this.name} has not started`);
    return this.#deps;
  }

  /** As wire does it: nothing is accepted or claimed before the database is known to be the same one. */
  async #start(): Promise<void> {
    this.#parts.scheduler.actingFor = this;
    const db = gatedDatabase(this.#parts.database.sql, this.#statement);
    const log = createLogger({ level: "warn", destination: { write: (line) => this.#heard(line) } });
    let recovery: RecoveryWatch;
    try {
      recovery = await RecoveryWatch.open(db, log);
    } catch (error) {
      this.kill(`at its start: ${(error as Error).message}`);
      return;
    }
    const deps = this.#wire(db, log, recovery);
    const { due } = this.#parts;
    this.#deps = {
      ...deps,
      pool: new AttemptPool(deps, () => due("attempts", 0)),
      providerEvents: new ProviderEventPool(deps, () => due("provider-events", 0)),
      deliveries: new DeliveryPool(deps, () => due("webhooks", 0)),
      comparison: new Comparison(deps),
      doctor: new Doctor(deps),
    };
    this.run("account", () => deps.account.resolve());
    this.watchDatabase();
    this.#parts.ready(this);
  }

  /**
   * As wire's loop does it, but only while there may be something to see: production looks every few seconds, and each
   * look is three statements.
   */
  watchDatabase(): void {
    const { scheduler, settings, random, isMoving } = this.#parts;
    const isSettled = () => !isMoving() && this.#deps?.recovery.isRecovering() !== true;
    const look = async (): Promise<void> => {
      if (isSettled()) return;
      try {
        await this.#deps?.recovery.check();
      } finally {
        scheduler.plan(settings.databaseCheckIntervalMs, null, () => this.run("database check", look), this);
      }
    };
    if (isSettled()) return;
    const firstMs = random.whole(1, settings.databaseCheckIntervalMs);
    scheduler.plan(firstMs, null, () => this.run("database check", look), this);
  }

  /** One round of a worker; does not wait for its end. */
  poll(name: WorkerName): void {
    this.run(`worker ${name}`, () => WORKERS[name].runOnce(this.deps));
  }

  /** Starts work that only a database which is away may end otherwise than well. */
  run(what: string, work: () => Promise<unknown>): void {
    this.#parts.scheduler.actingFor = this;
    work().catch((error: unknown) => {
      if (!isPassing(error)) this.#parts.fault(`${what} failed: ${String((error as Error).stack)}`);
    });
  }

  kill(where: string): void {
    if (!this.alive) return;
    this.#parts.scheduler.tell(`${this.name} dies ${where}`);
    this.alive = false;
    this.#tellOfDeath();
    this.#parts.died(this);
  }

  #wire(db: Database, log: Logger, recovery: RecoveryWatch): Deps {
    const { settings, scheduler, due } = this.#parts;
    const isRecovering = () => recovery.isRecovering();
    const provider = askOnlyWhile(isRecovering, this.#parts.provider(this), settings.databaseCheckIntervalMs);
    return {
      db,
      provider,
      account: new ProviderAccount(db, provider, log),
      recovery,
      webhooks: this.#parts.webhooks(this),
      broker: null,
      clock: this.#clock(),
      log,
      probe: this.#probe,
      meter: NO_METER,
      settings,
      accepter: createAccepter(db, recovery),
      advances: createAdvanceBatch(db, recovery),
      outcomes: new OutcomeHub((attemptId) => this.#parts.settled(this, attemptId)),
      due: {
        dueNow: () => due("attempts", 0),
        dueIn: (ms) => due("attempts", ms),
        eventStored: () => due("provider-events", 0),
      },
      apiKeys: new KeyCache(never, this.#clock()),
      readNotice: (body) => {
        const notice = readNotice(body);
        return notice === null ? { ok: false, reason: "malformed" } : { ok: true, notice };
      },
      rereadNotice: (payload) => readNotice(Buffer.from(payload)),
      installationSecret: INSTALLATION_SECRET,
      workerName: `${this.name}:${scheduler.nowMs}`,
    };
  }

  #clock(): Clock {
    const { scheduler } = this.#parts;
    return {
      now: () => new Date(EPOCH_MS + scheduler.nowMs),
      monotonicMs: () => scheduler.nowMs,
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          if (signal?.aborted === true) return resolve();
          signal?.addEventListener("abort", () => resolve(), { once: true });
          scheduler.plan(ms, null, resolve, this);
        }),
    };
  }

  readonly #probe = async (name: string): Promise<void> => {
    await this.#step(`at ${name}`);
    const { scheduler, random } = this.#parts;
    await scheduler.pause(random.duration(1, 20) - 1, null, this);
  };

  /** Any step may be the last one, or the last one for a while. */
  async #step(where: string): Promise<void> {
    const { random, weather, scheduler } = this.#parts;
    if (!this.alive) return never();
    if (random.chance(weather().deaths)) {
      this.kill(where);
      return never();
    }
    if (random.chance(weather().freezes)) {
      const ms = random.duration(5_000, 300_000);
      scheduler.tell(`${this.name} stands still ${where} for ${ms} ms`);
      this.frozenUntilMs = scheduler.nowMs + ms;
    }
  }

  /** A statement goes out, is executed, and its answer comes back: three moments, and a death may lie between any two. */
  readonly #statement: Statement = async (what, run) => {
    const { scheduler, random, weather, database, wrote, executed } = this.#parts;
    await this.#step(`before ${what}`);
    const fate = random.weighted<StatementFate>(weather().statements);
    const label = `db ${what}${fate === "fine" ? "" : ` (${fate})`}`;
    return new Promise((resolve, reject) => {
      const back = (settle: () => void) => scheduler.plan(this.#roundTripMs(), null, settle, this);
      scheduler.plan(
        this.#roundTripMs(),
        label,
        async () => {
          if (fate === "cut_before") return back(() => reject(lostConnection()));
          if (fate === "rolled_back") return back(() => reject(sqlError("40001")));
          const atMs = scheduler.nowMs;
          const settle = await database.at(atMs, run).then(
            (value) => () => resolve(value),
            (error: unknown) => () => reject(error instanceof Error ? error : new Error(String(error))),
          );
          wrote();
          await executed(what);
          back(() => {
            if (fate === "cut_after") return reject(lostConnection());
            settle();
          });
        },
        this,
      );
    });
  };

  /** Mostly next to nothing; now and then long, but within the deadline that a statement has. */
  #roundTripMs(): number {
    const { random } = this.#parts;
    return random.chance(0.03) ? random.duration(50, 3_000) : random.duration(1, 8) / 4;
  }

  #heard(line: string): void {
    const { level, msg, err, ...about } = JSON.parse(line) as Record<string, unknown>;
    const error = err as
      | { readonly message?: string; readonly code?: string; readonly stack?: string }
      | undefined;
    const subject = Object.entries(about)
      .filter(([name]) => name !== "time")
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(", ");
    const told = `${String(msg)} (${subject})${error === undefined ? "" : `: ${String(error.message)}`}`;
    this.#parts.scheduler.tell(`${this.name} logs: ${told}`);
    const explained = error === undefined || error.code === "service_unavailable";
    if (level === "error" && !explained) this.#parts.fault(`${told}\n${String(error.stack)}`);
    if (level === "fatal") this.#parts.fault(told);
  }
}

/** Production's own settings, save what a seed or a test changes. */
export function settingsWith(env: Readonly<Record<string, string>>): Settings {
  return readConfig(env).settings;
}

export function isPassing(error: unknown): boolean {
  return error instanceof PawlError && error.code === "service_unavailable";
}

function lostConnection(): Error {
  return sqlError("CONNECTION_CLOSED");
}

function sqlError(code: string): Error {
  return Object.assign(new Error(`simulated ${code}`), { code });
}

const NO_METER: Meter = {
  providerCall: () => undefined,
  paymentMoved: () => undefined,
  attemptLost: () => undefined,
  deliveryTried: () => undefined,
  providerEvent: () => undefined,
};
