import { withLostRuns } from "./lost-runs.js";
import type { OutsideHabits } from "./outside.js";
import { Random } from "./random.js";
import { drawRestore, type RestorePlan } from "./restore.js";
import { drawTampering, NO_TAMPERING, type TamperingHabits } from "./tampering.js";
import { drawWeather, type Weather } from "./weather.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** What a seed draws before anything happens. */
export interface Draw {
  readonly weather: Weather;
  readonly env: Readonly<Record<string, string>>;
  readonly payments: number;
  readonly stormMs: number;
  readonly outages: readonly { readonly atMs: number; readonly forMs: number }[];
  /** When every process is gone, and for how long. */
  readonly nights: readonly { readonly atMs: number; readonly forMs: number }[];
  readonly payouts: readonly number[];
  /** When what is past its retention is deleted. */
  readonly purges: readonly number[];
  /** When we compare what we have with what the provider has. */
  readonly comparisons: readonly number[];
  readonly habits: OutsideHabits;
  readonly restore: RestorePlan | null;
  readonly tampering: TamperingHabits;
  /** When all processes have the credential of another account. */
  readonly misconfigured: { readonly atMs: number; readonly forMs: number } | null;
}

export function drawSetting(seed: number): Draw {
  return withLostRuns(new Random(seed, "lost runs"), drawMost(seed));
}

function drawMost(seed: number): Draw {
  const random = new Random(seed, "setting");
  const some = (rare: number, common: number) => random.pick([0, rare, common]);
  const stormMs = random.duration(2 * MINUTE_MS, 20 * MINUTE_MS);
  const at = () => random.whole(1_000, stormMs);
  const times = (count: number) =>
    Array.from({ length: count }, () => ({ atMs: at(), forMs: random.duration(5_000, 20 * MINUTE_MS) }));
  const restore = drawRestore(new Random(seed, "restore"), stormMs);
  const comparing = new Random(seed, "comparing");
  const isCompared = comparing.chance(0.4);
  const accounts = new Random(seed, "accounts");
  const isMisconfigured = restore === null && accounts.chance(0.12);
  return {
    misconfigured: isMisconfigured
      ? { atMs: accounts.duration(5_000, stormMs), forMs: accounts.duration(30_000, 10 * MINUTE_MS) }
      : null,
    restore,
    tampering: restore === null ? drawTampering(new Random(seed, "habits")) : NO_TAMPERING,
    weather: drawWeather(random),
    env: {
      CUSTOMER_ACTION_EXPIRY_MS: String(random.pick([10 * MINUTE_MS, HOUR_MS])),
      UNKNOWN_REVIEW_AFTER_MS: String(random.pick([15 * MINUTE_MS, 24 * HOUR_MS])),
      ATTEMPT_RETRY_BUDGET_MS: String(random.pick([30_000, 120_000, 600_000])),
      IDEMPOTENCY_RETENTION_HOURS: random.pick(["1", "168"]),
      ...(isCompared ? { RECONCILE_LISTS_INTERVAL_MS: "300000", RECONCILE_LAG_MS: "10000" } : {}),
      ...(restore === null ? {} : { DATABASE_CHECK_INTERVAL_MS: restore.processesLive ? "60000" : "5000" }),
    },
    payments: random.whole(4, 10),
    stormMs,
    outages: times(random.pick([0, 0, 1, 2])),
    nights: random.chance(0.12)
      ? [{ atMs: at(), forMs: random.pick([10 * MINUTE_MS, 2 * HOUR_MS, 25 * HOUR_MS]) }]
      : [],
    payouts: random.chance(0.4) ? [random.duration(10 * MINUTE_MS, 3 * HOUR_MS)] : [],
    purges: Array.from({ length: 4 }, () => random.whole(0, 4 * HOUR_MS)),
    comparisons: [
      ...Array.from({ length: 3 }, () => random.whole(0, 4 * HOUR_MS)),
      ...Array.from({ length: isCompared ? 8 : 0 }, () => comparing.duration(MINUTE_MS, 2 * HOUR_MS)),
    ],
    habits: {
      dashboard: some(0.05, 0.3),
      secondCards: some(0.1, 0.5),
      disputes: some(0.05, 0.25),
      lateRefundFailures: some(0.05, 0.25),
    },
  };
}
