import { faultsAtTheEnd } from "./checks.js";
import { simulatingHost } from "./host.js";
import { drawPlans } from "./plans.js";
import type { ProviderFlaws } from "./provider-model.js";
import { Random } from "./random.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import { settingsWith } from "./simulated-process.js";
import { drawWeather, type Weather } from "./weather.js";
import { World } from "./world.js";

export interface SeedOptions {
  readonly database: SimulatedDatabase;
  readonly flaws?: ProviderFlaws;
  /** In place of what the seed draws. */
  readonly weather?: Partial<Weather>;
}

export interface SeedReport {
  readonly seed: number;
  /** A sentence each; none is the only right outcome. */
  readonly faults: readonly string[];
  /** What the seed has drawn, for a person. */
  readonly setting: string;
  readonly story: readonly string[];
  readonly digest: string;
  readonly counts: Readonly<Record<string, number>>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** What is left after that long is stuck. */
const LONGEST_MS = 80 * HOUR_MS;
const MOST_STEPS = 400_000;
/** Longer than this without a step, and it is time to look at what is due. */
const PAUSE_MS = 20;

/** In every seed other than in production: fewer looks at what waits, and deliveries that are never given up. */
const SETTINGS: Readonly<Record<string, string>> = {
  FOLLOW_FIRST_MS: "5000",
  WEBHOOK_RETRY_SCHEDULE_MS: [1_000, 5_000, ...Array.from({ length: 200 }, () => 30_000)].join(),
  WEBHOOK_DISABLE_AFTER_MS: String(1_000 * HOUR_MS),
};

interface Draw {
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
  readonly habits: { dashboard: number; secondCards: number; disputes: number; lateRefundFailures: number };
}

function draw(seed: number): Draw {
  const random = new Random(seed, "setting");
  const some = (rare: number, common: number) => random.pick([0, rare, common]);
  const stormMs = random.duration(2 * MINUTE_MS, 20 * MINUTE_MS);
  const at = () => random.whole(1_000, stormMs);
  const times = (count: number) =>
    Array.from({ length: count }, () => ({ atMs: at(), forMs: random.duration(5_000, 20 * MINUTE_MS) }));
  return {
    weather: drawWeather(random),
    env: {
      CUSTOMER_ACTION_EXPIRY_MS: String(random.pick([10 * MINUTE_MS, HOUR_MS])),
      UNKNOWN_REVIEW_AFTER_MS: String(random.pick([15 * MINUTE_MS, 24 * HOUR_MS])),
      ATTEMPT_RETRY_BUDGET_MS: String(random.pick([30_000, 120_000, 600_000])),
      IDEMPOTENCY_RETENTION_HOURS: random.pick(["1", "168"]),
    },
    payments: random.whole(4, 10),
    stormMs,
    outages: times(random.pick([0, 0, 1, 2])),
    nights: random.chance(0.12)
      ? [{ atMs: at(), forMs: random.pick([10 * MINUTE_MS, 2 * HOUR_MS, 25 * HOUR_MS]) }]
      : [],
    payouts: random.chance(0.4) ? [random.duration(10 * MINUTE_MS, 3 * HOUR_MS)] : [],
    purges: Array.from({ length: 4 }, () => random.whole(0, 4 * HOUR_MS)),
    comparisons: Array.from({ length: 3 }, () => random.whole(0, 4 * HOUR_MS)),
    habits: {
      dashboard: some(0.05, 0.3),
      secondCards: some(0.1, 0.5),
      disputes: some(0.05, 0.25),
      lateRefundFailures: some(0.05, 0.25),
    },
  };
}

/** Runs one simulation to its end. The same seed, the same code: the same story. */
export async function runSeed(
  seed: number,
  { database, flaws = {}, weather = {} }: SeedOptions,
): Promise<SeedReport> {
  const drawn = draw(seed);
  await database.reset();
  const world = new World({
    seed,
    database,
    settings: settingsWith({ ...SETTINGS, ...drawn.env }),
    weather: { ...drawn.weather, ...weather },
    habits: drawn.habits,
    plans: drawPlans(new Random(seed, "plans"), drawn.payments),
    flaws,
  });
  await simulatingHost(world.scheduler, new Random(seed, "product"), async () => {
    planStorm(world, drawn);
    await world.begin();
    await settle(world, drawn);
    // The next hour's: it tells what no event did.
    world.polling.wakeOnce("comparison", 65 * MINUTE_MS);
    await settle(world, drawn);
    world.merchants.askAgain();
    await settle(world, drawn);
  });
  if (world.faults.length === 0) world.faults.push(...(await faultsAtTheEnd(world, database.sql)));
  return {
    seed,
    faults: world.faults,
    setting: JSON.stringify(drawn),
    story: world.story.lines,
    digest: world.story.digest(),
    counts: {
      intents: world.model.intents.size,
      refunds: world.model.refunds.size,
      hours: world.scheduler.nowMs / HOUR_MS,
    },
  };
}

function planStorm(world: World, { outages, nights, payouts, purges, comparisons, stormMs }: Draw): void {
  const { scheduler, polling } = world;
  for (const atMs of comparisons) polling.wakeOnce("comparison", atMs);
  for (const atMs of purges) polling.wakeOnce("reaper", atMs);
  for (const { atMs, forMs } of outages) {
    scheduler.plan(atMs, `the provider is down for ${forMs} ms`, () => {
      world.providerDownUntilMs = scheduler.nowMs + forMs;
    });
  }
  for (const { atMs, forMs } of nights) {
    scheduler.plan(atMs, `all is down for ${forMs} ms`, () => {
      world.nightUntilMs = scheduler.nowMs + forMs;
      world.killAll();
    });
  }
  for (const atMs of payouts) scheduler.plan(atMs, "the provider pays out", () => world.model.payOut());
  const calmAtMs = Math.max(
    stormMs,
    ...outages.map((one) => one.atMs + one.forMs),
    ...nights.map((one) => one.atMs + one.forMs),
  );
  scheduler.plan(calmAtMs + MINUTE_MS, "the storm is over", () => {
    world.isCalm = true;
  });
}

/** Until nothing is left to happen by itself. */
async function settle(world: World, drawn: Draw): Promise<void> {
  const { scheduler, polling } = world;
  for (let steps = 0; ; steps += 1) {
    if (world.faults.length > 0) return;
    const next = scheduler.nextAtMs();
    if (next === null || next > scheduler.nowMs + PAUSE_MS) await polling.look();
    if (!(await scheduler.step())) return;
    if (scheduler.nowMs > LONGEST_MS || steps > MOST_STEPS) {
      world.fault(
        `there is no end of it: ${String(steps)} steps, ${String(scheduler.nowMs)} ms, ${drawn.payments} payments`,
      );
      return;
    }
  }
}
