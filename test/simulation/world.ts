import type { Settings } from "../../src/config.js";
import type { WorkerDeps } from "../../workers/worker.js";
import { EPOCH_MS, really } from "./host.js";
import { Merchants } from "./merchant.js";
import { MoneyWatch } from "./money-watch.js";
import { Network } from "./network.js";
import { Notices } from "./notices.js";
import { Outside, type OutsideHabits } from "./outside.js";
import { People } from "./people.js";
import { type PaymentPlan, TENANTS } from "./plans.js";
import { Polling } from "./polling.js";
import { type ProviderFlaws, ProviderModel, type ProviderNews } from "./provider-model.js";
import { ACCOUNT } from "./provider-objects.js";
import { Random } from "./random.js";
import { Receivers } from "./receiver.js";
import { Restore, type RestorePlan } from "./restore.js";
import { type Owner, Scheduler } from "./scheduler.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import { INSTALLATION_SECRET, isPassing, type ProcessParts, SimulatedProcess } from "./simulated-process.js";
import { simulatedProvider } from "./simulated-provider.js";
import { Story } from "./story.js";
import { Tampered, type TamperingHabits } from "./tampering.js";
import { CALM, type Weather } from "./weather.js";
import { WireLog } from "./wire-log.js";

export interface WorldOptions {
  readonly seed: number;
  readonly database: SimulatedDatabase;
  readonly settings: Settings;
  readonly weather: Weather;
  readonly habits: OutsideHabits;
  readonly plans: readonly PaymentPlan[];
  readonly flaws: ProviderFlaws;
  readonly tampering: TamperingHabits;
  readonly restore: RestorePlan | null;
}

const PROCESSES = 2;
/** By each of these, everything that an attempt waits for between two questions is over. */
const LOOKS_AFTER_MS = [60_000, 400_000, 800_000, 1_200_000, 1_600_000];
/** Until it is looked again whether processes may be started. */
const HELD_MS = 1_000;
/** As docs/guarantees.md has it: a send goes out this soon after its mark, or is marked again. */
const MARKED_WITHIN_MS = 5_000;

/** One simulation: its time, its processes, the provider, the network between them, merchants and customers. */
export class World {
  readonly story = new Story();
  readonly scheduler = new Scheduler(this.story);
  readonly random: { readonly world: Random; readonly merchants: Random; readonly processes: Random };
  readonly log = new WireLog();
  readonly model: ProviderModel;
  readonly receivers: Receivers;
  readonly merchants: Merchants;
  readonly notices: Notices;
  readonly polling: Polling;
  readonly people: People;
  readonly tampered: Tampered;
  readonly money: MoneyWatch;
  /** Null: no rows are lost in this seed. */
  readonly restore: Restore | null;
  /** What must not be, in the order in which it was seen. */
  readonly faults: string[] = [];
  isCalm = false;
  account: string = ACCOUNT;
  accountSinceMs = 0;
  providerDownUntilMs = 0;
  /** No process is started before. */
  nightUntilMs = 0;
  readonly #options: WorldOptions;
  readonly #outside: Outside;
  readonly #network: Network;
  #processes: SimulatedProcess[] = [];
  #started = 0;
  #requests = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    const { seed, settings, plans } = options;
    this.random = {
      world: new Random(seed, "world"),
      merchants: new Random(seed, "merchants"),
      processes: new Random(seed, "processes"),
    };
    const parts = { scheduler: this.scheduler, random: this.random.world, weather: this.weather };
    this.model = new ProviderModel({
      random: this.random.world,
      now: () => this.scheduler.nowMs,
      changed: (news) => this.#hears(news),
      payoutMade: (payout) => this.notices.aboutPayout(payout),
      breaks: () => {
        if (!this.random.world.chance(this.weather().storedErrors)) return null;
        return this.random.world.pick(["before", "after"] as const);
      },
      flaws: options.flaws,
    });
    this.#network = new Network({
      ...parts,
      model: this.model,
      isDown: () => this.scheduler.nowMs < this.providerDownUntilMs,
      timeoutMs: settings.providerTimeoutMs,
    });
    this.receivers = new Receivers({ ...parts, timeoutMs: settings.webhookTimeoutMs });
    this.merchants = new Merchants(this);
    this.notices = new Notices(this);
    this.polling = new Polling(this, options.database);
    this.people = new People(this, new Random(seed, "people"));
    this.tampered = new Tampered(this, new Random(seed, "tampering"), options.tampering);
    this.restore = options.restore === null ? null : new Restore(options.restore, this, options.database);
    this.#outside = new Outside(this, options.habits);
    this.money = new MoneyWatch(this, plans);
  }

  get settings(): Settings {
    return this.#options.settings;
  }

  readonly weather = (): Weather => (this.isCalm ? CALM : this.#options.weather);

  fault(sentence: string): void {
    this.scheduler.tell(`FAULT: ${sentence}`);
    this.faults.push(this.story.named(sentence));
  }

  unlessPassing(error: unknown, what: string): void {
    if (!isPassing(error)) this.fault(`${what}: ${String((error as Error).stack)}`);
  }

  /** Tenants and endpoints, the merchants' plans, and two processes. */
  async begin(): Promise<void> {
    const { database, plans } = this.#options;
    await database.at(0, async (sql) => {
      await sql`insert into installation (secret) values (${INSTALLATION_SECRET})`;
      for (const id of TENANTS) {
        await sql`insert into tenants (id, name) values (${id}, ${id})`;
        await sql`insert into webhook_endpoints (tenant_id, id, url, secret)
                  values (${id}, ${`we_${id}`}, ${`https://${id}.example`}, 'whsec_c2ltdWxhdGVkIHNlY3JldCBvZiBhIHJlY2VpdmVy')`;
      }
    });
    for (const plan of plans) this.merchants.begin(plan);
    for (let at = 0; at < PROCESSES; at += 1) this.#start();
    this.restore?.begin();
  }

  /** One that is there now; null: none is. */
  anyProcess(): SimulatedProcess | null {
    const there = this.#processes.filter((process) => process.isStarted);
    return there.length === 0 ? null : this.random.world.pick(there);
  }

  killAll(): void {
    for (const process of [...this.#processes]) process.kill("with all others");
  }

  /** All processes are started anew, with another credential. */
  redeploy(account: string): void {
    this.scheduler.tell(`all processes get the credential of ${account}`);
    this.account = account;
    this.accountSinceMs = this.scheduler.nowMs;
    this.killAll();
    this.notices.sendKept();
    for (const inMs of LOOKS_AFTER_MS) this.polling.wakeOnce("attempts", inMs);
  }

  /** After a move of the database all look where it is. */
  watchDatabases(): void {
    for (const process of this.#processes) process.watchDatabase();
  }

  /** A process of a person's at the command line, which ends with its work, done or not. */
  asOperator(command: string, work: (deps: WorkerDeps) => Promise<unknown>): void {
    const ready = (process: SimulatedProcess) => {
      process.run(command, () => work(process.deps).finally(() => process.kill(`at the end of ${command}`)));
    };
    // In a step of its own: what it begins with has then gone out before the next one is taken.
    this.scheduler.plan(0, null, () => void this.#make("operator", { ready, died: () => undefined }));
  }

  #start(): void {
    const { scheduler, random } = this;
    if (this.#processes.length >= PROCESSES) return;
    if (this.restore?.mayStart === false) {
      scheduler.plan(HELD_MS, null, () => this.#start());
      return;
    }
    const process = this.#make("p", {
      ready: () => undefined,
      died: (dead) => {
        this.#processes = this.#processes.filter((one) => one !== dead);
        const night = Math.max(0, this.nightUntilMs - scheduler.nowMs);
        scheduler.plan(night + random.world.duration(200, 30_000), null, () => this.#start());
      },
    });
    this.#processes.push(process);
  }

  #make(kind: string, { ready, died }: Pick<ProcessParts, "ready" | "died">): SimulatedProcess {
    this.#started += 1;
    const { scheduler, random, restore } = this;
    const { database, settings } = this.#options;
    const process: SimulatedProcess = new SimulatedProcess({
      name: `${kind}${String(this.#started)}`,
      account: this.account,
      scheduler,
      random: random.processes,
      database,
      settings,
      weather: this.weather,
      provider: (owner) => this.#providerOf(owner, (key) => this.#watchSend(process, key)),
      webhooks: (owner) => this.receivers.senderOf(owner),
      due: (worker, ms) => this.polling.wake(worker, ms),
      wrote: () => this.polling.wrote(),
      executed: (what) => restore?.executed(what) ?? Promise.resolve(),
      isMoving: () => restore?.isMoving ?? false,
      fault: (sentence) => this.fault(sentence),
      settled: (teller, attemptId) => this.#notify(teller, attemptId),
      ready,
      died,
    });
    scheduler.tell(`${process.name} starts`);
    return process;
  }

  #providerOf(owner: Owner, sending: (key: string) => "unaware" | "aware") {
    return simulatedProvider({
      owner,
      account: this.account,
      network: this.#network,
      model: this.model,
      log: this.log,
      events: { undelivered: () => this.notices.givenUp, ofPayouts: () => this.notices.ofPayouts },
      nowMs: () => this.scheduler.nowMs,
      nextRequest: () => {
        this.#requests += 1;
        return `#${String(this.#requests)}`;
      },
      sending,
    });
  }

  /**
   * From the moment that anything tells of it, nothing is sent until the database has recovered, whatever a process knows:
   * but for what was marked in the rows before, which is on its way.
   */
  #watchSend(process: SimulatedProcess, key: string): "unaware" | "aware" {
    const { heldBackSinceMs = null, loss = null } = this.restore ?? {};
    const isOnItsWay = (sinceMs: number) => this.scheduler.nowMs <= sinceMs + MARKED_WITHIN_MS;
    if (heldBackSinceMs !== null && !isOnItsWay(heldBackSinceMs)) {
      this.fault(`${key} was sent by ${process.name} while the database recovers`);
    }
    return loss !== null && isOnItsWay(loss.restoredAtMs) ? "unaware" : "aware";
  }

  isLostReview(reviewId: string): boolean {
    return this.restore?.loss?.reviews.has(reviewId) ?? false;
  }

  /** Something that the provider now shows comes to a worker's eyes at about this moment. */
  makeFact(attemptId: string): void {
    if (!this.isCalm) this.putRight(attemptId);
    this.polling.wakeOnce("attempts", 1);
  }

  putRight(attemptId: string): void {
    for (const intent of this.model.intents.values()) {
      if (intent.attemptId === attemptId) this.tampered.putRight(intent);
    }
  }

  /** Between processes, by the database: a notice that is lost is made up for when the caller's wait ends. */
  #notify(teller: SimulatedProcess, attemptId: string): void {
    const { random, scheduler } = this;
    if (random.world.chance(0.2)) return;
    for (const process of this.#processes) {
      if (process === teller || !process.isStarted) continue;
      const tell = () => void process.deps.outcomes.wake(attemptId, { type: "elsewhere" });
      scheduler.plan(random.world.duration(20, 250), null, tell, process);
    }
  }

  #hears(news: ProviderNews): void {
    this.scheduler.tell(`provider: ${news.type} ${news.objectId} (${news.intent.attemptId})`);
    this.notices.about(news);
    this.#outside.hears(news);
    this.tampered.hears(news);
    this.money.look(news.intent);
  }

  /** Whether an attempt was made for the key (as nameOf names it) by then. */
  async hadEffect(name: string, byMs: number): Promise<boolean> {
    const [tenantId = "", operation = "", key = ""] = name.split(" ");
    const by = new Date(EPOCH_MS + byMs).toISOString();
    const { sql } = this.#options.database;
    const rows = await really(
      () => sql`
        select id from attempts
         where tenant_id = ${tenantId} and operation = ${operation} and idempotency_key = ${key}
           and created_at <= ${by}::text::timestamptz`,
    );
    return rows.length > 0;
  }

  /** What a merchant sees when he looks at his payment. */
  async paymentOfKey(tenantId: string, key: string): Promise<{ id: string; status: string } | null> {
    const { sql } = this.#options.database;
    const [row] = await really(
      () => sql<{ id: string; status: string }[]>`
        select p.id, p.status
          from idempotency_keys k join payments p on p.tenant_id = k.tenant_id and p.id = k.resource_id
         where k.tenant_id = ${tenantId} and k.operation = 'payments.create' and k.key = ${key}`,
    );
    return row ?? null;
  }
}
