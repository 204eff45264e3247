import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { WORKERS } from "../workers/index.js";
import type { WorkerDeps } from "../workers/worker.js";
import { type Config, ConfigError, type WorkerName } from "./config.js";
import { systemClock } from "./lib/clock.js";
import { Coalescer } from "./lib/coalesce.js";
import type { Logger } from "./lib/log.js";
import { type PollLoop, startPollLoop } from "./lib/poll-loop.js";
import { createAdminApp } from "./http/admin/admin-app.js";
import { createApp } from "./http/app.js";
import { type Server, serve } from "./http/serve.js";
import { createAccepter } from "./operations/accept-batch.js";
import { KeyCache } from "./operations/authenticate.js";
import { OutcomeHub } from "./operations/await-outcome.js";
import { AttemptPool } from "./operations/claim-attempts.js";
import type { Deps, DueSignal, Probe } from "./operations/deps.js";
import { ProviderAccount } from "./operations/provider-account.js";
import { createAdvanceBatch } from "./operations/record-outcome.js";
import { createStripeProvider } from "./providers/stripe/stripe-provider.js";
import { openDatabase, withDatabase } from "./store/db.js";
import { listen, notify } from "./store/notify.js";
import { readSettled } from "./store/payments.js";
import { readOrKeepInstallationSecret } from "./store/tenants.js";

/** How long hints to other processes are gathered: well under what a waiting caller notices. */
const NOTICE_INTERVAL_MS = 20;
/** How often waiting callers are looked after when no notice comes (another process's worker, behind a pooler). */
const OUTCOME_POLL_MS = 250;

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
  const db = openDatabase({
    url: targets.databaseUrl,
    poolMax: config.databasePoolMax,
    prepare: config.databasePrepare,
  });
  const installationSecret = await withDatabase(() => readOrKeepInstallationSecret(db, randomBytes(32).toString("hex")));
  const provider = createStripeProvider({
    secretKey: targets.stripeSecretKey,
    apiBase: targets.stripeApiBase,
    timeoutMs: config.settings.providerTimeoutMs,
    log,
  });
  const hint = (channel: "pawl_attempts" | "pawl_outcomes") =>
    new Coalescer<string>(
      NOTICE_INTERVAL_MS,
      (ids) => notify(db, channel, ids),
      (error) => log.debug({ err: error, channel }, "a notice was lost; polling finds what it told"),
    );
  const attemptHints = hint("pawl_attempts");
  const outcomeHints = hint("pawl_outcomes");
  const loops = new Map<WorkerName, PollLoop>();
  const due: DueSignal = {
    accepted: () => {
      const here = loops.get("attempts");
      if (here === undefined || !pool.hasRoom()) attemptHints.add("");
      here?.wake();
    },
    dueIn: (ms) => loops.get("attempts")?.wakeIn(ms),
  };
  const deps: Deps = {
    db,
    provider,
    account: new ProviderAccount(db, provider, log),
    clock: systemClock,
    log,
    probe: replaced.probe ?? probeOf(config.probes),
    settings: config.settings,
    accepter: createAccepter(db),
    advances: createAdvanceBatch(db),
    outcomes: new OutcomeHub((paymentId) => outcomeHints.add(paymentId)),
    due,
    apiKeys: new KeyCache(db, systemClock),
    installationSecret,
    workerName: `${hostname()}:${process.pid}:${randomBytes(4).toString("hex")}`,
  };
  const pool = new AttemptPool(deps, () => loops.get("attempts")?.wake());
  let outcomeLoop: PollLoop | null = null;
  let stopping = false;
  let api: Server | null = null;
  let admin: Server | null = null;
  // Known early, attempts are stamped with it at the accept; unknown, the first claim stamps them.
  deps.account.resolve().catch((error: unknown) => log.warn({ err: error }, "provider account not known yet"));

  return {
    deps,
    listen: async (withApi) => {
      admin = await listenOn("ADMIN_PORT", createAdminApp(deps, () => stopping), config.adminHost, config.adminPort);
      if (withApi) api = await listenOn("PORT", createApp(deps), config.host, config.port);
      return { apiPort: api?.port ?? null, adminPort: admin.port };
    },
    startWorkers: async (names) => {
      for (const name of names) loops.set(name, startWorker(name, { ...deps, pool }));
      if (names.includes("attempts")) await listen(db, "pawl_attempts", () => loops.get("attempts")?.wake());
    },
    watchOutcomes: async () => {
      outcomeLoop = startOutcomeLoop(deps);
      await listen(db, "pawl_outcomes", (ids) => {
        for (const id of ids) deps.outcomes.wake(id, { type: "elsewhere" });
      });
    },
    drain: async (graceMs) => {
      stopping = true;
      // Callers that would wait past the grace are told "processing" while there is still time to tell them.
      const release = setTimeout(() => deps.outcomes.releaseAll(), graceMs - Math.min(2_000, graceMs / 4));
      await api?.close(graceMs);
      clearTimeout(release);
      await Promise.all([...loops.values()].map((loop) => loop.stop()));
      await pool.drain();
    },
    close: async () => {
      await admin?.close(0);
      await outcomeLoop?.stop();
      attemptHints.stop();
      outcomeHints.stop();
      provider.close();
      await db.close();
    },
  };
}

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
    throw new ConfigError(`${variable}: cannot listen on ${host}:${port} (${code})`);
  }
}

/** What the command line's own commands need: no provider, no workers. */
export interface Store extends Pick<Deps, "db" | "clock" | "log" | "settings"> {
  close(): Promise<void>;
}

export function openStore(config: Config, databaseUrl: string, log: Logger): Store {
  const db = openDatabase({ url: databaseUrl, poolMax: 2, prepare: config.databasePrepare });
  return { db, clock: systemClock, log, settings: config.settings, close: () => db.close() };
}

/** Brings the schema up to date; safe when many processes start at once. */
export { migrate } from "./store/migrate.js";

function startWorker(name: WorkerName, deps: WorkerDeps): PollLoop {
  const worker = WORKERS[name];
  return startPollLoop({
    intervalMs: worker.intervalMs(deps),
    clock: deps.clock,
    run: () => worker.runOnce(deps),
    onError: (error) => deps.log.error({ err: error, worker: name }, "worker round failed"),
  });
}

function startOutcomeLoop(deps: Deps): PollLoop {
  return startPollLoop({
    intervalMs: OUTCOME_POLL_MS,
    clock: deps.clock,
    run: async () => {
      const waited = deps.outcomes.waitedFor();
      if (waited.length === 0) return false;
      const settled = await withDatabase(() => readSettled(deps.db.sql, waited));
      for (const id of settled) deps.outcomes.wake(id, { type: "elsewhere" });
      return false;
    },
    onError: (error) => deps.log.warn({ err: error }, "outcomes could not be looked up"),
  });
}

/**
 * `name=kill,name=stop`: at that point the process kills or stops itself (`kill -CONT` lets it go on). `name#2=kill`:
 * the second time it comes by.
 */
function probeOf(spec: string | null): Probe {
  if (spec === null) return () => undefined;
  const signals = { kill: "SIGKILL", stop: "SIGSTOP" } as const;
  const armed = spec.split(",").map((part) => {
    const [, name, passes, action] = /^(\w+)(?:#([1-9]\d?))?=(kill|stop)$/.exec(part) ?? [];
    if (name === undefined) throw new ConfigError(`PAWL_PROBES: ${part} is not name=kill or name=stop`);
    return { name, left: Number(passes ?? 1), signal: signals[action as keyof typeof signals] };
  });
  return async (name) => {
    for (const probe of armed.filter((one) => one.name === name)) {
      probe.left -= 1;
      if (probe.left !== 0) continue;
      process.kill(process.pid, probe.signal);
      // The signal takes effect at the next turn of the event loop at the latest: nothing after the probe may run before.
      await new Promise((resolve) => setTimeout(resolve, PROBE_SETTLE_MS));
    }
  };
}

const PROBE_SETTLE_MS = 50;

