import type { Settings } from "../../src/config.js";
import { attemptIdOf } from "../../src/operations/attempt-id.js";
import { EPOCH_MS, really } from "./host.js";
import { Merchants, nameOf } from "./merchant.js";
import { Network } from "./network.js";
import { Notices } from "./notices.js";
import { Outside, type OutsideHabits } from "./outside.js";
import { type PaymentPlan, TENANTS } from "./plans.js";
import { Polling } from "./polling.js";
import { type ProviderFlaws, ProviderModel, type ProviderNews } from "./provider-model.js";
import type { Intent } from "./provider-objects.js";
import { Random } from "./random.js";
import { Receivers } from "./receiver.js";
import { Scheduler } from "./scheduler.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import { INSTALLATION_SECRET, isPassing, SimulatedProcess } from "./simulated-process.js";
import { simulatedProvider } from "./simulated-provider.js";
import { Story } from "./story.js";
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
}

/** Runs of one key that a seed may come to: each follows a proven outage of the provider. */
const MOST_RUNS = 60;
const PROCESSES = 2;

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
  /** What must not be, in the order in which it was seen. */
  readonly faults: string[] = [];
  isCalm = false;
  providerDownUntilMs = 0;
  /** No process is started before. */
  nightUntilMs = 0;
  readonly #options: WorldOptions;
  readonly #outside: Outside;
  readonly #network: Network;
  readonly #planOfAttempt = new Map<string, PaymentPlan>();
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
    this.#outside = new Outside(this, options.habits);
    for (const plan of plans) {
      for (let run = 1; run <= MOST_RUNS; run += 1) {
        const name = { tenantId: plan.tenantId, operation: "payments.create", key: plan.key };
        this.#planOfAttempt.set(attemptIdOf(INSTALLATION_SECRET, name, run), plan);
      }
    }
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
  }

  /** One that is there now; null: none is. */
  anyProcess(): SimulatedProcess | null {
    const there = this.#processes.filter((process) => process.isStarted);
    return there.length === 0 ? null : this.random.world.pick(there);
  }

  killAll(): void {
    for (const process of [...this.#processes]) process.kill("with all others");
  }

  #start(): void {
    const { scheduler, random } = this;
    if (this.#processes.length >= PROCESSES) return;
    this.#started += 1;
    const { database, settings } = this.#options;
    const process = new SimulatedProcess({
      name: `p${String(this.#started)}`,
      scheduler,
      random: random.processes,
      database,
      settings,
      weather: this.weather,
      provider: (owner) =>
        simulatedProvider({
          owner,
          network: this.#network,
          model: this.model,
          log: this.log,
          undelivered: () => this.notices.givenUp,
          nowMs: () => scheduler.nowMs,
          nextRequest: () => {
            this.#requests += 1;
            return `#${String(this.#requests)}`;
          },
        }),
      webhooks: (owner) => this.receivers.senderOf(owner),
      due: (worker, ms) => this.polling.wake(worker, ms),
      wrote: () => this.polling.wrote(),
      fault: (sentence) => this.fault(sentence),
      settled: (teller, attemptId) => this.#notify(teller, attemptId),
      died: (dead) => {
        this.#processes = this.#processes.filter((one) => one !== dead);
        const night = Math.max(0, this.nightUntilMs - scheduler.nowMs);
        scheduler.plan(night + random.world.duration(200, 30_000), null, () => this.#start());
      },
    });
    scheduler.tell(`${process.name} starts`);
    this.#processes.push(process);
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
    this.#watchMoney(news.intent);
  }

  /** At every moment: money of one intent alone for a key, and for an order. */
  #watchMoney(intent: Intent): void {
    if (intent.charges > 1) this.fault(`${intent.id} was charged ${intent.charges} times`);
    if (!hasMoney(intent)) return;
    const plan = this.#planOfAttempt.get(intent.attemptId);
    if (plan === undefined) return this.fault(`${intent.id} was made for nobody: ${intent.attemptId}`);
    for (const other of this.model.intents.values()) {
      if (other === intent || !hasMoney(other)) continue;
      const its = this.#planOfAttempt.get(other.attemptId);
      if (its === undefined || its.tenantId !== plan.tenantId) continue;
      const pair = `${intent.id} and ${other.id} both hold money`;
      if (its.key === plan.key)
        this.fault(`${pair} of ${nameOf(plan.tenantId, "payments.create", plan.key)}`);
      else if (its.orderId !== null && its.orderId === plan.orderId) this.fault(`${pair} of ${plan.orderId}`);
    }
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

function hasMoney(intent: Intent): boolean {
  return intent.captured > 0 || intent.capturable > 0;
}
