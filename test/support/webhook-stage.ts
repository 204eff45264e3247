import { randomBytes } from "node:crypto";
import { afterEach } from "vitest";
import { readConfig, type Settings, type WorkerName } from "../../src/config.js";
import type { EventBroker } from "../../src/domain/webhook.js";
import { systemClock } from "../../src/lib/clock.js";
import { newId } from "../../src/lib/ids.js";
import { createLogger } from "../../src/lib/log.js";
import { startPollLoop } from "../../src/lib/poll-loop.js";
import { DeliveryPool } from "../../src/operations/claim-deliveries.js";
import type { Deps, Probe } from "../../src/operations/deps.js";
import { sharesLook, watchForWork } from "../../src/operations/look-for-work.js";
import { type Database, openDatabase, type Sql } from "../../src/store/db.js";
import { createWebhookSender } from "../../src/webhooks/webhook-sender.js";
import { WORKERS } from "../../workers/index.js";
import type { WorkerDeps } from "../../workers/worker.js";
import { Receiver } from "./receiver.js";
import { createTestDatabase, type TestDatabase } from "./test-database.js";

/** Durations that a test can wait for. */
const QUICK: Readonly<Record<string, string>> = {
  RELAY_INTERVAL_MS: "20",
  WEBHOOK_INTERVAL_MS: "20",
  WEBHOOK_TIMEOUT_MS: "2000",
  WEBHOOK_RETRY_SCHEDULE_MS: "20,40,80",
  WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
};

type WorkerOfEvents = "relay" | "webhooks" | "reaper";

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly workers?: readonly WorkerOfEvents[];
  readonly probe?: Probe;
  readonly broker?: EventBroker;
}

/** Relay and delivery in this process, as wired together in production, without payments. */
export interface EventProcess {
  readonly deps: Deps & WorkerDeps;
  /** What every try came to, by the meter. */
  readonly tries: string[];
  readonly logLines: readonly string[];
  /** No further round begins; what is under way goes on. */
  freeze(): Promise<void>;
  stop(): Promise<void>;
}

export interface EventInput {
  readonly tenantId?: string;
  readonly id?: string;
  readonly type?: string;
  readonly paymentId?: string | null;
  readonly sequence?: number;
  readonly ordinal?: number;
  readonly object?: object;
}

export interface WebhookWorld {
  readonly sql: Sql;
  readonly tenantId: string;
  process(options?: ProcessOptions): Promise<EventProcess>;
  receiver(): Promise<Receiver>;
  /** An endpoint past the API; yields its id and secret. */
  endpoint(
    url: string,
    options?: { tenantId?: string; events?: readonly string[] },
  ): Promise<{ id: string; secret: string }>;
  /** A row of the outbox, as a fact writes it; yields its id. */
  event(input?: EventInput, sql?: Pick<Sql, "unsafe">): Promise<string>;
}

/** For a test file: worlds that are ended after the test that began them. */
export function useWebhookWorld(): { start(): Promise<WebhookWorld> } {
  const ends: (() => Promise<void>)[] = [];
  const receivers: Receiver[] = [];
  afterEach(async () => {
    // First, so that no try that hangs at one holds up a process's end.
    for (const receiver of receivers.splice(0)) await receiver.stop();
    for (const end of ends.splice(0).reverse()) await end();
  });
  return {
    start: async () => {
      const database = await createTestDatabase();
      ends.push(() => database.drop());
      const own = await openDatabase({ url: database.url, poolMax: 4, prepare: true });
      ends.push(() => own.close());
      return worldOf(database, own, ends, receivers);
    },
  };
}

function worldOf(
  database: TestDatabase,
  own: Database,
  ends: (() => Promise<void>)[],
  receivers: Receiver[],
): WebhookWorld {
  const tenantId = newId("ten");
  return {
    sql: own.sql,
    tenantId,
    process: async (options = {}) => {
      const started = await startEventProcess(database, options);
      ends.push(() => started.stop());
      return started;
    },
    receiver: async () => {
      const receiver = await Receiver.start();
      receivers.push(receiver);
      return receiver;
    },
    endpoint: async (url, options = {}) => {
      const secret = newSecret();
      const id = newId("we");
      const owner = options.tenantId ?? tenantId;
      const events = options.events === undefined ? null : JSON.stringify(options.events);
      await own.sql`
        insert into webhook_endpoints (tenant_id, id, url, events, secret)
        values (${owner}, ${id}, ${url}, ${events}::text::json, ${secret})`;
      return { id, secret };
    },
    event: async (input = {}, sql = own.sql) => {
      const id = input.id ?? newId("evt");
      await sql.unsafe(
        `insert into outbox (tenant_id, id, type, payment_id, sequence, ordinal, data)
         values ($1, $2, $3, $4, $5, $6, $7::text::json)`,
        [
          input.tenantId ?? tenantId,
          id,
          input.type ?? "payment.succeeded",
          input.paymentId === undefined ? newId("pay") : input.paymentId,
          input.sequence ?? 1,
          input.ordinal ?? 0,
          JSON.stringify(input.object ?? { object: "payment" }),
        ],
      );
      return id;
    },
  };
}

export function newSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

async function startEventProcess(database: TestDatabase, options: ProcessOptions): Promise<EventProcess> {
  const db = await openDatabase({ url: database.url, poolMax: 8, prepare: true });
  const { settings } = readConfig({ ...QUICK, ...options.env });
  const logLines: string[] = [];
  const tries: string[] = [];
  const deps = depsOf(db, settings, options, logLines, tries);
  const loops = new Map<string, ReturnType<typeof startPollLoop>>();
  const deliveries = new DeliveryPool(deps, () => loops.get("webhooks")?.wake());
  const workerDeps = { ...deps, deliveries } as Deps & WorkerDeps;
  const names: readonly WorkerName[] = options.workers ?? ["relay", "webhooks"];
  for (const name of names) {
    const worker = WORKERS[name];
    const loop = startPollLoop({
      intervalMs: sharesLook(name) ? null : worker.intervalMs(workerDeps),
      clock: systemClock,
      run: () => worker.runOnce(workerDeps),
      onError: (error) => deps.log.error({ err: error, worker: name }, "worker round failed"),
    });
    loops.set(name, loop);
  }
  const intervalsMs = names
    .filter(sharesLook)
    .map((name) => [name, WORKERS[name].intervalMs(workerDeps)] as const);
  const lookout = watchForWork(workerDeps, new Map(intervalsMs), (name) => loops.get(name)?.wake());
  const freeze = async () => {
    await Promise.all([lookout.stop(), ...[...loops.values()].map((loop) => loop.stop())]);
  };
  let stopped = false;
  return {
    deps: workerDeps,
    tries,
    logLines,
    freeze,
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await freeze();
      await deliveries.drain();
      await db.close();
    },
  };
}

/** What relay, delivery and the endpoints' own operations use. */
function depsOf(
  db: Database,
  settings: Settings,
  options: ProcessOptions,
  logLines: string[],
  tries: string[],
): Deps {
  return {
    db,
    settings,
    clock: systemClock,
    log: createLogger({ level: "info", destination: { write: (line) => void logLines.push(line) } }),
    probe: options.probe ?? (() => undefined),
    meter: { deliveryTried: (target: string, outcome: string) => void tries.push(`${target} ${outcome}`) },
    webhooks: createWebhookSender({
      timeoutMs: settings.webhookTimeoutMs,
      allowPrivate: settings.webhookAllowPrivateTargets,
      userAgent: "pawl/test",
      clock: systemClock,
    }),
    broker: options.broker ?? null,
    provider: { name: "stripe" },
  } as unknown as Deps;
}

export interface DeliveryRow {
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly state: string;
  readonly tries: number;
  readonly due_at: string | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly last_answer: string | null;
}

/** Every delivery, in the order of endpoints and events. */
export function deliveriesOf({ sql }: Pick<WebhookWorld, "sql">): Promise<DeliveryRow[]> {
  return sql<DeliveryRow[]>`select * from deliveries order by endpoint_id, event_id`;
}
