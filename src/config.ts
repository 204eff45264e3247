import { z } from "zod";
import {
  blankIsUnset,
  duration,
  durations,
  flag,
  hours,
  isBareOrigin,
  list,
  span,
  text,
  url,
  whole,
} from "./config-fields.js";
import { SIGNAL_SPEC } from "./lib/signal-at.js";

/** The only reader of process.env. Every setting, with its default; the README's table lists exactly these. */

const WORKER_NAMES = [
  "attempts",
  "reconciler",
  "comparison",
  "provider-events",
  "relay",
  "webhooks",
  "ledger",
  "reaper",
  "doctor",
] as const;
export type WorkerName = (typeof WORKER_NAMES)[number];

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
  IDEMPOTENCY_RETENTION_HOURS: hours(),
  DEFAULT_WAIT_MS: whole(0, 30_000),
  RECONCILE_INTERVAL_MS: duration(),
  RECONCILE_LISTS_INTERVAL_MS: duration(),
  RECONCILE_WINDOW_HOURS: hours(),
  RECONCILE_LAG_MS: duration(),
  DATABASE_CHECK_INTERVAL_MS: duration(10),
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
  STRIPE_WEBHOOK_SECRET: list(),
  CUSTOMER_ACTION_EXPIRY_MS: span(),
  PROVIDER_EVENT_INTERVAL_MS: duration(),
  PROVIDER_EVENT_MOST_TRIES: whole(1, 1_000),
  PROVIDER_EVENT_RETENTION_HOURS: hours(),
  RELAY_INTERVAL_MS: duration(),
  WEBHOOK_INTERVAL_MS: duration(),
  WEBHOOK_TIMEOUT_MS: duration(),
  WEBHOOK_RETRY_SCHEDULE_MS: durations(),
  WEBHOOK_SECRET_OVERLAP_MS: span(),
  WEBHOOK_DISABLE_AFTER_MS: span(),
  WEBHOOK_CONCURRENCY: whole(1, 10_000),
  WEBHOOK_ALLOW_PRIVATE_TARGETS: flag,
  DELIVERY_RETENTION_HOURS: hours(),
  LEDGER_INTERVAL_MS: duration(),
  DOCTOR_INTERVAL_MS: duration(),
  PAWL_EVENTS_NATS_URL: url(["nats:", "tls:"]),
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
  /** How often the provider's lists are compared with ours. */
  readonly reconcileEveryMs: number;
  /** How far back a comparison goes. */
  readonly reconcileWindowMs: number;
  /** What is younger is not compared. */
  readonly reconcileLagMs: number;
  readonly databaseCheckIntervalMs: number;
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
  /** Any of them may have signed a provider's event; none: the endpoint is closed. */
  readonly stripeWebhookSecrets: readonly string[];
  readonly customerActionExpiryMs: number;
  readonly providerEventIntervalMs: number;
  readonly providerEventMostTries: number;
  readonly providerEventRetentionMs: number;
  readonly relayIntervalMs: number;
  readonly webhookIntervalMs: number;
  readonly webhookTimeoutMs: number;
  /** The wait before each further try of a delivery, before jitter; after the last the delivery has failed. */
  readonly webhookRetryScheduleMs: readonly number[];
  readonly webhookSecretOverlapMs: number;
  readonly webhookDisableAfterMs: number;
  readonly webhookConcurrency: number;
  readonly webhookAllowPrivateTargets: boolean;
  readonly deliveryRetentionMs: number;
  readonly ledgerIntervalMs: number;
  readonly doctorIntervalMs: number;
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
  /** A NATS server that every event is also published to; null: none. */
  readonly eventsNatsUrl: string | null;
  /** `name=kill|stop`, comma-separated: a fault of our own process at a named point, for tests. */
  readonly probes: string | null;
  readonly settings: Settings;
}

/** One line that names the variable; shown as it is, and the process ends. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h: the schedule that the Standard Webhooks specification proposes. */
const WEBHOOK_RETRY_SCHEDULE_MS = [
  5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000,
];

/** Whether a call with this key of Stripe's moves real money. */
export function isLiveKey(secretKey: string): boolean {
  return /^[sr]k_live_/.test(secretKey);
}

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
    reconcileEveryMs: e.RECONCILE_LISTS_INTERVAL_MS ?? HOUR_MS,
    reconcileWindowMs: (e.RECONCILE_WINDOW_HOURS ?? 72) * HOUR_MS,
    reconcileLagMs: e.RECONCILE_LAG_MS ?? 300_000,
    databaseCheckIntervalMs: e.DATABASE_CHECK_INTERVAL_MS ?? 5_000,
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
    stripeWebhookSecrets: e.STRIPE_WEBHOOK_SECRET ?? [],
    customerActionExpiryMs: e.CUSTOMER_ACTION_EXPIRY_MS ?? DAY_MS,
    providerEventIntervalMs: e.PROVIDER_EVENT_INTERVAL_MS ?? 500,
    providerEventMostTries: e.PROVIDER_EVENT_MOST_TRIES ?? 20,
    providerEventRetentionMs: (e.PROVIDER_EVENT_RETENTION_HOURS ?? 744) * HOUR_MS,
    relayIntervalMs: e.RELAY_INTERVAL_MS ?? 250,
    webhookIntervalMs: e.WEBHOOK_INTERVAL_MS ?? 250,
    webhookTimeoutMs: e.WEBHOOK_TIMEOUT_MS ?? 10_000,
    webhookRetryScheduleMs: e.WEBHOOK_RETRY_SCHEDULE_MS ?? WEBHOOK_RETRY_SCHEDULE_MS,
    webhookSecretOverlapMs: e.WEBHOOK_SECRET_OVERLAP_MS ?? DAY_MS,
    webhookDisableAfterMs: e.WEBHOOK_DISABLE_AFTER_MS ?? 5 * DAY_MS,
    webhookConcurrency: e.WEBHOOK_CONCURRENCY ?? 32,
    webhookAllowPrivateTargets: e.WEBHOOK_ALLOW_PRIVATE_TARGETS ?? false,
    deliveryRetentionMs: (e.DELIVERY_RETENTION_HOURS ?? 720) * HOUR_MS,
    ledgerIntervalMs: e.LEDGER_INTERVAL_MS ?? 1_000,
    doctorIntervalMs: e.DOCTOR_INTERVAL_MS ?? 60_000,
  };
  refuseContradictions(
    settings,
    e.PAWL_PROBES !== undefined && e.STRIPE_SECRET_KEY !== undefined && isLiveKey(e.STRIPE_SECRET_KEY),
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
    eventsNatsUrl: e.PAWL_EVENTS_NATS_URL ?? null,
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
