import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { WORKERS } from "../workers/index.js";
import type { WorkerDeps } from "../workers/worker.js";
import { type Config, ConfigError, type WorkerName } from "./config.js";
import type { EventBroker } from "./domain/webhook.js";
import { createAdminApp } from "./http/admin/admin-app.js";
import { createApp } from "./http/app.js";
import { type Server, serve } from "./http/serve.js";
import { meter, showDoctorRound } from "./http/work-metrics.js";
import { systemClock } from "./lib/clock.js";
import type { Logger } from "./lib/log.js";
import type { Lookout } from "./lib/lookout.js";
import { packageVersion } from "./lib/package-version.js";
import { type PollLoop, startPollLoop } from "./lib/poll-loop.js";
import { signalAt } from "./lib/signal-at.js";
import { createAccepter } from "./operations/accept-batch.js";
import { createAdvanceBatch } from "./operations/advance-batch.js";
import { askOnlyWhile } from "./operations/ask-only.js";
import { OutcomeHub, watchOutcomes } from "./operations/await-outcome.js";
import { AttemptPool } from "./operations/claim-attempts.js";
import { DeliveryPool } from "./operations/claim-deliveries.js";
import { ProviderEventPool } from "./operations/claim-provider-events.js";
import type { Deps, Probe } from "./operations/deps.js";
import { Doctor } from "./operations/doctor.js";
import { hintsOn } from "./operations/hints.js";
import { KeyCache } from "./operations/key-cache.js";
import { sharesLook, watchForWork } from "./operations/look-for-work.js";
import { ProviderAccount } from "./operations/provider-account.js";
import { Comparison } from "./operations/reconcile.js";
import { RecoveryWatch } from "./operations/recovery-watch.js";
import { WorkerLoops } from "./operations/worker-loops.js";
import { readNotice } from "./providers/stripe/notice.js";
import { createStripeProvider } from "./providers/stripe/stripe-provider.js";
import { verifyNotice } from "./providers/stripe/webhook.js";
import { openDatabase, withDatabase } from "./store/db.js";
import { readApiKey, readOrKeepInstallationSecret } from "./store/tenants.js";
import { createWebhookSender } from "./webhooks/webhook-sender.js";

/** Before the grace ends: time for waiting callers' answers to leave. */
const LAST_WORD_MS = 2_000;

/** Where this process finds its database and its provider, after the embedded ones have started. */
export interface Targets {
  readonly databaseUrl: string;
  readonly stripeSecretKey: string;
  readonly stripeApiBase: string | null;
}

export interface Listening {
  readonly apiPort: number | null;
  readonly adminPort: number;
}

/** A wired process: what operations need, and what can run in it. */
export interface Pawl {
  readonly deps: Deps;
  /** For commands that compare by themselves; the worker of that name has its own turn at it. */
  readonly comparison: Comparison;
  /** The operator's listener, and the API's where `api` is set. Throws ConfigError where a port is taken. */
  listen(api: boolean): Promise<Listening>;
  startWorkers(names: readonly WorkerName[]): Promise<void>;
  /** Looks after callers that wait here for what another process does. */
  watchOutcomes(): Promise<void>;
  /** No new work begins; resolves when running requests and attempts have ended, or `graceMs` is over. */
  drain(graceMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The only composition root. The database must be there and migrated. `replaced`: what a test stages a race with. */
export async function wire(
  config: Config,
  targets: Targets,
  log: Logger,
  replaced: { readonly probe?: Probe } = {},
): Promise<Pawl> {
  const db = await openDatabase({
    url: targets.databaseUrl,
    poolMax: config.databasePoolMax,
    prepare: config.databasePrepare,
  });
  const installationSecret = await withDatabase(() =>
    readOrKeepInstallationSecret(db, randomBytes(32).toString("hex")),
  );
  // Before anything is claimed or accepted: after a restore, nothing is sent.
  const recovery = await RecoveryWatch.open(db, log);
  const stripe = createStripeProvider({
    secretKey: targets.stripeSecretKey,
    apiBase: targets.stripeApiBase,
    timeoutMs: config.settings.providerTimeoutMs,
    log,
  });
  const provider = askOnlyWhile(
    () => recovery.isRecovering(),
    stripe,
    config.settings.databaseCheckIntervalMs,
  );
  const loops = new WorkerLoops(db, log);
  const outcomeHints = hintsOn("pawl_outcomes", db, log);
  const deps: Deps = {
    db,
    provider,
    account: new ProviderAccount(db, provider, log),
    recovery,
    webhooks: createWebhookSender({
      timeoutMs: config.settings.webhookTimeoutMs,
      allowPrivate: config.settings.webhookAllowPrivateTargets,
      userAgent: `pawl/${packageVersion()}`,
      clock: systemClock,
    }),
    broker: await brokerOf(config, log),
    clock: systemClock,
    log,
    probe: replaced.probe ?? (config.probes === null ? () => undefined : signalAt(config.probes)),
    meter,
    settings: config.settings,
    accepter: createAccepter(db, recovery),
    advances: createAdvanceBatch(db, recovery),
    outcomes: new OutcomeHub((attemptId) => outcomeHints.add(attemptId)),
    due: loops,
    apiKeys: new KeyCache(
      (tenantId, keyId) => withDatabase(() => readApiKey(db, tenantId, keyId)),
      systemClock,
    ),
    readNotice: (rawBody, signature, nowMs) =>
      verifyNotice(rawBody, signature, config.settings.stripeWebhookSecrets, nowMs),
    rereadNotice: (payload) => readNotice(Buffer.from(payload)),
    installationSecret,
    workerName: `${hostname()}:${process.pid}:${randomBytes(4).toString("hex")}`,
  };
  // Known early, attempts are stamped with it at the accept; unknown, the first claim stamps them.
  deps.account
    .resolve()
    .catch((error: unknown) => log.warn({ err: error }, "provider account not known yet"));
  return new WiredPawl(config, deps, loops, () => {
    outcomeHints.stop();
    stripe.close();
  });
}

/** Its client is loaded where there is a broker: it takes more memory than any other part that few processes use. */
async function brokerOf(config: Config, log: Logger): Promise<EventBroker | null> {
  const url = config.eventsNatsUrl;
  if (url === null) return null;
  const { createNatsBroker } = await import("./nats/nats-broker.js");
  return createNatsBroker({ url, timeoutMs: config.settings.webhookTimeoutMs, log });
}

class WiredPawl implements Pawl {
  readonly #pool: AttemptPool;
  readonly #providerEvents: ProviderEventPool;
  readonly #deliveries: DeliveryPool;
  #outcomeLoop: PollLoop | null = null;
  #lookout: Lookout | null = null;
  readonly comparison: Comparison;
  readonly #recoveryLoop: PollLoop;
  #stopping = false;
  #api: Server | null = null;
  #admin: Server | null = null;

  constructor(
    private readonly config: Config,
    readonly deps: Deps,
    private readonly loops: WorkerLoops,
    private readonly release: () => void,
  ) {
    this.#pool = new AttemptPool(deps, () => loops.wake("attempts"));
    this.#providerEvents = new ProviderEventPool(deps, () => loops.wake("provider-events"));
    this.#deliveries = new DeliveryPool(deps, () => loops.wake("webhooks"));
    this.comparison = new Comparison(deps);
    this.#recoveryLoop = deps.recovery.watch(deps.clock, deps.settings.databaseCheckIntervalMs);
  }

  async listen(withApi: boolean): Promise<Listening> {
    const { config, deps } = this;
    const admin = createAdminApp(deps, () => this.#stopping);
    this.#admin = await listenOn("ADMIN_PORT", admin, config.adminHost, config.adminPort);
    if (withApi) this.#api = await listenOn("PORT", createApp(deps), config.host, config.port);
    return { apiPort: this.#api?.port ?? null, adminPort: this.#admin.port };
  }

  async startWorkers(names: readonly WorkerName[]): Promise<void> {
    const deps: WorkerDeps = {
      ...this.deps,
      pool: this.#pool,
      providerEvents: this.#providerEvents,
      deliveries: this.#deliveries,
      comparison: this.comparison,
      doctor: new Doctor(this.deps, { onRound: showDoctorRound, random: Math.random }),
    };
    await this.loops.start(
      names,
      (name) => startWorker(name, deps),
      () => this.#pool.hasRoom(),
    );
    const intervalsMs = names
      .filter(sharesLook)
      .map((name) => [name, WORKERS[name].intervalMs(deps)] as const);
    this.#lookout = watchForWork(deps, new Map(intervalsMs), (name) => this.loops.wake(name));
  }

  async watchOutcomes(): Promise<void> {
    this.#outcomeLoop = await watchOutcomes(this.deps);
  }

  async drain(graceMs: number): Promise<void> {
    this.#stopping = true;
    // Callers that would wait past the grace are told "processing" while there is still time to tell them.
    const tellMs = graceMs - Math.min(LAST_WORD_MS, graceMs / 4);
    // A call that begins later than this could not end within the grace.
    const lastClaim = setTimeout(
      () => void this.#stopWorkers(),
      Math.max(0, graceMs - this.config.settings.providerTimeoutMs),
    );
    const telling = setTimeout(() => this.deps.outcomes.releaseAll(), tellMs);
    await this.#api?.close(graceMs);
    clearTimeout(telling);
    clearTimeout(lastClaim);
    await this.#stopWorkers();
    await Promise.all([this.#pool.drain(), this.#providerEvents.drain(), this.#deliveries.drain()]);
  }

  async #stopWorkers(): Promise<void> {
    await Promise.all([this.#lookout?.stop(), this.loops.stop()]);
  }

  async close(): Promise<void> {
    await this.#admin?.close(0);
    await this.#outcomeLoop?.stop();
    await this.#recoveryLoop.stop();
    this.release();
    await this.deps.broker?.close();
    await this.deps.db.close();
  }
}

/** What the system says where it is the address that is wrong, and not the port. */
const HOST_FAULTS: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL"]);

async function listenOn(
  variable: string,
  app: Parameters<typeof serve>[0],
  host: string,
  port: number,
): Promise<Server> {
  try {
    return await serve(app, { host, port });
  } catch (error) {
    const code = (error as { code?: string }).code ?? "unknown error";
    const named = HOST_FAULTS.has(code) ? variable.replace("PORT", "HOST") : variable;
    throw new ConfigError(`${named}: cannot listen on ${host}:${port} (${code})`);
  }
}

/** What the command line's own commands need: no provider, no workers. */
export interface Store extends Pick<Deps, "db" | "clock" | "log" | "settings"> {
  close(): Promise<void>;
}

export async function openStore(config: Config, databaseUrl: string, log: Logger): Promise<Store> {
  const db = await openDatabase({ url: databaseUrl, poolMax: 2, prepare: config.databasePrepare });
  return { db, clock: systemClock, log, settings: config.settings, close: () => db.close() };
}

/** Brings the schema up to date; safe when many processes start at once. */
export { migrate } from "./store/migrate.js";

function startWorker(name: WorkerName, deps: WorkerDeps): PollLoop {
  const worker = WORKERS[name];
  return startPollLoop({
    intervalMs: sharesLook(name) ? null : worker.intervalMs(deps),
    clock: deps.clock,
    run: () => worker.runOnce(deps),
    onError: (error) => deps.log.error({ err: error, worker: name }, "worker round failed"),
  });
}
