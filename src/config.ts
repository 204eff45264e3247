import { z } from "zod";
import { SIGNAL_SPEC } from "./lib/signal-at.js";

/** The only reader of process.env. Every setting, with its default; the README's table lists exactly these. */

const WORKER_NAMES = ["attempts", "reconciler", "reaper"] as const;
export type WorkerName = (typeof WORKER_NAMES)[number];

const blankIsUnset = (value: unknown) =>
  typeof value === "string" && value.trim() === "" ? undefined : value;
const whole = (least: number, most: number) =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(/^\d{1,15}$/, "must be a whole number")
      .transform(Number)
      .refine((n) => n >= least && n <= most, `must lie between ${least} and ${most}`)
      .optional(),
  );
const text = z.preprocess(blankIsUnset, z.string().optional());
const flag = z.preprocess(
  blankIsUnset,
  z
    .enum(["true", "false"], "must be true or false")
    .transform((value) => value === "true")
    .optional(),
);
/** What Node's timers take: a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const duration = (least = 1) => whole(least, LONGEST_TIMER_MS);
const span = () => whole(1, 10 ** 12);
const url = (schemes: readonly string[]) =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .refine(
        (value) => URL.canParse(value) && schemes.includes(new URL(value).protocol),
        `must be a URL (${schemes.join(", ")})`,
      )
      .optional(),
  );
function isBareOrigin(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, origin } = new URL(value);
  return (
    (protocol === "http:" || protocol === "https:") &&
    value.replace(/\/$/, "").toLowerCase() === origin.toLowerCase()
  );
}
const workers = z.preprocess(
  blankIsUnset,
  z
    .string()
    .transform((value) => value.split(",").map((name) => name.trim()))
    .refine(
      (names) =>
        names.join() === "all" ||
        names.join() === "none" ||
        names.every((name) => (WORKER_NAMES as readonly string[]).includes(name)),
      `must be all, none, or a list of ${WORKER_NAMES.join(", ")}`,
    )
    .optional(),
);

const environment = z.object({
  PORT: whole(0, 65_535),
  HOST: text,
  ADMIN_PORT: whole(0, 65_535),
  ADMIN_HOST: text,
  DATABASE_URL: url(["postgres:", "postgresql:"]),
  DATABASE_POOL_MAX: whole(1, 1_000),
  DATABASE_PREPARE: flag,
  STRIPE_SECRET_KEY: z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(
        /^[sr]k_(test|live)_[A-Za-z0-9_]+$/,
        "must be a secret or restricted key (sk_test_…, sk_live_…, rk_…)",
      )
      .optional(),
  ),
  STRIPE_API_BASE: z.preprocess(
    blankIsUnset,
    z
      .string()
      .refine(isBareOrigin, "must be scheme, host and port alone, such as http://127.0.0.1:12111")
      .optional(),
  ),
  PROVIDER_TIMEOUT_MS: duration(),
  ATTEMPT_LEASE_MS: duration(),
  ATTEMPT_RETRY_BUDGET_MS: span(),
  PROVIDER_KEY_LIFETIME_MS: span(),
  UNKNOWN_REVIEW_AFTER_MS: span(),
  IDEMPOTENCY_RETENTION_HOURS: z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(/^\d{1,6}(\.\d{1,20})?$/, "must be a number of hours")
      .transform(Number)
      .refine((hours) => hours > 0, "must be more than 0")
      .optional(),
  ),
  DEFAULT_WAIT_MS: whole(0, 30_000),
  RECONCILE_INTERVAL_MS: duration(),
  PURGE_INTERVAL_MS: duration(),
  PURGE_BATCH_SIZE: whole(1, 100_000),
  POLL_INTERVAL_MS: duration(10),
  RETRY_FIRST_MS: duration(),
  RETRY_MOST_MS: duration(),
  FOLLOW_FIRST_MS: duration(),
  FOLLOW_MOST_MS: duration(),
  WORKER_CONCURRENCY: whole(1, 10_000),
  RATE_LIMIT_PER_SECOND: whole(0, 1_000_000),
  REQUEST_BODY_TIMEOUT_MS: duration(100),
  SHUTDOWN_GRACE_MS: duration(0),
  WORKERS: workers,
  LOG_LEVEL: z.preprocess(
    blankIsUnset,
    z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).optional(),
  ),
  PAWL_DATA_DIR: text,
  PAWL_PROBES: z.preprocess(
    blankIsUnset,
    z.string().regex(SIGNAL_SPEC, "must be name=kill or name=stop, comma-separated").optional(),
  ),
});

export interface Settings {
  readonly providerTimeoutMs: number;
  readonly attemptLeaseMs: number;
  readonly retryBudgetMs: number;
  readonly providerKeyLifetimeMs: number;
  readonly unknownReviewAfterMs: number;
  readonly retentionMs: number;
  readonly defaultWaitMs: number;
  readonly reconcileIntervalMs: number;
  readonly purgeIntervalMs: number;
  readonly purgeBatchSize: number;
  readonly pollIntervalMs: number;
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
  readonly followFirstMs: number;
  readonly followMostMs: number;
  readonly workerConcurrency: number;
  readonly rateLimitPerSecond: number;
  readonly requestBodyTimeoutMs: number;
}

export interface Config {
  readonly port: number;
  readonly host: string;
  readonly adminPort: number;
  readonly adminHost: string;
  /** Null: the embedded server under `dataFolder`. */
  readonly databaseUrl: string | null;
  readonly databasePoolMax: number;
  readonly databasePrepare: boolean;
  /** Null: the sandbox. */
  readonly stripeSecretKey: string | null;
  readonly stripeApiBase: string | null;
  readonly shutdownGraceMs: number;
  readonly workers: readonly WorkerName[];
  readonly logLevel: string;
  readonly dataFolder: string;
  /** `name=kill|stop`, comma-separated: a fault of our own process at a named point, for tests. */
  readonly probes: string | null;
  readonly settings: Settings;
}

/** One line that names the variable; shown as it is, and the process ends. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

const HOUR_MS = 3_600_000;

/** Throws ConfigError for a malformed value or for values that cannot stand together. */
export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  const parsed = environment.safeParse(env);
  if (!parsed.success) {
    const fault = parsed.error.issues[0];
    throw new ConfigError(`${String(fault?.path[0])}: ${fault?.message ?? "malformed"}`);
  }
  const e = parsed.data;
  const settings: Settings = {
    providerTimeoutMs: e.PROVIDER_TIMEOUT_MS ?? 20_000,
    attemptLeaseMs: e.ATTEMPT_LEASE_MS ?? 60_000,
    retryBudgetMs: e.ATTEMPT_RETRY_BUDGET_MS ?? 120_000,
    providerKeyLifetimeMs: e.PROVIDER_KEY_LIFETIME_MS ?? 82_800_000,
    unknownReviewAfterMs: e.UNKNOWN_REVIEW_AFTER_MS ?? 86_400_000,
    retentionMs: (e.IDEMPOTENCY_RETENTION_HOURS ?? 168) * HOUR_MS,
    defaultWaitMs: e.DEFAULT_WAIT_MS ?? 10_000,
    reconcileIntervalMs: e.RECONCILE_INTERVAL_MS ?? 30_000,
    purgeIntervalMs: e.PURGE_INTERVAL_MS ?? 60_000,
    purgeBatchSize: e.PURGE_BATCH_SIZE ?? 500,
    pollIntervalMs: e.POLL_INTERVAL_MS ?? 500,
    retryFirstMs: e.RETRY_FIRST_MS ?? 250,
    retryMostMs: e.RETRY_MOST_MS ?? 300_000,
    followFirstMs: e.FOLLOW_FIRST_MS ?? 2_000,
    followMostMs: e.FOLLOW_MOST_MS ?? 300_000,
    workerConcurrency: e.WORKER_CONCURRENCY ?? 64,
    rateLimitPerSecond: e.RATE_LIMIT_PER_SECOND ?? 0,
    requestBodyTimeoutMs: e.REQUEST_BODY_TIMEOUT_MS ?? 10_000,
  };
  refuseContradictions(
    settings,
    e.PAWL_PROBES !== undefined && e.STRIPE_SECRET_KEY?.includes("_live_") === true,
  );
  return {
    port: e.PORT ?? 3000,
    host: e.HOST ?? "127.0.0.1",
    adminPort: e.ADMIN_PORT ?? 9464,
    adminHost: e.ADMIN_HOST ?? "127.0.0.1",
    databaseUrl: e.DATABASE_URL ?? null,
    databasePoolMax: e.DATABASE_POOL_MAX ?? 10,
    databasePrepare: e.DATABASE_PREPARE ?? true,
    stripeSecretKey: e.STRIPE_SECRET_KEY ?? null,
    stripeApiBase: e.STRIPE_API_BASE ?? null,
    shutdownGraceMs: e.SHUTDOWN_GRACE_MS ?? 25_000,
    workers: workersOf(e.WORKERS ?? ["all"]),
    logLevel: e.LOG_LEVEL ?? "info",
    dataFolder: e.PAWL_DATA_DIR ?? ".pawl",
    probes: e.PAWL_PROBES ?? null,
    settings,
  };
}

function workersOf(names: readonly string[]): readonly WorkerName[] {
  if (names[0] === "all") return WORKER_NAMES;
  if (names[0] === "none") return [];
  return names as readonly WorkerName[];
}

function refuseContradictions(settings: Settings, probesLive: boolean): void {
  if (settings.attemptLeaseMs < 2 * settings.providerTimeoutMs) {
    throw new ConfigError("ATTEMPT_LEASE_MS: must be at least twice PROVIDER_TIMEOUT_MS");
  }
  // A row older than its keys must find its budget over, so that it is asked about before anything is sent.
  if (settings.retryBudgetMs > settings.providerKeyLifetimeMs) {
    throw new ConfigError("ATTEMPT_RETRY_BUDGET_MS: must not be longer than PROVIDER_KEY_LIFETIME_MS");
  }
  if (probesLive) throw new ConfigError("PAWL_PROBES: never with a live key");
}
